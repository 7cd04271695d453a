"""The judge, who took no part in the debate, rates the final answer."""

from typing import Any

from langgraph.runtime import Runtime

from graph.errors import ModelFailed
from graph.events import node_event
from graph.state import AutoScore, DebateState, Turn, seat_with_role
from models.control import nonce, read_block
from models.ratings import RatingBlock, RatingReport, ratings_from_words
from nodes.speaking import announce, debate_id, degrade, report_once, say_once, with_report


async def score(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Rate the answer; a judge that fails or cannot be read leaves it honestly unrated."""
    seat = seat_with_role(state, "judge")
    try:
        spoken = await say_once(state, runtime, seat, "score", "score")
    except ModelFailed as failure:
        unrated = degrade(runtime, seat, state["round"], "not_rated", str(failure))
        return {"degraded": [*failure.degraded, unrated]}
    turn, degraded = spoken["turn"], list(spoken["degraded"])
    ratings = read_block(spoken["raw"], nonce(debate_id(runtime), turn.id), RatingBlock)
    ratings = ratings or ratings_from_words(turn.text)
    if ratings is None:
        reported = await report_once(state, runtime, seat, turn.text, RatingReport, [])
        degraded += reported["degraded"]
        turn = with_report(turn, reported)
        if reported["block"] is not None:
            ratings = RatingReport.model_validate(reported["block"])
    announce(runtime, turn)
    update: dict[str, Any] = {"turns": [turn], "degraded": degraded}
    if ratings is None:
        why = "the judge's ratings could not be read"
        degraded.append(degrade(runtime, seat, state["round"], "not_rated", why))
        return update
    rated = _auto_score(ratings, turn)
    runtime.stream_writer(
        node_event("scores", state["round"], rated.justification, **rated.model_dump())
    )
    return update | {"auto_score": rated}


def _auto_score(ratings: RatingBlock, turn: Turn) -> AutoScore:
    return AutoScore(**ratings.model_dump(), score=ratings.weighted, judge_model=turn.model)
