"""A protocol's decisions, such as who speaks and when the rounds end."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from contend.graph.phases import PhaseName
from contend.graph.settings import DebateSettings, FolderPlan
from contend.graph.state import ClosingNode, DebateState, Turn
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Document, Image, Seat

PromptValues = dict[str, Callable[[], str]]  # each value is built only if a prompt uses it
WhenASeatFails = Literal["stop", "keep_answer", "sit_out"]
SomeSettings = TypeVar("SomeSettings", bound=DebateSettings)


@dataclass(frozen=True)
class PromptCall:
    state: DebateState
    seat: Seat
    part: str
    turns: Sequence[Turn]
    tag: str  # the nonce that the call's control block must repeat
    mark: str  # the mark in the fences around quoted text; empty if text is not fenced
    fence: Callable[[str, str], str]
    control: PromptValues


def begin_alike(one: Seat, other: Seat) -> bool:
    """Return whether the seats' prompts begin alike, so that a provider's cache serves both."""
    return one.model == other.model and one.tools == other.tools


class PlannedCall(NamedTuple):
    seat: Seat
    phase: PhaseName


class Strategy(ABC, Generic[SomeSettings]):
    answering_role: str  # the role of the seats that answer the question in every round
    writer_role: str | None  # the role of the seat that writes the final answer, or None
    rounds: tuple[int, int]  # the minimum and maximum number of rounds
    max_steps: int  # the recursion limit of the graph, with room for resumed steps
    critic_role: str = "judge"
    first_round: int = 1
    critique_decides: bool = False  # a critique can end the debate, so it must be parsed
    when_a_seat_fails: WhenASeatFails = "stop"  # applies once another seat has answered
    gives_verdict: bool = False  # the writer reviews the positions before it writes the answer
    style: str = ""  # the debate format, which names the prompt file of the task
    folder_plan: FolderPlan | None = None
    most_tool_calls: int = 0  # how often a seat may use its tools in one turn
    rates_answer: bool = True  # the judge, if there is one, scores the final answer
    roles_for_people: frozenset[str] = frozenset()  # whose turns a person can write as plain text

    def __init__(self, settings: SomeSettings) -> None:
        self.settings = settings

    @abstractmethod
    def stop_decision(self, state: DebateState) -> StopDecision | None:
        """Return the reason to end the rounds after the current round, or None to continue."""

    @abstractmethod
    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        """Return the minimum and maximum number of turns per role, assuming that no call fails."""

    def expected_calls(self, people: Sequence[Seat] = ()) -> tuple[int, int]:
        """Return the minimum and maximum number of calls, not counting people's turns."""
        fewest, most = (self._without(turns, people) for turns in self.calls_by_role())
        return fewest, most

    def _without(self, turns: Counter[str], people: Sequence[Seat]) -> int:
        sharing = Counter(seat.role for seat in self.settings.build_seats())
        return turns.total() - sum(turns[seat.role] // sharing[seat.role] for seat in people)

    def round_calls(self, state: DebateState) -> list[PlannedCall]:
        answers = [PlannedCall(seat, "propose") for seat in state["seats"] if self.answers(seat)]
        return [*answers, *self._calls_of(state, self.critic_role, "critique")]

    def closing_calls(self, state: DebateState) -> list[PlannedCall]:
        writers = self._calls_of(state, self.writer_role or "", "synthesize")[:1]
        verdict = [PlannedCall(seat, "verdict") for seat, _ in writers if self.gives_verdict]
        rating = self._calls_of(state, "judge", "score") if self.rates_answer else []
        return [*verdict, *writers, *rating]

    def _calls_of(self, state: DebateState, role: str, phase: PhaseName) -> list[PlannedCall]:
        return [PlannedCall(seat, phase) for seat in state["seats"] if seat.role == role]

    def last_round(self, state: DebateState) -> int:
        return self.rounds[1]

    def repeats_prompt(self, state: DebateState, seat: Seat, part: str) -> bool:
        """Return whether a later prompt to the seat's model will probably begin the same way."""
        if part in ("final", "score", "scores", "stage"):
            return False
        if not state.get("stop") and state["round"] < self.last_round(state):
            return True
        if self.own_prompt(part) is not None:  # the system message has the seat's own role
            return False
        return any(begin_alike(seat, each) for each in self._seats_after(state, seat))

    def _seats_after(self, state: DebateState, seat: Seat) -> list[Seat]:
        closing = [call.seat for call in self.closing_calls(state) if call.phase != "score"]
        if state.get("stop"):
            return closing
        waiting = [each for each in state["seats"] if each.id in state.get("waiting", [])]
        critics = self._calls_of(state, self.critic_role, "critique") if self.answers(seat) else []
        others = [each for each in waiting if each.id != seat.id]
        return [*others, *(call.seat for call in critics), *closing]

    def settings_for_another_round(self, state: DebateState) -> dict[str, Any] | None:
        """Return the settings changes for exactly one more round, or None if that is impossible."""
        return None

    def excerpt_characters(self, part: str) -> int | None:
        """Return how many characters of each answer a prompt shows, or None for whole answers."""
        return None

    def derived_input(self, given: DebateState) -> DebateState:
        return {}

    def check_input(self, given: DebateState) -> None:
        """Raise BadInput if the input lacks something that this protocol needs."""

    def opening_state(self) -> DebateState:
        """Return this protocol's additions to the initial state."""
        return {}

    def answers(self, seat: Seat) -> bool:
        return seat.role == self.answering_role

    def opening_role(self, round_number: int) -> str:
        return self.answering_role

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        """Return which waiting seats speak now. Several seats speak in parallel."""
        return tuple(waiting)

    def closing_node(self, round_number: int) -> ClosingNode:
        return "judge_continue"

    def asks_judge(self, round_number: int) -> bool:
        """Return whether to ask the judge to continue or stop after this round."""
        return False

    def answering_part(self, round_number: int, *, has_spoken: bool) -> str:
        return "again" if round_number > self.first_round else "first"

    def prompt_role(self, seat: Seat) -> str:
        return seat.role

    def own_prompt(self, part: str) -> str | None:
        return None

    def label(self, seat: Seat, place: int) -> str:
        """Return the seat's name as other speakers see it. `place` is the index within the role."""
        return seat.name

    def token_limit(self, phase: PhaseName) -> int | None:
        return None

    def time_limit(self, phase: PhaseName) -> float | None:
        """Return a turn's time limit in seconds, or None."""
        return None

    def call_settings(self, phase: PhaseName, round_number: int) -> SomeSettings:
        return self.settings

    def sees(self, seat: Seat, attachment: Document | Image) -> bool:
        return (
            not attachment.seats or seat.id in attachment.seats or seat.role != self.answering_role
        )

    def prompt_values(self, call: PromptCall) -> PromptValues:
        return {}

    def round_facts(self, state: DebateState) -> dict[str, Any]:
        """Return extra fields for the event that reports a finished round."""
        return {}


def strategy_for(settings: SomeSettings) -> Strategy[SomeSettings]:
    # Load it by name to avoid an import cycle: strategies use nodes, and nodes use this module.
    module = import_module(f"contend.graph.protocols.{settings.protocol}")
    strategy: Strategy[SomeSettings] = module.STRATEGY(settings)
    return strategy
