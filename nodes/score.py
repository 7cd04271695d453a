from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.events import node_event
from contend.graph.readings import AutoScore
from contend.graph.state import DebateState, seat_with_role
from contend.models.replies.rating import (
    RatingBlock,
    RatingReport,
    ratings_from_report,
    ratings_from_text,
)
from contend.nodes.calls.decide import Reader, decide
from contend.nodes.calls.results import failure_results, update_of
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import publish_turn

_READER: Reader[RatingBlock, RatingBlock] = Reader(
    form=RatingBlock,
    short_form=RatingReport,
    from_block=lambda block, _: block,
    from_words=ratings_from_text,
    from_report=ratings_from_report,
    for_people="Rate the answer, each from 1 to 10, in these six lines:\n"
    "Correctness: 7\nCompleteness: 7\nClarity: 7\nDepth: 7\n"
    "Justification: why you rate it so\nWould benefit from finetune: false",
)


async def score(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    seat = seat_with_role(state, "judge")
    try:
        decided = await decide(state, runtime, seat, "score", "score", _READER)
    except ModelFailed as failure:
        unrated = report_problem(runtime, seat, state["round"], "not_rated", str(failure))
        return update_of(failure_results(failure, unrated))
    turn, ratings, degraded = decided.turn, decided.read, decided.degraded
    publish_turn(runtime, turn)
    update: dict[str, Any] = {"turns": [turn], "degraded": degraded}
    if ratings is None:
        why = "could not parse the judge's ratings"
        degraded.append(report_problem(runtime, seat, state["round"], "not_rated", why))
        return update
    rated = AutoScore(**ratings.model_dump(), score=ratings.weighted, judge_model=turn.model)
    runtime.stream_writer(
        node_event("scores", state["round"], rated.justification, **rated.model_dump())
    )
    return update | {"auto_score": rated}
