"""Decides after each round whether to continue."""

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from contend.graph.errors import BUDGET, ModelFailed
from contend.graph.events import node_event
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import Decision
from contend.graph.state import DebateState, Remark, Turn, seat_with_role, turns_of
from contend.graph.stop_reasons import StopDecision
from contend.models.replies.decision import (
    DecisionBlock,
    ShortDecisionBlock,
    decision_from_block,
    decision_from_report,
    decision_from_text,
)
from contend.models.text import clean
from contend.nodes.budget import budget_stop, ends_rounds_when_spent
from contend.nodes.calls.decide import Reader, decide_calls
from contend.nodes.calls.results import (
    CallResults,
    join_results,
    turn_results,
    update_of,
    with_turns,
)
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import publish_turn, substitute_turn
from contend.nodes.prompting.points import points_of
from contend.nodes.rounds import open_round
from contend.nodes.timing import steady_now

_READER: Reader[DecisionBlock, Decision] = Reader(
    form=DecisionBlock,
    short_form=ShortDecisionBlock,
    from_block=decision_from_block,
    from_words=decision_from_text,
    from_report=decision_from_report,
    for_people="Is another round worth it? Begin with CONTINUE or STOP, then give your reason, "
    "such as: STOP - nothing new was said.",
)


@ends_rounds_when_spent
async def judge_continue(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    if state.get("stop"):  # the budget was used up in the middle of the round
        return {}
    settings, strategy = runtime.context, strategy_for(runtime.context)
    number = state["round"]
    joined = await _ask_judge(state, runtime) if strategy.asks_judge(number) else join_results([])
    judged = joined["turns"]
    seen = _with_results(state, joined)
    stop = strategy.stop_decision(seen)
    if stop is None or stop.reason == "failed":
        stop = budget_stop(seen, settings) or stop
    # The node runs again after the pause, so everything before the pause is free or a task.
    pauses = settings.pause == "each_round" or (settings.pause == "before_synthesis" and stop)
    remark = _ask_person(state, stop) if pauses else Remark()
    if (remark.finish or state.get("finish")) and stop is None:
        stop = StopDecision(reason="user", round=number, evidence="the user asked for the answer")
    if stop:
        stop = stop.model_copy(update={"early": number < strategy.last_round(state)})
    _send_events(runtime, state, stop, judged)
    update: dict[str, Any] = {"stop": stop} if stop else {**open_round(state, runtime, number + 1)}
    if remark.say:
        said = human_turn(state, remark.say)
        publish_turn(runtime, said)
        joined["turns"].append(said)
    return update | update_of(joined)


async def _ask_judge(state: DebateState, runtime: Runtime[Any]) -> CallResults:
    seat = seat_with_role(state, "judge")
    # A failure is stored as a result, so that the judge is not asked again after a pause.
    calls = [(state, seat)]
    (decided,) = await decide_calls(calls, runtime, "judge_continue", "continue", _READER)
    if isinstance(decided, ModelFailed):
        if decided.kind == BUDGET:
            raise decided
        reported = report_problem(runtime, seat, state["round"], "judge_silent", str(decided))
        why = "The judge could not be asked."
        turn = substitute_turn(state, "judge_continue", decided, seat, "failed", why)
        return turn_results(turn, [*decided.before, reported])
    degraded = decided.degraded
    if decided.read is None:
        why = "could not parse the judge's decision; continuing"
        degraded = [*degraded, report_problem(runtime, seat, state["round"], "unreadable", why)]
    turn = decided.turn.model_copy(update={"assessment": decided.read})
    publish_turn(runtime, turn)
    return turn_results(turn, degraded)


def _with_results(state: DebateState, results: CallResults) -> DebateState:
    degraded = [*state.get("degraded", []), *results["degraded"]]
    return {**with_turns(state, results["turns"]), "degraded": degraded}


def human_turn(state: DebateState, text: str) -> Turn:
    now = steady_now()
    count = len(turns_of(state, "remark")) + 1
    return Turn(
        id=f"r{state.get('round', 0)}.remark.{count}",
        round=state.get("round", 0),
        phase="remark",
        seat="user",
        role="user",
        model="",
        text=clean(text),
        started_at=now,
        ended_at=now,
        status="human",
    )


def _ask_person(state: DebateState, stop: StopDecision | None) -> Remark:
    shown = {
        "round": state["round"],
        "stop": stop.model_dump() if stop else None,
        "points": [point.model_dump(mode="json") for point in points_of(state)],
    }
    return interrupt(shown, response_schema=Remark)


def _send_events(
    runtime: Runtime[Any], state: DebateState, stop: StopDecision | None, judged: Sequence[Turn]
) -> None:
    number = state["round"]
    answered = bool(judged) and judged[-1].status != "failed"
    by = {"by_model": answered, **({"seat": judged[-1].seat} if judged else {})}
    read = judged[-1].assessment if judged else None
    why = read.reasoning if isinstance(read, Decision) else ""
    points = [point.model_dump(mode="json") for point in points_of(state)]
    emit = runtime.stream_writer
    facts = strategy_for(runtime.context).round_facts(state)
    responses = [_response(turn) for turn in [*state["turns"], *judged] if turn.round == number]
    emit(node_event("round_complete", number, points=points, responses=responses, **facts))
    if stop is None:
        emit(node_event("judge_decision", number, why or "continue", decision="continue", **by))
        return
    reported = {"decision": "stop", "reason": stop.reason, **by}
    emit(node_event("judge_decision", number, stop.evidence, **reported))
    if stop.early:
        emit(node_event("early_stop", number, stop.evidence, reason=stop.reason))


def _response(turn: Turn) -> dict[str, Any]:
    return turn.model_dump(include={"id", "seat", "role", "model", "phase", "text"})
