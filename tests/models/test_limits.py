"""Limits on the calls of all debates in a process to one provider."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest

from contend.graph.errors import Paused
from contend.graph.values import Usage
from contend.models.limits import Allowance, ProviderLimits, StartedCall, current_outages, limits_of
from contend.models.providers.registry import parse_spec

ANY = Allowance()
CALL = StartedCall(0, 0, ANY)


class Provider:
    """Refuses calls over its limits (parallel and per minute)."""

    def __init__(self, takes: int, per_minute: int | None = None, *, says_so: bool = True) -> None:
        self.takes, self.busy, self.refusals = takes, 0, 0
        self.per_minute, self.says_so, self.counted = per_minute, says_so, 0
        self.window = 0.0
        self.order: list[str] = []

    def headers(self) -> dict[str, str]:
        """Count a call in its minute and return the rate-limit headers."""
        if not self.per_minute:
            return {}
        now = asyncio.get_running_loop().time()
        if now >= self.window + 60:
            self.window, self.counted = now, 0
        self.counted += 1
        return {
            "x-ratelimit-limit-requests": str(self.per_minute),
            "x-ratelimit-remaining-requests": str(max(0, self.per_minute - self.counted)),
            "x-ratelimit-reset-requests": f"{self.window + 60 - now:.3f}s",
        }

    async def call(self, limits: ProviderLimits, debate: str, allowance: Allowance = ANY) -> None:
        while True:
            async with limits.slot(debate, allowance, lambda: False) as call:
                headers, over = self.headers(), self.counted > (self.per_minute or inf)
                if self.says_so:
                    limits.read_headers(call, headers)
                if self.busy < self.takes and not over:
                    self.busy += 1
                    self.order.append(debate)
                    await asyncio.sleep(1)
                    self.busy -= 1
                    limits.answered(call, Usage())
                    return
                self.refusals += 1
                limits.refused(call, None)
            await asyncio.sleep(0.5)


async def run(
    provider: Provider,
    limits: ProviderLimits,
    debates: int,
    calls: int,
    allowance: Allowance = ANY,
) -> float:
    """Run the debates, each with sequential calls; return the seconds it took."""

    async def debate(name: str) -> None:
        for _ in range(calls):
            await provider.call(limits, name, allowance)

    loop = asyncio.get_running_loop()
    began = provider.window = loop.time()
    await asyncio.gather(*(debate(f"d{number}") for number in range(debates)))
    return loop.time() - began


@pytest.mark.looptime
async def test_learns_the_parallel_limit_from_refusals() -> None:
    provider, limits = Provider(takes=20), ProviderLimits()
    seconds = await run(provider, limits, debates=40, calls=10)
    assert len(provider.order) == 400
    assert 20 <= limits.max_parallel <= 22
    assert seconds <= 1.2 * 400 / 20
    assert provider.refusals < 40


@pytest.mark.looptime
@pytest.mark.parametrize("per_minute", [20, 60])
async def test_learns_requests_per_minute_from_headers(per_minute: int) -> None:
    provider, limits = Provider(takes=100, per_minute=per_minute), ProviderLimits()
    seconds = await run(provider, limits, debates=40, calls=6)
    # The first minute's calls start at once, those of the last minute take no minute.
    ideal = 60 * (40 * 6 / per_minute - 1)
    assert len(provider.order) == 240
    assert ideal <= seconds <= 1.2 * ideal
    # Nobody knew at first; afterwards no call is sent in vain, and the calls at once stay free.
    assert provider.refusals <= max(0, 40 - per_minute)
    assert limits.max_parallel == inf


@pytest.mark.looptime
async def test_requests_per_minute_can_be_set() -> None:
    provider, limits = Provider(takes=100, per_minute=20, says_so=False), ProviderLimits()
    seconds = await run(
        provider, limits, debates=40, calls=3, allowance=Allowance(requests_per_minute=20)
    )
    assert provider.refusals == 0
    assert 300 <= seconds <= 1.2 * 300


@pytest.mark.looptime
async def test_tokens_per_minute_can_be_set() -> None:
    limits, loop, starts = ProviderLimits(), asyncio.get_running_loop(), list[float]()
    began, allowance = loop.time(), Allowance(tokens_per_minute=1000, tokens=300)
    for _ in range(6):
        async with limits.slot("a", allowance, lambda: False) as call:
            starts.append(round(loop.time() - began))
            limits.answered(call, Usage(input_tokens=300, output_tokens=200))
    assert starts == [0, 0, 60, 60, 120, 120]
    large = Allowance(tokens_per_minute=1000, tokens=5000)
    async with limits.slot("a", large, lambda: False):
        assert 180 <= loop.time() - began < 181, "a call over the limit goes alone"


@pytest.mark.looptime
async def test_waits_for_the_token_limit_to_reset() -> None:
    limits, loop = ProviderLimits(), asyncio.get_running_loop()
    stated = {"limit": "9000", "remaining": "100", "reset": "12.5s"}
    async with limits.slot("a", ANY, lambda: False) as call:
        headers = {f"x-ratelimit-{name}-tokens": value for name, value in stated.items()}
        limits.read_headers(call, headers)
    began = loop.time()
    async with limits.slot("a", Allowance(tokens=50), lambda: False):
        assert loop.time() == began
    async with limits.slot("a", Allowance(tokens=60), lambda: False):
        assert 12 <= loop.time() - began < 13


@pytest.mark.looptime
async def test_a_setting_limits_parallel_calls() -> None:
    provider, limits = Provider(takes=3), ProviderLimits()
    await asyncio.gather(*(provider.call(limits, f"d{n}", Allowance(3)) for n in range(30)))
    assert provider.refusals == 0


@pytest.mark.looptime
@pytest.mark.parametrize(
    "strict",
    [Allowance(calls_at_once=1), Allowance(requests_per_minute=1), Allowance(tokens_per_minute=1)],
)
async def test_a_debate_with_its_own_limit_does_not_delay_others(strict: Allowance) -> None:
    strict = replace(strict, tokens=1)
    provider, limits = Provider(takes=100), ProviderLimits()
    async with asyncio.timeout(12), limits.slot("strict", strict, lambda: False):
        waiting = asyncio.create_task(provider.call(limits, "strict", strict))
        await run(provider, limits, debates=5, calls=10)
    assert "strict" not in provider.order
    await waiting


@pytest.mark.looptime
async def test_a_call_outside_a_debate_is_not_blocked() -> None:
    async with asyncio.timeout(1), ProviderLimits().slot("", ANY, lambda: False):
        pass


@pytest.mark.looptime
async def test_debates_without_a_limit_do_not_block_one_with_a_limit() -> None:
    provider, limits = Provider(takes=100), ProviderLimits()
    others = asyncio.create_task(run(provider, limits, debates=5, calls=10))
    await asyncio.gather(*(provider.call(limits, "strict", Allowance(1)) for _ in range(5)))
    assert not others.done()
    await others


@pytest.mark.looptime
async def test_debates_that_wait_are_served_in_turn() -> None:
    provider, limits = Provider(takes=1), ProviderLimits()
    names = [*["large"] * 6, "small", "small"]
    await asyncio.gather(*(provider.call(limits, name, Allowance(1)) for name in names))
    assert provider.order[:5] == ["large", "large", "small", "large", "small"]


@pytest.mark.looptime
async def test_no_debate_calls_before_retry_after_has_passed() -> None:
    limits, loop = ProviderLimits(), asyncio.get_running_loop()
    async with limits.slot("a", ANY, lambda: False) as call:
        limits.refused(call, 30)
    began = loop.time()
    async with limits.slot("b", ANY, lambda: False):
        assert 30 <= loop.time() - began < 31


@pytest.mark.looptime
@pytest.mark.parametrize("pause", [lambda: True, lambda: False])
async def test_a_cancelled_wait_frees_its_slot(pause: Callable[[], bool]) -> None:
    limits = ProviderLimits(max_parallel=1)

    async def wait() -> None:
        async with limits.slot("b", ANY, pause):
            pytest.fail("there was no place")

    async with limits.slot("a", ANY, lambda: False):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises((Paused, asyncio.CancelledError)):
            await waiting
    assert limits.in_flight == 0
    async with limits.slot("c", ANY, lambda: False):
        assert limits.in_flight == 1


@pytest.mark.looptime
async def test_a_provider_that_is_down_is_probed_every_30_seconds() -> None:
    limits = ProviderLimits()
    for _ in range(5):
        assert limits.may_ask()
        limits.failed("server")
    assert limits.is_down
    assert not limits.may_ask()
    await asyncio.sleep(31)
    assert [limits.may_ask(), limits.may_ask()] == [True, False]
    limits.failed("connection")
    assert not limits.may_ask()
    await asyncio.sleep(31)
    assert limits.may_ask()
    limits.answered(CALL, Usage())
    assert not limits.is_down
    assert limits.may_ask()


@pytest.mark.looptime
async def test_an_outage_is_reported_until_the_next_probe_is_due() -> None:
    limits, other = limits_of(parse_spec("openai:a")), limits_of(parse_spec("ollama:a"))
    assert current_outages() == ([], False)
    for _ in range(5):
        limits.failed("connection")
        await asyncio.sleep(2)
    (outage,), are_all = current_outages()
    assert (outage.provider, are_all) == ("openai", False)
    # The last failure was the fifth, which began the outage; the next probe is due 30 s after it.
    assert (outage.next_probe - outage.since).total_seconds() == pytest.approx(30, abs=0.5)
    for _ in range(5):
        other.failed("server")
    assert current_outages()[1]
    await asyncio.sleep(29)
    assert current_outages()[1] is False, "one may be tried again"
    limits.answered(CALL, Usage())
    other.answered(CALL, Usage())
    assert current_outages() == ([], False)


async def test_refused_requests_do_not_count_as_an_outage() -> None:
    limits = ProviderLimits()
    for kind in ("server", "bad_request") * 5:
        limits.failed(kind)
    assert not limits.is_down


async def test_each_account_has_its_own_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    first = limits_of(parse_spec("openai:a"))
    assert limits_of(parse_spec("openai:b")) is first
    assert limits_of(parse_spec("ollama:a")) is not first
    monkeypatch.setenv("OPENAI_API_KEY", "two")
    assert limits_of(parse_spec("openai:a")) is not first
