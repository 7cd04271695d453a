"""Budget reservations before a call and actual spending after it."""

import asyncio
from math import inf
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from contend.graph.errors import BadInput, OverBudget, Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.budget import (
    _MOST_LEDGERS,
    NO_BUDGET,
    Amount,
    CallBudget,
    CallPrice,
    Ledger,
    cap_of,
    cap_words,
    check_prices,
    least_answer,
    most_tokens,
    prompt_tokens,
    reserved,
    using_ledger,
)
from contend.models.failures import BadAnswer
from contend.models.prices import Price
from contend.models.providers.registry import parse_spec
from tests.support.scripted import scripted_settings

CAP = Amount(10_000, inf)
CALL = CallPrice(prompt=1_000, ceiling=4_000, least=500, price=None)


def used(sent: int, written: int) -> Usage:
    return Usage(input_tokens=sent, output_tokens=written, cached_tokens=0, cost_usd=0.0)


async def spend(ledger: Ledger, usage: Usage, cap: Amount = CAP, **budget: Any) -> int | None:
    """Make a call, and return how many tokens it may write."""
    async with ledger.reserve(CALL, cap, CallBudget(**budget)) as reservation:
        reservation.settle(usage)
    return reservation.ceiling


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("1234567890 3.14", 14),  # a token for each digit, in some vocabularies
        ("{}[]();:,.", 10),
        ("日本語", 9),  # at most a token for each byte
        ("a\n\n\nb", 5),
        ("\x00\x01\x02", 3),
        (" " * 80, 5),  # runs of at most 16 in some vocabularies
    ],
)
def test_token_estimate_is_never_too_low(text: str, real: int) -> None:
    assert real <= most_tokens(text) <= 4 * real


def test_a_prompt_counts_its_messages_and_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    plain, seen = HumanMessage("Why?"), HumanMessage(["Why?", image])
    assert prompt_tokens([seen]) - prompt_tokens([plain]) == 5_000
    assert prompt_tokens([plain, plain]) > prompt_tokens([plain])


async def test_counts_the_tokens_a_call_actually_used() -> None:
    ledger = Ledger()
    assert await spend(ledger, used(700, 300)) == 4_000
    assert ledger.spent == Amount(1_000)


async def test_unknown_usage_counts_as_reserved() -> None:
    ledger = Ledger()
    await spend(ledger, Usage())
    assert ledger.spent == Amount(5_000)


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (BadAnswer("cut", "cut off", used(900, 50)), 950),
        (BadAnswer("idle", "silent"), 5_000),
        (ConnectionResetError("gone"), 5_000),
        (ConnectionRefusedError("nobody there"), 0),
        (asyncio.CancelledError(), 5_000),
    ],
)
async def test_a_failed_call_counts_its_reservation_unless_usage_is_known(
    error: BaseException, counted: int
) -> None:
    ledger = Ledger()
    with pytest.raises(type(error)):
        async with ledger.reserve(CALL, CAP, NO_BUDGET):
            raise error
    assert ledger.spent == Amount(counted)


@pytest.mark.parametrize(("status", "counted"), [(429, 0), (503, 0), (504, 5_000), (408, 5_000)])
async def test_a_refused_call_is_free_but_a_gateway_timeout_is_not(
    status: int, counted: int
) -> None:
    ledger, refusal = Ledger(), RuntimeError("refused")
    refusal.status_code = status  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError):
        async with ledger.reserve(CALL, CAP, NO_BUDGET):
            raise refusal
    assert ledger.spent == Amount(counted)


async def test_lowers_the_token_ceiling_near_the_limit_then_refuses() -> None:
    assert await spend(Ledger(Amount(7_000)), NO_USAGE) == 2_000
    assert await spend(Ledger(Amount(8_500)), NO_USAGE) == 500
    with pytest.raises(OverBudget):
        await spend(Ledger(Amount(8_501)), NO_USAGE)


async def test_does_not_spend_what_is_reserved_for_the_final_answer() -> None:
    assert await spend(Ledger(Amount(5_000)), NO_USAGE, kept=Amount(2_000)) == 2_000
    with pytest.raises(OverBudget):
        await spend(Ledger(Amount(5_000)), NO_USAGE, kept=Amount(4_000))


async def test_the_cost_is_limited_too() -> None:
    price = CallPrice(1_000, 4_000, 500, Price(input=1.0, output=10.0))
    async with Ledger().reserve(price, Amount(inf, 0.021), NO_BUDGET) as reservation:
        assert reservation.ceiling == 2_000
        reservation.settle(used(1_000, 10).model_copy(update={"cost_usd": 0.0011}))
    assert reservation.counted == Amount(1_010, 0.0011)


