"""Sends the ratings of debates to LangSmith as feedback, if traces go there."""

import logging
import os
from uuid import UUID

from contend.graph.state import DebateState
from contend.models.failures import scrub

_SWITCHES = tuple(
    f"{name}_TRACING{version}" for name in ("LANGSMITH", "LANGCHAIN") for version in ("", "_V2")
)
_BEST = 10
_log = logging.getLogger("contend.debates")


def send_rating(debate_id: str, rating: int) -> None:
    _send(debate_id, "user_rating", rating)


def send_auto_score(debate_id: str, state: DebateState) -> None:
    rated = state.get("auto_score")
    if rated:
        _send(debate_id, "auto_score", rated.score)


def _send(debate_id: str, name: str, score: float) -> None:
    """Scale the score to 0 to 1 and send it for the trace, whose id is the debate's."""
    if not any(os.environ.get(each) for each in _SWITCHES):
        return
    from langsmith.run_trees import get_cached_client  # slow to import
    from langsmith.utils import get_tracer_project, tracing_is_enabled

    if not tracing_is_enabled():
        return
    try:
        client, trace = get_cached_client(), UUID(debate_id)
        project = client.read_project(project_name=get_tracer_project()).id
        about = {"trace_id": trace, "session_id": project}
        client.create_feedback(trace, name, score=score / _BEST, **about)
        client.flush()
    except Exception as error:  # noqa: BLE001 - the rating is stored even without LangSmith
        why = scrub(f"{type(error).__name__}: {error}")
        _log.warning("LangSmith did not take the %s of debate %s: %s", name, debate_id, why)
