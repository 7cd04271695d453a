from collections import Counter
from collections.abc import Sequence
from typing import Any

from contend.graph.phases import STATEMENTS, PhaseName
from contend.graph.protocols.base import PlannedCall, PromptCall, PromptValues, Strategy
from contend.graph.settings import FolderPlan, ModeratedSettings, outputs_home
from contend.graph.settings.moderated import ADVOCATE
from contend.graph.state import DebateState, Step, seat_with_id
from contend.graph.stop_reasons import StopDecision, stop
from contend.models.replies.moderated import MOST_CLAIMS
from contend.nodes.moderated.judge_values import judge_values
from contend.nodes.moderated.prompt_values import ModeratedPrompt, moderated_values
from contend.nodes.moderated.schedule import (
    adjustments_in,
    argument_round,
    closings,
    openings,
    planned_rounds,
    sides_of,
)


class ModeratedStrategy(Strategy[ModeratedSettings]):
    answering_role = ADVOCATE
    roles_for_people = frozenset({ADVOCATE})
    writer_role = "moderator"
    first_round = 0  # the opening statements

    def __init__(self, settings: ModeratedSettings) -> None:
        super().__init__(settings)
        count = settings.round_count
        self.rounds = count, count
        if settings.moderator_may_adjust:
            count = settings.max_round_count
        # Each statement takes four steps: request, statement, check, correction.
        self.max_steps = 4 * len(settings.positions) * (2 + 2 * count) + 3 * count + 20
        base = settings.output_dir or outputs_home()
        form, transcript = settings.output_format, settings.generate_full_transcript
        self.folder_plan = FolderPlan(base, form, transcript)

    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        count, settings = self.settings.round_count, self.settings
        adjusts = settings.moderator_may_adjust
        fewest = self._calls(settings.min_round_count if adjusts else count, checks=1)
        most = self._calls(settings.max_round_count if adjusts else count, checks=2 + MOST_CLAIMS)
        return fewest, most

    def round_calls(self, state: DebateState) -> list[PlannedCall]:
        sides = [side.id for side in sides_of(state)]
        calls = self._planned(state, argument_round(sides, state["round"] + 1))
        checkers = [seat for seat in state["seats"] if seat.role == "fact_checker"]
        statements = sum(call.phase in STATEMENTS for call in calls)
        checks = [PlannedCall(seat, "fact_check") for seat in checkers]
        return calls + checks * (2 * statements)

    def closing_calls(self, state: DebateState) -> list[PlannedCall]:
        due = state.get("programme", [])[1:] if state.get("stop") else None
        steps = closings([side.id for side in sides_of(state)]) if due is None else due
        scores = (state["round"] + 2) * self.settings.format.orders
        return [
            *self._planned(state, steps),
            *self._calls_of(state, "judge", "score") * scores,
            *self._calls_of(state, "moderator", "synthesize"),
        ]

    def _planned(self, state: DebateState, steps: Sequence[Step]) -> list[PlannedCall]:
        return [PlannedCall(seat_with_id(state, step.seat), step.phase) for step in steps]

    def _calls(self, rounds: int, checks: int) -> Counter[str]:
        """Count each role's calls. Fact-checking a statement takes `checks` calls."""
        sides = [side.name for side in self.settings.positions]
        stages = [openings(sides), closings(sides)]
        stages += [argument_round(sides, number) for number in range(1, rounds + 1)]
        steps = [step for stage in stages for step in stage]
        statements = sum(step.phase in STATEMENTS for step in steps)
        undecided = not all(side.position for side in self.settings.positions)
        scores = len(stages) * self.settings.format.orders
        checked = statements * checks if self.settings.fact_check else 0
        moderator = len(steps) - statements + undecided + 1
        others = {"moderator": moderator, "fact_checker": checked, "judge": scores}
        return Counter({self.answering_role: statements, **others})

    def settings_for_another_round(self, state: DebateState) -> dict[str, Any]:
        added = planned_rounds(self.settings, state["turns"]) - self.settings.round_count
        return {"round_count": state["round"] + 1 - added, "moderator_may_adjust": False}

    def opening_role(self, round_number: int) -> str:
        return "moderator"

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        return tuple(waiting[:1])

    def token_limit(self, phase: PhaseName) -> int | None:
        limits: dict[PhaseName, int] = {
            "opening": self.settings.opening_statement_max_tokens,
            "argument": self.settings.argument_max_tokens,
            "rebuttal": self.settings.argument_max_tokens,
            "closing": self.settings.closing_statement_max_tokens,
            "correction": self.settings.correction_max_tokens,
        }
        return limits.get(phase)

    def time_limit(self, phase: PhaseName) -> float | None:
        has_limit = self.token_limit(phase) is not None
        return self.settings.statement_max_seconds if has_limit else None

    def prompt_values(self, call: PromptCall) -> PromptValues:
        prompt = ModeratedPrompt(**vars(call))
        return {**moderated_values(self.settings, prompt), **judge_values(prompt)}

    def last_round(self, state: DebateState) -> int:
        return planned_rounds(self.settings, state.get("turns", []))

    def stop_decision(self, state: DebateState) -> StopDecision | None:
        number, turns = state["round"], state.get("turns", [])
        most = self.last_round(state)
        for turn, made in adjustments_in(turns):
            if made.change == "cut" and turn.round == number:
                return stop("moderator_stop", number, turn.text)
        if number < most:
            return None
        used = f"all {most} rounds were argued" if most > 1 else "the one round was argued"
        return stop("max_rounds", number, used if most else "no rounds were asked for")


STRATEGY = ModeratedStrategy