async def test_refuses_a_call_of_unknown_price_under_a_cost_limit() -> None:
    settings = scripted_settings(max_cost=1_000_000)
    price = CallPrice.of(parse_spec("openai:unlisted"), settings, 1_000, 4_000, None)
    with pytest.raises(OverBudget):
        async with Ledger().reserve(price, Amount(inf, 1_000_000), NO_BUDGET):
            pass
    margin = price.worst(4_000) - price.worst(500)  # is set aside, and must not be nan
    assert margin.cost > 1_000_000


async def test_parallel_calls_wait_for_unused_reservations_of_others() -> None:
    ledger, running, most = Ledger(), 0, 0.0
    gate = asyncio.Event()

    async def call() -> None:
        nonlocal running, most
        async with ledger.reserve(CALL, CAP, NO_BUDGET) as reservation:
            running += 1
            most = max(most, running)
            if running == 2:
                gate.set()
            await gate.wait()
            running -= 1
            reservation.settle(used(500, 100))

    await asyncio.gather(*(call() for _ in range(6)))
    assert most == 2
    assert ledger.spent == Amount(3_600)


async def test_a_call_waiting_for_budget_can_be_paused() -> None:
    ledger = Ledger()
    async with ledger.reserve(CALL, CAP, NO_BUDGET), ledger.reserve(CALL, CAP, NO_BUDGET):
        with pytest.raises(Paused):
            await spend(ledger, NO_USAGE, pause_requested=lambda: True)


async def test_stores_the_reservation_before_the_call_and_usage_after_it() -> None:
    stored: list[tuple[str, Amount]] = []

    async def save(entry: str, amount: Amount) -> None:
        stored.append((entry, amount))

    await spend(Ledger(save=save), used(700, 300))
    assert [amount.tokens for _, amount in stored] == [5_000, 1_000]
    assert len({entry for entry, _ in stored}) == 1


async def test_warns_once_at_80_percent() -> None:
    warned: list[Amount] = []
    ledger = Ledger(Amount(7_500))
    for written in (400, 100, 50):
        await spend(ledger, used(0, written), warn=warned.append)
    assert warned == [Amount(8_000)]


def test_a_debate_without_limits_has_no_budget() -> None:
    assert cap_of(scripted_settings()) is None
    both = cap_of(scripted_settings(budget=50_000, max_cost=0.5))
    assert both is not None
    assert cap_words(both) == "50,000 tokens and $0.50"


def test_the_cost_cannot_be_limited_without_prices() -> None:
    settings: DebateSettings = scripted_settings(max_cost=1)
    seat = Seat(id="a", name="A", role="judge", model="openai:x", fallback_models=("openai:y",))
    priced = settings.model_copy(update={"prices": {"openai:x": (1, 1)}})
    for each, missing in ((settings, "openai:x"), (priced, "openai:y")):
        with pytest.raises(BadInput, match=f"The price of {missing} is unknown"):
            check_prices([seat], each)
    known = settings.model_copy(update={"prices": {"openai:x": (1, 1), "openai:y": (1, 1)}})
    check_prices([seat], known)


def test_models_that_think_need_more_room() -> None:
    assert least_answer(parse_spec("openai:gpt-5-mini")) > least_answer(
        parse_spec("openai:gpt-4.1")
    )
    assert least_answer(parse_spec("openai:gpt-4.1"), limit=300) == 300


async def test_a_ledger_in_use_is_kept_when_many_debates_run() -> None:
    """As in `langgraph dev`, where nothing opens the ledger of a debate."""
    spec, settings = parse_spec("openai:m"), scripted_settings(budget=30_000)

    async def call(debate: str, written: int, *during: str) -> None:
        about = (CallBudget(debate), lambda: 0, 10_000, 500)
        async with reserved(spec, settings, *about) as reservation:
            reservation.settle(used(0, written))
            for other in during:
                await call(other, 0)

    others = [f"other-{number}" for number in range(_MOST_LEDGERS + 1)]
    with using_ledger("opened", Ledger()):
        await call("opened", 10_000)
        await call("long", 10_000, *others)
        for debate in ("long", "opened"):
            await call(debate, 10_000)
            await call(debate, 10_000)
            with pytest.raises(OverBudget):
                await call(debate, 10_000, *others)


async def test_what_another_worker_spent_counts() -> None:
    """As in a cluster, where the steps of a debate run on several workers."""
    spec, settings = parse_spec("openai:m"), scripted_settings(budget=10_000)
    warned: list[Amount] = []

    async def call(spent_so_far: int, written: int) -> None:
        budget = CallBudget("moving", used=Amount(spent_so_far), warn=warned.append)
        async with reserved(spec, settings, budget, lambda: 100, 2_000, None) as reservation:
            reservation.settle(used(0, written))

    await call(0, 3_000)
    await call(7_000, 500)
    assert warned == []
    for spent_so_far in (9_900, 3_000):  # a state that lags behind gives nothing back
        with pytest.raises(OverBudget):
            await call(spent_so_far, 500)
    assert warned == []
