from collections.abc import Iterator

from contend.graph.forecast_contract.result import Gap
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState
from contend.nodes.forecast.arguments import (
    FEWEST_PRECEDENTS,
    GOOD_ENOUGH,
    QUALITY_GOAL,
    ScoredArgument,
    cited_precedents,
    context_of,
    latest_statements,
    misses_goal,
    reach_goal,
    verdict_numbers,
    verdict_of,
)
from contend.nodes.forecast.context import (
    left_out,
    question_and_outcomes,
    room_for_facts,
    size_of,
    tokens_to_bytes,
)
from contend.nodes.forecast.numbers import is_complete
from contend.nodes.forecast.schedule import round_phase

_NO_CONFIDENCE = "it gave no confidence between 0 and 1"


def gaps_of(
    state: DebateState, settings: ForecastSettings, kept: list[ScoredArgument]
) -> Iterator[Gap]:
    by_place = {(said.turn.round, said.role): said for said in kept}
    for number in range(1, state["round"] + 1):
        for role in settings.role_names:
            yield from _argument_gaps(state, role, number, by_place.get((number, role)))
    yield from _assessment_gaps(state, settings, kept)
    if state["round"] < settings.max_rounds:
        stop = state.get("stop")
        why = stop.evidence if stop else "the debate was stopped"
        held = f"{state['round']} of {settings.max_rounds} were held"
        yield Gap(what="rounds", why=f"{held}: {why}")
    found = len(cited_precedents(state))
    if "historian" in settings.roles and found < FEWEST_PRECEDENTS:
        why = f"{found} of at least {FEWEST_PRECEDENTS} with a date and an outcome"
        yield Gap(what="historical_precedents", why=why, role="historian")
    yield from _verdict_gaps(state)
    yield from _context_gaps(state, settings)
    if misses_goal(kept):
        reached = reach_goal(kept)
        good = f"{sum(reached)} of {len(reached)} arguments scored above {GOOD_ENOUGH:g}"
        yield Gap(what="argument_quality", why=f"{good}; the goal is {QUALITY_GOAL:.0%}")


def _argument_gaps(
    state: DebateState, role: str, number: int, said: ScoredArgument | None
) -> Iterator[Gap]:
    def gap(what: str, otherwise: str, *whats: str) -> Gap:
        why = _why(state, role, number, *whats)
        return Gap(what=what, why=why or otherwise, role=role, round=number)

    if said is None:
        yield gap("argument", "it was not asked", "sat_out", "out_of_time")
        return
    if not is_complete(said.reading.stated.probabilities, context_of(state).outcome_ids):
        yield gap("probabilities", "they could not be read", "no_numbers")
    if said.reading.outcome is None:
        yield gap("outcome_supported", "it could not be read")
    if said.composite is None:
        yield gap("scores", "it was not scored", "not_scored")
    if said.reading.stated.raw and said.reading.stated.confidence is None:
        yield gap("confidence", _NO_CONFIDENCE)
    why = _why(state, role, number, "no_references")
    if why and not said.reading.refers_to:  # the replaced version may have had none
        yield Gap(what="references", why=why, role=role, round=number)


def _assessment_gaps(
    state: DebateState, settings: ForecastSettings, kept: list[ScoredArgument]
) -> Iterator[Gap]:
    latest, last = latest_statements(kept), state["round"]
    for role in settings.role_names:
        if role not in latest:
            why = "it gave no readable probabilities, so the consensus is without it"
            yield Gap(what="assessment", why=why, role=role)
        elif latest[role].turn.round < last:
            why = f"its last readable probabilities are those of round {latest[role].turn.round}"
            yield Gap(what="latest_assessment", why=why, role=role, round=last)


def _verdict_gaps(state: DebateState) -> Iterator[Gap]:
    verdict, given = verdict_of(state), verdict_numbers(state)
    missing = [outcome for outcome in context_of(state).outcome_ids if outcome not in given]
    if verdict is None:
        why = _why(state, "judge", state["round"], "no_verdict", "out_of_time")
        yield Gap(what="verdict", why=why or "the judge gave none", role="judge")
    elif missing:
        why = f"the judge gave no readable probability for {', '.join(missing)}"
        yield Gap(what="verdict", why=why, role="judge")
    if verdict is not None and verdict.stated.raw and verdict.stated.confidence is None:
        yield Gap(what="confidence", why=_NO_CONFIDENCE, role="judge")
    if verdict is not None and verdict.read_from != "block":
        why = "the verdict's record could not be read"
        yield Gap(what="key_insights", why=why, role="judge")


def _context_gaps(state: DebateState, settings: ForecastSettings) -> Iterator[Gap]:
    context = context_of(state)
    held = dict.fromkeys(round_phase(settings, each) for each in range(1, state["round"] + 1))
    for part in (*held, "final"):
        if missing := left_out(context, room_for_facts(settings, part)):
            where = "the verdict" if part == "final" else f"the {part} arguments"
            yield Gap(what="context", why=f"no room in prompts of {where} for {', '.join(missing)}")
    asked = size_of([question_and_outcomes(state["question"], context)])
    if asked > tokens_to_bytes(settings.argument_input_tokens):
        why = (
            "the question and its outcomes alone are longer than argument_input_tokens "
            f"({settings.argument_input_tokens}), so all prompts are longer"
        )
        yield Gap(what="argument_input_tokens", why=why)


def _why(state: DebateState, seat: str, number: int, *whats: str) -> str | None:
    said = [
        entry.why
        for entry in state.get("degraded", [])
        if entry.seat == seat and entry.round == number and entry.what in whats
    ]
    return said[-1] if said else None
