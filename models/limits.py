"""What all debates of a process know of a provider: calls at once, waits after a 429, outages."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from weakref import WeakKeyDictionary

from contend.graph.errors import Paused
from contend.models.providers.registry import API_KEYS, ModelSpec

_SECONDS_BETWEEN_LOOKS = 0.1
# So many answers for each call at once, before one more call at once is tried.
_ANSWERS_PER_STEP = 10
# After so many failures in a row a provider is asked again only now and then.
_FAILURES_IN_A_ROW, _SECONDS_BETWEEN_PROBES = 5, 30.0
_OUTAGES = {"server", "connection", "first_token", "idle", "total", "cut"}


@dataclass(frozen=True)
class Outage:
    """A provider whose last calls all failed."""

    provider: str
    since: datetime
    next_probe: datetime


@dataclass
class ProviderLimits:
    """Calls in flight to one provider, how many it takes, and whether it is down."""

    most: float = inf
    in_flight: int = 0
    _closed_until: float = 0.0
    failures: int = 0  # in a row
    without_max_tokens: set[str] = field(default_factory=set)  # models that refuse our max_tokens
    _down_since: float = 0.0
    _next_probe: float = 0.0
    _answers: int = 0
    _queues: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)

    @asynccontextmanager
    async def slot(
        self, debate: str, most: int | None, pause_requested: Callable[[], bool]
    ) -> AsyncIterator[None]:
        """Wait for a free place; debates that wait get one in turn."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(debate, deque()).append(waiting)
        try:
            self._admit(most)
            while not waiting.done() and not pause_requested():
                await asyncio.wait([waiting], timeout=_SECONDS_BETWEEN_LOOKS)
                self._admit(most)
            if not waiting.done():
                raise Paused
            yield
        finally:
            self._leave(debate, waiting)
            self._admit(most)

    @property
    def is_down(self) -> bool:
        return self.failures >= _FAILURES_IN_A_ROW

    def may_ask(self) -> bool:
        """Whether to try this provider: one that is down gets a single call now and then."""
        now = asyncio.get_running_loop().time()
        if self.is_down and now < self._next_probe:
            return False
        self._next_probe = now + _SECONDS_BETWEEN_PROBES
        return True

    def failed(self, kind: str) -> None:
        self.failures = self.failures + 1 if kind in _OUTAGES else 0
        now = asyncio.get_running_loop().time()
        if self.failures == _FAILURES_IN_A_ROW:
            self._down_since = now
        self._next_probe = max(self._next_probe, now + _SECONDS_BETWEEN_PROBES)

    def outage(self, provider: str) -> "Outage | None":
        """Return the outage while it lasts; once a probe is due, the provider counts as up."""
        now = asyncio.get_running_loop().time()
        if not self.is_down or now >= self._next_probe:
            return None
        clock = datetime.now(UTC)
        return Outage(
            provider=provider,
            since=clock - timedelta(seconds=now - self._down_since),
            next_probe=clock + timedelta(seconds=self._next_probe - now),
        )

    def answered(self) -> None:
        self.failures = 0
        self._answers += 1
        if self._answers >= _ANSWERS_PER_STEP * self.most:
            self.most, self._answers = self.most + 1, 0

    def refused(self, retry_after: float | None) -> None:
        """Learn from a 429: those that are still in flight are what the provider takes."""
        self.most, self._answers = max(1, self.in_flight - 1), 0
        now = asyncio.get_running_loop().time()
        self._closed_until = max(self._closed_until, now + (retry_after or 0))

    def _admit(self, most: int | None) -> None:
        limit = min(self.most, most or inf)
        while self._queues and self.in_flight < limit and self._is_open():
            debate = next(iter(self._queues))
            queue = self._queues.pop(debate)
            waiting = queue.popleft()
            if queue:
                self._queues[debate] = queue  # after the others
            self.in_flight += 1
            waiting.set_result(None)

    def _is_open(self) -> bool:
        return asyncio.get_running_loop().time() >= self._closed_until

    def _leave(self, debate: str, waiting: asyncio.Future[None]) -> None:
        if waiting.done():
            self.in_flight -= 1
        elif queue := self._queues.get(debate):
            queue.remove(waiting)
            if not queue:
                del self._queues[debate]


_KNOWN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, ...], ProviderLimits]] = (
    WeakKeyDictionary()
)


def limits_of(spec: ModelSpec) -> ProviderLimits:
    """Return the limits of this provider, address and key."""
    names = (API_KEYS.get(spec.provider, ""), "OPENAI_BASE_URL", "OLLAMA_HOST")
    account = (spec.provider, *(os.environ.get(name, "") for name in names))
    known = _KNOWN.setdefault(asyncio.get_running_loop(), {})
    return known.setdefault(account, ProviderLimits())


def current_outages() -> tuple[list[Outage], bool]:
    """Return the providers that are down, and whether all that were called are."""
    known = _KNOWN.get(asyncio.get_running_loop(), {})
    found = [limits.outage(account[0]) for account, limits in known.items()]
    return [each for each in found if each], bool(found) and all(found)
