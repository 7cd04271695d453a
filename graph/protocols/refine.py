from collections import Counter
from string import ascii_uppercase
from typing import Any

from contend.graph.phases import PhaseName
from contend.graph.protocols.base import Strategy, WhenASeatFails, begin_alike
from contend.graph.settings import RefineSettings
from contend.graph.settings.seats import DEBATER
from contend.graph.state import DebateState, turns_of
from contend.graph.stop_reasons import StopDecision, stop
from contend.graph.values import Seat
from contend.nodes.drafts import stop_if_agreed


class RefineStrategy(Strategy[RefineSettings]):
    answering_role = DEBATER
    roles_for_people = frozenset({DEBATER, "judge"})
    writer_role = "judge"
    first_round = 0  # the initial answers
    when_a_seat_fails: WhenASeatFails = "keep_answer"

    def __init__(self, settings: RefineSettings) -> None:
        super().__init__(settings)
        most = settings.max_debate_rounds if settings.enable_debate else 0
        self.rounds = most, most
        self.max_steps = 3 * most + 12
        self.most_tool_calls = settings.max_tool_calls

    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        most = self._calls(self.rounds[1])
        return (self._calls(0) if self.settings.debate_if == "drafts_disagree" else most), most

    def _calls(self, rounds: int) -> Counter[str]:
        debaters = len(self.settings.opening_seats)
        return Counter(debater=debaters * (1 + rounds), judge=rounds + 2)

    def excerpt_characters(self, part: str) -> int | None:
        return self.settings.feedback_excerpt if part == "feedback" else None

    def repeats_prompt(self, state: DebateState, seat: Seat, part: str) -> bool:
        # Answers are new in every round, and only the debaters are shown what the judge was shown.
        if part not in ("feedback", "again"):
            return super().repeats_prompt(state, seat, part)
        both = (self._calls_of(state, role, "propose") for role in (DEBATER, self.critic_role))
        alike = all(any(begin_alike(seat, call.seat) for call in calls) for calls in both)
        return alike and self.settings.feedback_excerpt is None

    def settings_for_another_round(self, state: DebateState) -> dict[str, Any]:
        return {"max_debate_rounds": state["round"] + 1, "enable_debate": True}

    def opening_role(self, round_number: int) -> str:
        return self.critic_role if round_number > self.first_round else self.answering_role

    def answering_part(self, round_number: int, *, has_spoken: bool) -> str:
        return "again" if has_spoken else "first"

    def label(self, seat: Seat, place: int) -> str:
        is_debater = seat.role == self.answering_role
        return f"Answer {ascii_uppercase[place]}" if is_debater else seat.name

    def call_settings(self, phase: PhaseName, round_number: int) -> RefineSettings:
        if phase == "critique":
            return self._with_timeout(self.settings.judge_feedback_timeout_ms)
        if phase == "propose" and round_number > self.first_round:
            return self._with_timeout(self.settings.debate_timeout_ms)
        return self.settings

    def _with_timeout(self, milliseconds: int) -> RefineSettings:
        seconds = milliseconds / 1000
        limits = {"idle_timeout": seconds, "total_timeout": seconds, "max_retries": 0}
        return self.settings.model_copy(update=limits)

    def stop_decision(self, state: DebateState) -> StopDecision | None:
        number, (_, most) = state["round"], self.rounds
        if not self.settings.enable_debate:
            return stop("max_rounds", number, "the debate is switched off")
        if number == self.first_round and (agreed := self._agreement(state)):
            return agreed
        answers = [turn for turn in turns_of(state, "propose") if turn.round == number]
        if all(turn.status == "kept_previous" for turn in answers):
            return stop("failed", number, "every model failed, so the initial answers stand")
        if number < most:
            return None
        used = f"all {most} refinement rounds were" if most > 1 else "the one refinement round was"
        return stop("max_rounds", number, f"{used} used" if most else "no refinement was asked for")

    def _agreement(self, state: DebateState) -> StopDecision | None:
        saved = self._calls(self.rounds[1]).total() - self._calls(0).total()
        return stop_if_agreed(state, self.settings, saved)


STRATEGY = RefineStrategy
