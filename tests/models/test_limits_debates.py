"""Forty parallel debates against a rate-limited provider, with a simulated clock."""

import asyncio
from math import inf
from types import SimpleNamespace

import pytest

from contend.models.providers import response_hooks
from tests.support.scripted import Played, Sent, full_cast, play

DEBATES = 40
CALLS = 6  # of a debate of two rounds, one after another


class Refused(Exception):
    status_code = 429

    def __init__(self, headers: dict[str, str]) -> None:
        self.response = SimpleNamespace(headers=headers)
        super().__init__("Too many requests.")


class Provider:
    """Answers in one second, with a limit on parallel calls or calls per minute."""

    def __init__(self, at_once: float = inf, per_minute: float = inf) -> None:
        self.at_once, self.per_minute = at_once, per_minute
        self.in_flight = self.most = self.counted = self.refusals = 0
        self.window = asyncio.get_running_loop().time()

    async def answer(self, _: Sent) -> None:
        headers = self._count()
        on_headers = response_hooks._on_headers.get()
        assert on_headers is not None
        on_headers(headers)
        if self.in_flight >= self.at_once or self.counted > self.per_minute:
            self.refusals += 1
            raise Refused(headers)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(1)
        finally:
            self.in_flight -= 1

    def _count(self) -> dict[str, str]:
        if self.per_minute == inf:
            return {}
        now = asyncio.get_running_loop().time()
        if now >= self.window + 60:
            self.window, self.counted = now, 0
        self.counted += 1
        return {
            "anthropic-ratelimit-requests-limit": str(self.per_minute),
            "anthropic-ratelimit-requests-remaining": str(max(0, self.per_minute - self.counted)),
            "anthropic-ratelimit-requests-reset": f"{self.window + 60 - now:.3f}",
        }


async def run_debates(provider: Provider) -> tuple[list[Played], float]:
    cast = full_cast()
    cast.before = provider.answer
    began = asyncio.get_running_loop().time()
    played = await asyncio.gather(
        *(play(cast, thread=f"debate-{n}", max_rounds=2, min_rounds=2) for n in range(DEBATES))
    )
    return played, asyncio.get_running_loop().time() - began


def assert_all_done(played: list[Played]) -> None:
    assert all("auto_score" in each.state for each in played)
    assert [each.degraded for each in played if each.degraded] == []


@pytest.mark.looptime
async def test_forty_debates_with_a_limit_of_twenty_parallel_calls() -> None:
    provider = Provider(at_once=20)
    played, seconds = await run_debates(provider)
    assert_all_done(played)
    assert seconds <= 1.2 * DEBATES * CALLS / 20
    assert provider.most == 20


@pytest.mark.looptime
@pytest.mark.parametrize("per_minute", [30, 80])
async def test_forty_debates_with_a_limit_of_calls_per_minute(per_minute: int) -> None:
    provider = Provider(per_minute=per_minute)
    played, seconds = await run_debates(provider)
    assert_all_done(played)
    # The calls of the first minute start at once.
    assert seconds <= 1.2 * 60 * (DEBATES * CALLS / per_minute - 1)
    assert provider.refusals <= max(0, DEBATES - per_minute)
