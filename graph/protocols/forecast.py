from collections import Counter
from collections.abc import Sequence
from typing import Any

from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest, request_of_outcomes
from contend.graph.forecast_contract.terms import ROLES
from contend.graph.phases import PhaseName
from contend.graph.protocols.base import (
    PlannedCall,
    PromptCall,
    PromptValues,
    Strategy,
    WhenASeatFails,
)
from contend.graph.settings import ForecastSettings
from contend.graph.settings.forecast import request_of, settings_of
from contend.graph.state import DebateState, turns_of
from contend.graph.stop_reasons import StopDecision, stop
from contend.graph.values import Seat
from contend.nodes.forecast.prompt_values import forecast_values
from contend.nodes.forecast.result import round_facts
from contend.nodes.forecast.schedule import rounds_timeout
from contend.nodes.timing import worked_ms


class ForecastStrategy(Strategy[ForecastSettings]):
    writer_role = "judge"
    rates_answer = False
    when_a_seat_fails: WhenASeatFails = "sit_out"

    def __init__(self, settings: ForecastSettings) -> None:
        super().__init__(settings)
        self.answering_role = settings.role_names[0]
        self.rounds = settings.max_rounds, settings.max_rounds
        self.max_steps = 5 * settings.max_rounds + 10

    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        rounds, roles = self.settings.max_rounds, self.settings.role_names
        calls = Counter(dict.fromkeys(roles, rounds))
        calls["judge"] += len(roles) * rounds + 1
        return calls, calls

    def round_calls(self, state: DebateState) -> list[PlannedCall]:
        arguments = [PlannedCall(seat, "propose") for seat in state["seats"] if self.answers(seat)]
        return arguments + self._calls_of(state, "judge", "score") * len(arguments)

    def answers(self, seat: Seat) -> bool:
        return seat.role in self.settings.role_names

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        """Return who speaks now. In the last round, the judge waits for the others."""
        others = tuple(seat for seat in waiting if seat != "judge")
        is_last = round_number == self.settings.max_rounds
        return others if is_last and others else tuple(waiting)

    def prompt_role(self, seat: Seat) -> str:
        return seat.role if seat.role in ROLES else "own_role"

    def token_limit(self, phase: PhaseName) -> int | None:
        return self.settings.max_argument_length if phase == "propose" else None

    def prompt_values(self, call: PromptCall) -> PromptValues:
        return forecast_values(self.settings, call)

    def round_facts(self, state: DebateState) -> dict[str, Any]:
        return round_facts(state, self.settings, state["round"])

    def derived_input(self, given: DebateState) -> DebateState:
        if given.get("request") or not given.get("outcomes"):
            return {}
        given_due = given.get("due")
        return {"request": request_of_outcomes(given["question"], given["outcomes"], given_due)}

    def check_input(self, given: DebateState) -> None:
        if not given.get("request"):
            raise BadInput(
                "A forecast needs the outcomes it is about: two or more, each with an id and "
                "a label."
            )
        request = request_of(given)
        seats = given.get("seats")
        if not (seats and all(isinstance(seat, Seat) for seat in seats)):
            self._check_consistency(request, given.get("question"))

    def _check_consistency(self, request: DebateRequest, question: str | None) -> None:
        if question != request.prediction_context.task.question:
            raise BadInput("The question differs from the request's question. Use the same text.")
        held = self.settings.model_dump(mode="json")
        for name, wanted in settings_of(request).items():
            if wanted != held[name]:
                raise BadInput(
                    f"The request's config sets {name} to {wanted}, but the settings say "
                    f"{held[name]}. Change the setting, or remove it from the request."
                )

    def stop_decision(self, state: DebateState) -> StopDecision | None:
        number, most = state["round"], self.settings.max_rounds
        if number >= most:
            used = f"all {most} rounds were" if number > 1 else "the one round was"
            return stop("max_rounds", number, f"{used} held")
        seconds = rounds_timeout(self.settings)
        if worked_ms(state) >= seconds * 1000:
            why = f"the {seconds:g} s of the rounds were used up"
            return stop("timeout", number, why)
        if not any(turn.round == number for turn in turns_of(state, "propose")):
            return stop("failed", number, "no role could speak")
        return None


STRATEGY = ForecastStrategy
