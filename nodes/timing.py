import time
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

from contend.graph.record import TotalUsage
from contend.graph.state import DebateState, Turn
from contend.graph.values import NO_USAGE, WorkSpan

Interval = tuple[datetime, datetime]

# The wall clock may be changed during a debate, which must not affect the running time. So it is
# read once per run, and the time since then is measured by the monotonic clock.
_began: ContextVar[tuple[datetime, float]] = ContextVar(
    "began", default=(datetime.now(UTC), time.monotonic())
)


def start_clock() -> None:
    _began.set((datetime.now(UTC), time.monotonic()))


def steady_now() -> datetime:
    """Return the current time, unaffected by changes to the system clock during the run."""
    began, monotonic = _began.get()
    return began + timedelta(seconds=time.monotonic() - monotonic)


def intervals(turns: Iterable[Turn | WorkSpan]) -> list[Interval]:
    return [(turn.started_at, turn.ended_at) for turn in turns]


def span_since(started: datetime) -> WorkSpan:
    return WorkSpan(started_at=started, ended_at=steady_now())


def busy_ms(spans: list[Interval]) -> int:
    """Return the milliseconds that the intervals cover, counting overlaps once."""
    covered, reached = timedelta(), datetime.min.replace(tzinfo=UTC)
    for start, end in sorted(spans):
        covered += max(timedelta(), end - max(start, reached))
        reached = max(reached, end)
    return round(covered.total_seconds() * 1000)


def worked_ms(state: DebateState) -> int:
    return busy_ms(retrieval_intervals(state) + intervals(_work(state)))


def retrieval_intervals(state: DebateState) -> list[Interval]:
    retrieval = state.get("retrieval")
    return [(retrieval.started_at, retrieval.ended_at)] if retrieval else []


def spoken_by_models(state: DebateState) -> list[Turn]:
    return [turn for turn in state.get("turns", []) if turn.status != "human"]


def total_usage(state: DebateState) -> TotalUsage:
    used = [each.usage for each in _work(state)]
    tokens = [(usage.input_tokens, usage.output_tokens) for usage in used]
    return TotalUsage(
        input_tokens=_sum_of_known([given for given, _ in tokens]),
        output_tokens=_sum_of_known([given for _, given in tokens]),
        cached_tokens=_sum_of_known([usage.cached_tokens for usage in used]),
        cost_usd=sum(used, NO_USAGE).cost_usd,
        turns=len(spoken_by_models(state)),
        without_usage=sum(None in each for each in tokens),
    )


def _sum_of_known(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known or not counts else None


def _work(state: DebateState) -> list[Turn | WorkSpan]:
    return [*state.get("spans", []), *spoken_by_models(state)]
