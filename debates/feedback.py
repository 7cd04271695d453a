import logging
import os
from threading import Thread
from uuid import UUID

from contend.debates.record import StoredDebate
from contend.models.failures import scrub

_SWITCHES = tuple(
    f"{name}_TRACING{version}" for name in ("LANGSMITH", "LANGCHAIN") for version in ("", "_V2")
)
_BEST = 10
# In seconds: more than LangSmith needs, but short enough for a user who is waiting.
_PATIENCE = 5.0
_log = logging.getLogger("contend.debates")


def send_rating(debate_id: str, rating: int) -> None:
    _send(debate_id, "user_rating", rating)


def send_auto_score(debate: StoredDebate) -> None:
    rated = debate.state.get("auto_score")
    if rated and debate.status == "done":
        _send(debate.id, "auto_score", rated["score"])


def _send(debate_id: str, name: str, score: float) -> None:
    if not any(os.environ.get(each) for each in _SWITCHES):
        return
    from langsmith.utils import tracing_is_enabled  # slow to import

    if not tracing_is_enabled():
        return
    # LangSmith's client tries again for minutes, so nobody waits for its end.
    sending = Thread(target=_create_feedback, args=(debate_id, name, score), daemon=True)
    sending.start()
    sending.join(_PATIENCE)
    if sending.is_alive():
        _log.warning("LangSmith has not answered; the %s of debate %s may be lost", name, debate_id)


def _create_feedback(debate_id: str, name: str, score: float) -> None:
    """Send the score, scaled to between 0 and 1, as feedback on the debate's trace."""
    from langsmith.run_trees import get_cached_client  # slow to import
    from langsmith.utils import get_tracer_project

    try:
        client, trace = get_cached_client(), UUID(debate_id)
        project = client.read_project(project_name=get_tracer_project()).id
        about = {"trace_id": trace, "session_id": project}
        client.create_feedback(trace, name, score=score / _BEST, **about)
        client.flush()
    except Exception as error:  # noqa: BLE001 - the rating is stored even without LangSmith
        why = scrub(f"{type(error).__name__}: {error}")
        _log.warning("LangSmith did not take the %s of debate %s: %s", name, debate_id, why)
