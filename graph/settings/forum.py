"""What a forum can be told."""

import re
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from contend.graph.settings.base import WhenASeatFails
from contend.graph.settings.seats import ManySeatSettings
from contend.graph.state import ClosingNode, DebateState, Seat

JudgeMode = Literal["external_judge", "self_convergence", "display_only"]
DebateFormat = Literal[
    "free_discussion", "structured_opposition", "iterative_improvement", "custom"
]
CUSTOM_PLACEHOLDERS = (
    "history",
    "own_position",
    "current_round",
    "round",
    "model_name",
    "question",
    "debater_number",
)
# Any word in braces, however spaced, accented or capitalised: it counts only if it is exact.
_PLACEHOLDER = re.compile(r"\{( *[^\W\d]\w* *)\}")
# Positions are still being formed in round 1, and behind the last one comes the end anyway.
_FIRST_CHECKED_ROUND = 2


class ForumSettings(ManySeatSettings):
    """All hold positions of their own; a judge ends it, or they concede until one is left."""

    judge_model: str = Field(
        "ollama:gemma3:27b",
        description="Model that ends the debate, gives the verdict and rates the answer.",
    )
    judge_mode: JudgeMode = Field(
        "external_judge",
        description="Who ends it: a judge, the seats themselves by conceding, or nobody.",
    )
    debate_format: DebateFormat = Field(
        "free_discussion", description="What the seats are to do with each other's positions."
    )
    custom_format_prompt: str = Field(
        "", description="The prompt of every turn when debate_format is custom."
    )
    max_rounds: int = Field(5, ge=1, le=50, description="Rounds at the most.")
    verify_concessions: bool = Field(
        True, description="Ask again about a concession that names or quotes no argument."
    )
    anonymous: bool = Field(
        False, description="Show the seats to each other as Debater 1, 2, ... and not by name."
    )

    @model_validator(mode="after")
    def _a_judge_for_judging(self) -> Self:
        given = self.model_fields_set
        unnamed = "seats" in given and "judge_model" not in given
        if self.judge_mode == "external_judge" and (unnamed or not self.judge_model.strip()):
            raise ValueError(
                "judge_mode external_judge needs a judge; name its model with "
                "--set judge_model=PROVIDER:NAME, or set judge_mode to self_convergence or "
                "display_only"
            )
        return self

    @model_validator(mode="after")
    def _a_prompt_for_the_custom_format(self) -> Self:
        custom, prompt = self.debate_format == "custom", self.custom_format_prompt.strip()
        if custom and not prompt:
            raise ValueError("debate_format custom needs a custom_format_prompt")
        if prompt and not custom:
            raise ValueError("custom_format_prompt is only used with debate_format custom")
        strangers = [n for n in _PLACEHOLDER.findall(prompt) if n not in CUSTOM_PLACEHOLDERS]
        if strangers:
            known = ", ".join(f"{{{name}}}" for name in CUSTOM_PLACEHOLDERS)
            raise ValueError(
                f"custom_format_prompt has an unknown placeholder {{{strangers[0]}}}; "
                f"known are {known}"
            )
        return self

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return "forum"

    @property
    def rounds(self) -> tuple[int, int]:
        """A judge or concessions may end it after the second round."""
        if self.judge_mode == "display_only":
            return self.max_rounds, self.max_rounds
        return min(_FIRST_CHECKED_ROUND, self.max_rounds), self.max_rounds

    @property
    def critic_role(self) -> str:
        """Nobody stands apart to criticise: the seats do it."""
        return self.answering_role

    @property
    def writer_role(self) -> str | None:
        """The judge, the winner among the seats, or nobody."""
        writers = {"external_judge": "judge", "self_convergence": self.answering_role}
        return writers.get(self.judge_mode)

    @property
    def gives_verdict(self) -> bool:
        """The judge reviews the positions before it writes."""
        return self.judge_mode == "external_judge"

    @property
    def when_a_seat_fails(self) -> WhenASeatFails:
        """It sits the round out."""
        return "sit_out"

    @property
    def style(self) -> str:
        """The format, which names the file of the task."""
        return self.debate_format

    @property
    def max_steps(self) -> int:
        """A step for each speech, two to close a round, five around them, room for resumed ones."""
        return (len(self.seats) + 2) * self.max_rounds + 12

    def table(self) -> list[Seat]:
        """The seats in the user's order; then the judge, if there is any use for one."""
        judged = self.judge_mode != "display_only" and self.judge_model.strip()
        return super().table() if judged else self.debaters()

    def opening_state(self) -> DebateState:
        """All are in at the start."""
        return {"active": list(self.opening_seats)}

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        """All at once and blind to each other in round 1, then one after another."""
        return tuple(waiting) if round_number == self.first_round else tuple(waiting[:1])

    def closing_node(self, round_number: int) -> ClosingNode:
        """Where the seats end it themselves, they are asked whether they concede."""
        asks = self.judge_mode == "self_convergence" and self._is_checked(round_number)
        return "conviction_check" if asks else "judge_continue"

    def asks_judge(self, round_number: int) -> bool:
        """From the second round to the one before last."""
        return self.judge_mode == "external_judge" and self._is_checked(round_number)

    def label(self, seat: Seat, place: int) -> str:
        """By name, or by number so that no brand persuades anybody."""
        hidden = self.anonymous and seat.role == self.answering_role
        return f"Debater {place + 1}" if hidden else seat.name

    def own_prompt(self, part: str) -> str | None:
        """The user's own words for every turn of the custom format."""
        if self.debate_format == "custom" and part in ("first", "again"):
            return self.custom_format_prompt
        return None

    def _is_checked(self, round_number: int) -> bool:
        return _FIRST_CHECKED_ROUND <= round_number < self.max_rounds
