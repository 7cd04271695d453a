import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from weakref import WeakKeyDictionary

from contend.graph.errors import Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import Usage
from contend.models.failures import StatedBudget, stated_budget
from contend.models.providers.registry import API_KEYS, ModelSpec

_POLL_SECONDS = 0.1
# After this many answers per allowed parallel call, one more parallel call is tried.
_ANSWERS_PER_STEP = 10
# After this many failures in a row, a provider is tried only once per interval.
_FAILURES_IN_A_ROW, _SECONDS_BETWEEN_PROBES = 5, 30.0
_OUTAGES = {"server", "connection", "first_token", "idle", "total", "cut"}


@dataclass(frozen=True)
class Outage:
    """A provider whose latest calls all failed."""

    provider: str
    since: datetime
    next_probe: datetime


@dataclass(frozen=True)
class Allowance:
    """A call's estimated tokens, and the rate and concurrency limits of its debate."""

    calls_at_once: float = inf
    requests_per_minute: float = inf
    tokens_per_minute: float = inf
    tokens: int = 0  # an estimate

    @property
    def limits(self) -> tuple[float, ...]:
        return self.calls_at_once, self.requests_per_minute, self.tokens_per_minute

    @classmethod
    def of(cls, settings: DebateSettings, tokens: int) -> "Allowance":
        return cls(
            settings.max_parallel_calls or inf,
            settings.requests_per_minute or inf,
            settings.tokens_per_minute or inf,
            tokens,
        )


@dataclass(eq=False)
class StartedCall:
    at: float
    tokens: int
    allowance: Allowance
    is_counted: bool = False  # whether the provider's latest headers already count it


@dataclass(frozen=True, eq=False)
class _Waiting:
    started: asyncio.Future[StartedCall]
    allowance: Allowance


@dataclass
class _Budget:
    """The remaining requests or tokens until the next reset, as reported by the provider."""

    left: float = inf
    limit: float = inf
    seconds: float = inf
    resets_at: float = inf

    def update(self, stated: StatedBudget, pending: float) -> None:
        self.left, self.limit = stated.left - pending, stated.limit
        self.seconds, self.resets_at = stated.seconds, _now() + stated.seconds

    def has_room_for(self, amount: float) -> bool:
        if _now() >= self.resets_at:
            self.left, self.resets_at = self.limit, _now() + self.seconds
        return self.left >= min(amount, self.limit)


