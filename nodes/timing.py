"""Working time of a debate, without pauses and the time between resumes."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from contend.graph.state import DebateState, Turn
from contend.graph.values import Usage, WorkSpan

Interval = tuple[datetime, datetime]


def intervals(turns: Iterable[Turn | WorkSpan]) -> list[Interval]:
    return [(turn.started_at, turn.ended_at) for turn in turns]


def since(started: datetime) -> WorkSpan:
    """Return the time span from `started` until now."""
    return WorkSpan(started_at=started, ended_at=datetime.now(UTC))


def call_since(started: datetime, usage: Usage) -> WorkSpan:
    """Return the time span of a call that produced no turn."""
    return WorkSpan(started_at=started, ended_at=datetime.now(UTC), calls=1, usage=usage)


def busy_ms(spans: list[Interval]) -> int:
    """Return the time covered by the intervals; overlaps count once."""
    covered, reached = timedelta(), datetime.min.replace(tzinfo=UTC)
    for start, end in sorted(spans):
        covered += max(timedelta(), end - max(start, reached))
        reached = max(reached, end)
    return round(covered.total_seconds() * 1000)


def worked_ms(state: DebateState) -> int:
    """Return the time of retrieval, all model turns, and calls that produced no turn."""
    retrieval = state.get("retrieval")
    opening = [(retrieval.started_at, retrieval.ended_at)] if retrieval else []
    spoken = [turn for turn in state.get("turns", []) if turn.status != "human"]
    return busy_ms([*opening, *intervals(spoken), *intervals(state.get("spans", []))])
