"""What a protocol decides: who speaks when, what a failure means, when the rounds end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Literal, TypeVar

from contend.graph.phases import PhaseName
from contend.graph.settings import DebateSettings, FolderPlan
from contend.graph.state import ClosingNode, DebateState, Turn
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Document, Image, Seat

PromptValues = dict[str, Callable[[], str]]  # built only when a prompt asks for it
WhenASeatFails = Literal["stop", "keep_answer", "sit_out"]
SomeSettings = TypeVar("SomeSettings", bound=DebateSettings)


@dataclass(frozen=True)
class PromptCall:
    """One model call: which seat is asked for what, and which turns fit into the prompt."""

    state: DebateState
    seat: Seat
    part: str
    turns: Sequence[Turn]
    tag: str  # the nonce of the call's control block
    mark: str  # the mark of fences; empty where text is not fenced
    fence: Callable[[str, str], str]
    control: PromptValues


class Strategy(ABC, Generic[SomeSettings]):
    answering_role: str  # of the seats that answer the question in every round
    writer_role: str | None  # of the seat that writes the final answer; None if no seat does
    rounds: tuple[int, int]  # the minimum and maximum number
    max_steps: int  # the recursion limit of the graph, with room for resumed steps
    critic_role: str = "judge"
    first_round: int = 1
    critique_decides: bool = False  # a critique can end the debate, so it must be read
    when_a_seat_fails: WhenASeatFails = "stop"  # and another seat has answered
    gives_verdict: bool = False  # the writer reviews the positions before it writes the answer
    style: str = ""  # the debate format, which names the prompt file of the task
    folder_plan: FolderPlan | None = None
    most_tool_calls: int = 0  # how often a seat may use its tools in one turn
    roles_for_people: frozenset[str] = frozenset()  # whose turns a person can write as plain text

    def __init__(self, settings: SomeSettings) -> None:
        """Keep the settings; a protocol sets here what depends on them."""
        self.settings = settings

    @abstractmethod
    def stop_decision(self, state: DebateState) -> StopDecision | None:
        """Decide after a finished round whether the rounds end."""

    @abstractmethod
    def expected_calls(self) -> tuple[int, int]:
        """Return the fewest and the most calls of a debate in which no call fails."""

    def last_round(self, state: DebateState) -> int:
        """Return the number of the last round, as planned by now."""
        return self.rounds[1]

    def settings_for_another_round(self, state: DebateState) -> dict[str, Any] | None:
        """Return what to change so that exactly one round can follow; None if none can."""
        return None

    def excerpt_characters(self, part: str) -> int | None:
        """Return how much of each answer a prompt shows; None for all that fits."""
        return None

    def check_input(self, given: DebateState) -> None:
        """Raise BadInput if the caller's input is not enough for this protocol."""

    def opening_state(self) -> DebateState:
        """Return the protocol's initial state, in addition to question, seats and first round."""
        return {}

    def answers(self, seat: Seat) -> bool:
        return seat.role == self.answering_role

    def opening_role(self, round_number: int) -> str:
        return self.answering_role

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        """Return which of the waiting seats speak now; several speak in parallel."""
        return tuple(waiting)

    def closing_node(self, round_number: int) -> ClosingNode:
        """Return the node that runs after all seats have spoken in a round."""
        return "judge_continue"

    def asks_judge(self, round_number: int) -> bool:
        """Return whether the judge is asked, after this round, to decide on another one."""
        return False

    def answering_part(self, round_number: int, *, has_spoken: bool) -> str:
        """Return the prompt part for an answer: a first one or a later one."""
        return "again" if round_number > self.first_round else "first"

    def prompt_role(self, seat: Seat) -> str:
        """Return the role whose prompt files a seat uses."""
        return seat.role

    def own_prompt(self, part: str) -> str | None:
        return None

    def label(self, seat: Seat, place: int) -> str:
        """Return the name other speakers see; `place` counts the seats of a role from 0."""
        return seat.name

    def token_limit(self, phase: PhaseName) -> int | None:
        return None

    def time_limit(self, phase: PhaseName) -> float | None:
        """Return the seconds after which the rest of a turn is cut off."""
        return None

    def call_settings(self, phase: PhaseName, round_number: int) -> SomeSettings:
        """Return the settings for one call: some calls have less time and no retries."""
        return self.settings

    def sees(self, seat: Seat, attachment: Document | Image) -> bool:
        """Return whether a seat is shown an attachment; seats that do not answer see all."""
        return (
            not attachment.seats or seat.id in attachment.seats or seat.role != self.answering_role
        )

    def prompt_values(self, call: PromptCall) -> PromptValues:
        return {}

    def round_facts(self, state: DebateState) -> dict[str, Any]:
        """Return what viewers learn about a finished round beyond its points."""
        return {}


def strategy_for(settings: SomeSettings) -> Strategy[SomeSettings]:
    # Loaded by name: strategies use nodes, and nodes use this module.
    module = import_module(f"contend.graph.protocols.{settings.protocol}")
    strategy: Strategy[SomeSettings] = module.STRATEGY(settings)
    return strategy
