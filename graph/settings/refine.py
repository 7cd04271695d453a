"""What a refine debate can be told."""

from string import ascii_uppercase
from typing import Self

from pydantic import Field, PositiveInt

from contend.graph.phases import PhaseName
from contend.graph.settings.base import WhenASeatFails
from contend.graph.settings.seats import ManySeatSettings
from contend.graph.state import Seat


class RefineSettings(ManySeatSettings):
    """All answer, a judge advises, all refine, the judge merges."""

    judge_model: str = Field(
        "ollama:gemma3:27b", description="Model that advises, merges and rates the answer."
    )
    enable_debate: bool = Field(
        True, description="Refine the answers; if not, the initial ones are merged at once."
    )
    max_debate_rounds: int = Field(2, ge=0, le=20, description="Rounds of feedback and refinement.")
    debate_timeout_ms: PositiveInt = Field(
        10_000, description="Milliseconds a model has to refine its answer; there is one try."
    )
    judge_feedback_timeout_ms: PositiveInt = Field(
        8_000, description="Milliseconds the judge has for its feedback; there is one try."
    )

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return "refine"

    @property
    def first_round(self) -> int:
        """The initial answers are round 0."""
        return 0

    @property
    def rounds(self) -> tuple[int, int]:
        """Rounds of refinement: no rule ends them early."""
        most = self.max_debate_rounds if self.enable_debate else 0
        return most, most

    @property
    def critic_role(self) -> str:
        """The judge gives the feedback."""
        return "judge"

    @property
    def writer_role(self) -> str:
        """The judge merges."""
        return "judge"

    @property
    def when_a_seat_fails(self) -> WhenASeatFails:
        """A seat's earlier answer stands in, and an initial one for the merge."""
        return "keep_answer"

    def answering_part(self, round_number: int, *, has_spoken: bool) -> str:  # noqa: ARG002
        """Who has no answer to refine gives a first one, whenever that is."""
        return "again" if has_spoken else "first"

    def label(self, seat: Seat, place: int) -> str:
        """Debaters go by the letters of their answers."""
        return f"Answer {ascii_uppercase[place]}" if seat.role == "debater" else seat.name

    def opening_role(self, round_number: int) -> str:
        """Feedback comes before refinement."""
        return self.critic_role if round_number > self.first_round else self.answering_role

    @property
    def max_steps(self) -> int:
        """Three steps a round, six around them, and room for resumed ones."""
        return 3 * self.rounds[1] + 12

    def for_call(self, phase: PhaseName, round_number: int) -> Self:
        """Feedback and refinement are short on time and tried once: they must not stall."""
        if phase == "critique":
            return self._hurried(self.judge_feedback_timeout_ms)
        if phase == "propose" and round_number > self.first_round:
            return self._hurried(self.debate_timeout_ms)
        return self

    def _hurried(self, milliseconds: int) -> Self:
        seconds = milliseconds / 1000
        limits = {"idle_timeout": seconds, "total_timeout": seconds, "max_retries": 0}
        return self.model_copy(update=limits)
