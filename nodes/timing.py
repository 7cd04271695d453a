"""Time really worked in a debate: pauses and time between resumes left out."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from contend.graph.state import DebateState, Turn
from contend.graph.values import Usage, WorkSpan

Interval = tuple[datetime, datetime]


def intervals(turns: Iterable[Turn | WorkSpan]) -> list[Interval]:
    """When each of them began and ended."""
    return [(turn.started_at, turn.ended_at) for turn in turns]


def since(started: datetime) -> WorkSpan:
    """The stretch from then to now."""
    return WorkSpan(started_at=started, ended_at=datetime.now(UTC))


def call_since(started: datetime, usage: Usage) -> WorkSpan:
    """The stretch of a call that brought no turn."""
    return WorkSpan(started_at=started, ended_at=datetime.now(UTC), calls=1, usage=usage)


def busy_ms(spans: list[Interval]) -> int:
    """The time covered by the intervals, counting what overlaps once."""
    covered, reached = timedelta(), datetime.min.replace(tzinfo=UTC)
    for start, end in sorted(spans):
        covered += max(timedelta(), end - max(start, reached))
        reached = max(reached, end)
    return round(covered.total_seconds() * 1000)


def worked_ms(state: DebateState) -> int:
    """Retrieval, all turns of models so far, and calls that brought none."""
    retrieval = state.get("retrieval")
    opening = [(retrieval.started_at, retrieval.ended_at)] if retrieval else []
    spoken = [turn for turn in state.get("turns", []) if turn.status != "human"]
    return busy_ms([*opening, *intervals(spoken), *intervals(state.get("spans", []))])
