"""The calls that all debates of a process make to one provider at once."""

import asyncio
from collections.abc import Callable

import pytest

from contend.graph.errors import Paused
from contend.models.limits import ProviderLimits, current_outages, limits_of
from contend.models.providers.registry import parse_spec


class Provider:
    """Takes so many calls at once and refuses the rest."""

    def __init__(self, takes: int) -> None:
        self.takes, self.busy, self.refusals = takes, 0, 0
        self.order: list[str] = []

    async def call(self, limits: ProviderLimits, debate: str, most: int | None = None) -> None:
        while True:
            async with limits.slot(debate, most, lambda: False):
                if self.busy < self.takes:
                    self.busy += 1
                    self.order.append(debate)
                    await asyncio.sleep(1)
                    self.busy -= 1
                    limits.answered()
                    return
                self.refusals += 1
                limits.refused(None)
            await asyncio.sleep(0.5)


async def run(provider: Provider, limits: ProviderLimits, debates: int, calls: int) -> float:
    """Let each debate make its calls one after another; return the seconds it took."""

    async def debate(name: str) -> None:
        for _ in range(calls):
            await provider.call(limits, name)

    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(debate(f"d{number}") for number in range(debates)))
    return loop.time() - began


@pytest.mark.looptime
async def test_what_a_provider_takes_is_learned_from_its_refusals() -> None:
    provider, limits = Provider(takes=20), ProviderLimits()
    seconds = await run(provider, limits, debates=40, calls=10)
    assert len(provider.order) == 400
    assert 20 <= limits.most <= 22
    assert seconds <= 1.2 * 400 / 20
    assert provider.refusals < 40


@pytest.mark.looptime
async def test_a_setting_bounds_the_calls_at_once() -> None:
    provider, limits = Provider(takes=3), ProviderLimits()
    await asyncio.gather(*(provider.call(limits, f"d{n}", most=3) for n in range(30)))
    assert provider.refusals == 0


@pytest.mark.looptime
async def test_debates_that_wait_are_served_in_turn() -> None:
    provider, limits = Provider(takes=1), ProviderLimits()
    names = [*["large"] * 6, "small", "small"]
    await asyncio.gather(*(provider.call(limits, name, most=1) for name in names))
    assert provider.order[:5] == ["large", "large", "small", "large", "small"]


@pytest.mark.looptime
async def test_nobody_calls_before_a_retry_after_is_over() -> None:
    limits, loop = ProviderLimits(), asyncio.get_running_loop()
    async with limits.slot("a", None, lambda: False):
        limits.refused(30)
    began = loop.time()
    async with limits.slot("b", None, lambda: False):
        assert 30 <= loop.time() - began < 31


@pytest.mark.looptime
@pytest.mark.parametrize("pause", [lambda: True, lambda: False])
async def test_who_stops_waiting_leaves_no_place_behind(pause: Callable[[], bool]) -> None:
    limits = ProviderLimits(most=1)

    async def wait() -> None:
        async with limits.slot("b", None, pause):
            pytest.fail("there was no place")

    async with limits.slot("a", None, lambda: False):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises((Paused, asyncio.CancelledError)):
            await waiting
    assert limits.in_flight == 0
    async with limits.slot("c", None, lambda: False):
        assert limits.in_flight == 1


@pytest.mark.looptime
async def test_a_provider_that_is_down_is_probed_now_and_then() -> None:
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
    limits.answered()
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
    limits.answered()
    other.answered()
    assert current_outages() == ([], False)


async def test_a_refused_request_is_no_outage() -> None:
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
