from collections import Counter
from collections.abc import Sequence
from typing import Any

from contend.graph.protocols.base import (
    PlannedCall,
    PromptCall,
    PromptValues,
    Strategy,
    WhenASeatFails,
)
from contend.graph.readings import Decision
from contend.graph.settings import ForumSettings
from contend.graph.settings.seats import DEBATER
from contend.graph.state import ClosingNode, DebateState, seat_with_id, turns_of
from contend.graph.stop_reasons import StopDecision, describe_rounds_used, stop
from contend.graph.values import Seat
from contend.nodes.drafts import stop_if_agreed
from contend.nodes.forum.concessions import count_concessions, seats_that_stay, upheld_concession
from contend.nodes.forum.prompt_values import (
    concessions_so_far,
    missing_support,
    other_labels,
    own_concession,
)
from contend.nodes.prompting.answers import answers_of

# Round 1 is too early for concessions, and after the last round the debate ends anyway.
_FIRST_CHECKED_ROUND = 2
_WRITERS = {"external_judge": "judge", "self_convergence": DEBATER, "display_only": None}


class ForumStrategy(Strategy[ForumSettings]):
    answering_role = DEBATER
    roles_for_people = frozenset({DEBATER, "judge"})
    when_a_seat_fails: WhenASeatFails = "sit_out"

    def __init__(self, settings: ForumSettings) -> None:
        super().__init__(settings)
        mode, most = settings.judge_mode, settings.max_rounds
        self.writer_role = _WRITERS[mode]
        self.rounds = (most if mode == "display_only" else min(_FIRST_CHECKED_ROUND, most)), most
        self.max_steps = (len(settings.seats) + 2) * most + 12
        self.gives_verdict = mode == "external_judge"
        self.style = settings.debate_format
        self.most_tool_calls = settings.max_tool_calls

    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        gated = self.settings.debate_if == "drafts_disagree"
        fewest = self.first_round if gated else self.rounds[0]
        return self._calls(fewest), self._calls(self.rounds[1])

    def _calls(self, rounds: int) -> Counter[str]:
        seats, mode = len(self.settings.opening_seats), self.settings.judge_mode
        checked = sum(self._is_checked(number) for number in range(1, rounds + 1))
        if mode == "external_judge":
            return Counter(debater=seats * rounds, judge=checked + 3)
        if mode == "display_only":
            return Counter(debater=seats * rounds)
        # Nobody knows yet which of the debaters will write the answer.
        return Counter(debater=seats * (rounds + checked), writer=1)

    def round_calls(self, state: DebateState) -> list[PlannedCall]:
        number, seats = state["round"] + 1, [seat_with_id(state, each) for each in state["active"]]
        calls = [PlannedCall(seat, "propose") for seat in seats]
        if self.closing_node(number) == "conviction_check":
            calls += [PlannedCall(seat, "conviction_check") for seat in seats]
        asks = self.asks_judge(number)
        return calls + (self._calls_of(state, "judge", "judge_continue") if asks else [])

    def opening_state(self) -> DebateState:
        return {"active": list(self.settings.opening_seats)}

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        return tuple(waiting) if round_number == self.first_round else tuple(waiting[:1])

    def closing_node(self, round_number: int) -> ClosingNode:
        concedes = self.settings.judge_mode == "self_convergence"
        return (
            "conviction_check" if concedes and self._is_checked(round_number) else "judge_continue"
        )

    def asks_judge(self, round_number: int) -> bool:
        return self.settings.judge_mode == "external_judge" and self._is_checked(round_number)

    def _is_checked(self, round_number: int) -> bool:
        return _FIRST_CHECKED_ROUND <= round_number < self.settings.max_rounds

    def label(self, seat: Seat, place: int) -> str:
        hidden = self.settings.anonymous and seat.role == self.answering_role
        return f"Debater {place + 1}" if hidden else seat.name

    def own_prompt(self, part: str) -> str | None:
        is_custom = self.settings.debate_format == "custom" and part in ("first", "again")
        return self.settings.custom_format_prompt if is_custom else None

    def settings_for_another_round(self, state: DebateState) -> dict[str, Any]:
        return {"max_rounds": state["round"] + 1}

    def prompt_values(self, call: PromptCall) -> PromptValues:
        asked = (call.state, self.settings, call.seat.id)
        return {
            "concessions_so_far": lambda: concessions_so_far(*asked),
            "other_labels": lambda: other_labels(*asked),
            "missing_support": lambda: missing_support(*asked),
            "own_concession": lambda: own_concession(call.state, call.seat.id, call.fence),
        }

    def stop_decision(self, state: DebateState) -> StopDecision | None:
        number, active = state["round"], state["active"]
        if len(active) == 1:
            return self._last_seat(state, active[0])
        saved = self._calls(self.rounds[0]).total() - self._calls(number).total()
        if number == self.first_round and (agreed := stop_if_agreed(state, self.settings, saved)):
            return agreed
        judged = [turn for turn in turns_of(state, "judge_continue") if turn.round == number]
        decision = judged[-1].assessment if judged else None
        if isinstance(decision, Decision) and decision.decision == "stop":
            return stop("judge_stop", number, f"the judge ended it: {decision.reasoning}")
        if judged and judged[-1].status == "failed":
            return stop("judge_stop", number, "the judge could not be asked")
        if number < self.settings.max_rounds:
            return None
        held = sum(bool(answers_of(state, seat)) for seat in active)
        still = f", with {held} positions still held" if held > 1 else ""
        return stop("max_rounds", number, describe_rounds_used(self.settings.max_rounds) + still)

    def _last_seat(self, state: DebateState, seat: str) -> StopDecision:
        """Stop as `converged` if the one remaining seat also conceded, otherwise as `one_left`."""
        number, name = state["round"], seat_with_id(state, seat).name
        said = [turn for turn in turns_of(state, "conviction_check") if turn.round == number]
        own = [turn.assessment for turn in said if turn.seat == seat]
        conceded_to = upheld_concession(own, verify=self.settings.verify_concessions)
        if conceded_to is None:
            return stop("one_left", number, f"only {name} has not conceded")
        why = _why_it_stays(state, seat, conceded_to)
        return stop("converged", number, f"all conceded at once, and {name} stays: {why}")


def _why_it_stays(state: DebateState, seat: str, conceded_to: str) -> str:
    number = state["round"]
    now = {each.seat: each.convinced_by for each in state["eliminations"] if each.round == number}
    now[seat] = conceded_to
    seats = [each.id for each in state["seats"] if each.id in now]
    return seats_that_stay(now, seats, count_concessions(state, before=number))[seat]


STRATEGY = ForumStrategy