@dataclass
class ProviderLimits:
    max_parallel: float = inf
    failures: int = 0  # in a row
    without_max_tokens: set[str] = field(default_factory=set)  # models that refuse our max_tokens
    _closed_until: float = 0.0
    _down_since: float = 0.0
    _next_probe: float = 0.0
    _answers: int = 0
    _running: set[StartedCall] = field(default_factory=set)
    _last_minute: deque[StartedCall] = field(default_factory=deque)
    _requests: _Budget = field(default_factory=_Budget)
    _tokens: _Budget = field(default_factory=_Budget)
    _queues: dict[str, deque[_Waiting]] = field(default_factory=dict)

    @asynccontextmanager
    async def slot(
        self, debate: str, allowance: Allowance, pause_requested: Callable[[], bool]
    ) -> AsyncIterator[StartedCall]:
        waiting = _Waiting(asyncio.get_running_loop().create_future(), allowance)
        self._queues.setdefault(debate, deque()).append(waiting)
        try:
            self._start_waiting_calls()
            while not waiting.started.done() and not pause_requested():
                await asyncio.wait([waiting.started], timeout=_POLL_SECONDS)
                self._start_waiting_calls()
            if not waiting.started.done():
                raise Paused
            yield waiting.started.result()
        finally:
            self._leave(debate, waiting)
            self._start_waiting_calls()

    @property
    def in_flight(self) -> int:
        return len(self._running)

    @property
    def is_down(self) -> bool:
        return self.failures >= _FAILURES_IN_A_ROW

    def may_ask(self) -> bool:
        """Return whether to call the provider now. In an outage, allow one call per interval."""
        if self.is_down and _now() < self._next_probe:
            return False
        self._next_probe = _now() + _SECONDS_BETWEEN_PROBES
        return True

    def failed(self, kind: str) -> None:
        self.failures = self.failures + 1 if kind in _OUTAGES else 0
        if self.failures == _FAILURES_IN_A_ROW:
            self._down_since = _now()
        self._next_probe = max(self._next_probe, _now() + _SECONDS_BETWEEN_PROBES)

    def outage(self, provider: str) -> Outage | None:
        """Return the provider's outage, or None if the provider may be called."""
        if not self.is_down or _now() >= self._next_probe:
            return None
        clock = datetime.now(UTC)
        return Outage(
            provider=provider,
            since=clock - timedelta(seconds=_now() - self._down_since),
            next_probe=clock + timedelta(seconds=self._next_probe - _now()),
        )

    def answered(self, call: StartedCall, usage: Usage) -> None:
        self.failures = 0
        call.tokens = (usage.input_tokens or call.tokens) + (usage.output_tokens or 0)
        self._answers += 1
        if self._answers >= _ANSWERS_PER_STEP * self.max_parallel:
            self.max_parallel, self._answers = self.max_parallel + 1, 0

    def refused(self, call: StartedCall, retry_after: float | None) -> None:
        """After a 429, allow fewer parallel calls, unless a request or token limit explains it."""
        self._closed_until = max(self._closed_until, _now() + (retry_after or 0))
        if self._requests.has_room_for(1) and self._tokens.has_room_for(call.tokens):
            self.max_parallel, self._answers = max(1, self.in_flight - 1), 0

    def read_headers(self, call: StartedCall, headers: Mapping[str, str]) -> None:
        call.is_counted = True
        pending = [each for each in self._running if not each.is_counted]
        if stated := stated_budget(headers, "requests"):
            self._requests.update(stated, len(pending))
        if stated := stated_budget(headers, "tokens"):
            self._tokens.update(stated, sum(each.tokens for each in pending))

    def _start_waiting_calls(self) -> None:
        while (debate := self._next_debate()) is not None:
            queue = self._queues.pop(debate)
            waiting = queue.popleft()
            if queue:
                self._queues[debate] = queue  # move this debate to the end
            waiting.started.set_result(self._start(waiting.allowance))

    def _next_debate(self) -> str | None:
        used_up: set[tuple[float, ...]] = set()  # limits with a debate already waiting for them
        for debate, queue in self._queues.items():
            allowance = queue[0].allowance
            if allowance.limits in used_up:
                continue
            if self._is_within(allowance):
                return debate if self._has_room_for(allowance) else None
            used_up.add(allowance.limits)
        return None

    def _has_room_for(self, allowance: Allowance) -> bool:
        return (
            self._is_open()
            and self.in_flight < self.max_parallel
            and self._requests.has_room_for(1)
            and self._tokens.has_room_for(allowance.tokens)
        )

    def _is_within(self, allowance: Allowance) -> bool:
        """Return whether a call fits its limits. Calls with higher limits do not count."""
        while self._last_minute and self._last_minute[0].at <= _now() - 60:
            self._last_minute.popleft()
        at_once, requests, tokens = allowance.limits
        if at_once < inf:
            running = [each for each in self._running if each.allowance.calls_at_once <= at_once]
            if len(running) >= at_once:
                return False
        last = self._last_minute
        if requests < inf:
            started = [each for each in last if each.allowance.requests_per_minute <= requests]
            if len(started) >= requests:
                return False
        spent = [each.tokens for each in last if each.allowance.tokens_per_minute <= tokens]
        return not spent or sum(spent) + allowance.tokens <= tokens

    def _start(self, allowance: Allowance) -> StartedCall:
        call = StartedCall(_now(), allowance.tokens, allowance)
        self._running.add(call)
        self._last_minute.append(call)
        self._requests.left -= 1
        self._tokens.left -= call.tokens
        return call

    def _is_open(self) -> bool:
        return _now() >= self._closed_until

    def _leave(self, debate: str, waiting: _Waiting) -> None:
        if waiting.started.done():
            self._running.discard(waiting.started.result())
        elif queue := self._queues.get(debate):
            queue.remove(waiting)
            if not queue:
                del self._queues[debate]


def _now() -> float:
    return asyncio.get_running_loop().time()


_KNOWN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, ...], ProviderLimits]] = (
    WeakKeyDictionary()
)


def limits_of(spec: ModelSpec) -> ProviderLimits:
    names = (
        API_KEYS.get(spec.provider, ""),
        "OPENAI_BASE_URL",
        "OPENROUTER_BASE_URL",
        "OLLAMA_HOST",
    )
    account = (spec.provider, *(os.environ.get(name, "") for name in names))
    known = _KNOWN.setdefault(asyncio.get_running_loop(), {})
    return known.setdefault(account, ProviderLimits())


def current_outages() -> tuple[list[Outage], bool]:
    """Return all outages, and whether every provider called so far has an outage."""
    known = _KNOWN.get(asyncio.get_running_loop(), {})
    found = [limits.outage(account[0]) for account, limits in known.items()]
    return [each for each in found if each], bool(found) and all(found)
