"""Reserves the worst-case cost before each call, and settles the actual cost afterward."""

import asyncio
import json
import math
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool

from contend.graph.errors import BadInput, DatabaseUnavailable, OverBudget, Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.failures import BadAnswer
from contend.models.prices import Price, Prices, cost_of, price_of
from contend.models.providers.registry import ModelSpec, parse_spec, provider_of

# With fewer tokens, a turn would probably be cut off and its cost wasted.
_LEAST_ANSWER = 1024
_LEAST_THINKING = 4096
# Tokens that providers add to a prompt: role markers and tool definitions.
_TOKENS_OF_A_CALL, _TOKENS_OF_A_MESSAGE, _TOKENS_OF_AN_IMAGE = 64, 16, 5_000
_PIECE = re.compile(r"(?P<letters>[A-Za-z]+)|(?P<other>[^\x00-\x7f]+)|(?P<spaces> +)|(?s:.)")
WARN_AT = 0.8
_POLL_SECONDS = 0.1
# With these statuses a model may have run although no answer arrived: gateways time out earlier.
_MAY_BE_CHARGED = {408, 499, 502, 504, 520, 522, 524}
_NEVER_SENT = {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror"}
_MOST_LEDGERS = 1000


@dataclass(frozen=True)
class Amount:
    tokens: float = 0
    cost: float = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens - other.tokens, self.cost - other.cost)

    def at_least(self, other: "Amount") -> "Amount":
        return Amount(max(self.tokens, other.tokens), max(self.cost, other.cost))

    def share_of(self, cap: "Amount") -> float:
        return max(self.tokens / cap.tokens, self.cost / cap.cost)


NOTHING = Amount()
# Counted for a call if its usage is unknown.
UNKNOWN = Amount(4096)


def cap_of(settings: DebateSettings) -> Amount | None:
    if settings.budget is None and settings.max_cost is None:
        return None
    return Amount(settings.budget or math.inf, settings.max_cost or math.inf)


def cap_words(cap: Amount, amount: Amount | None = None) -> str:
    named = amount or cap
    unit = "token" if named.tokens == 1 else "tokens"
    tokens = [f"{named.tokens:,.0f} {unit}"] if cap.tokens < math.inf else []
    dollars = [_dollars(named.cost)] if cap.cost < math.inf else []
    return " and ".join([*tokens, *dollars])


def _dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 0.1 or not cost else f"${cost:.2g}"


def amount_of(usage: Usage, if_unknown: Amount) -> Amount:
    if usage.input_tokens is None or usage.output_tokens is None:
        return if_unknown
    cost = if_unknown.cost if usage.cost_usd is None else usage.cost_usd
    return Amount(usage.input_tokens + usage.output_tokens, cost)


def amount_of_earlier(usage: Usage, models: Sequence[str], prices: Prices) -> Amount:
    tokens, cost = amount_of(usage, UNKNOWN).tokens, usage.cost_usd
    if cost is None:
        known = [price_of(parse_spec(model), prices) for model in models if model]
        cost = max((_cost_at(usage, price) for price in known if price), default=0.0)
    return Amount(tokens, cost)


def _cost_at(usage: Usage, price: Price) -> float:
    cost = cost_of(usage, price)
    return UNKNOWN.tokens * max(price.input, price.output) / 1e6 if cost is None else cost


def most_tokens(*texts: str) -> int:
    """Return an upper bound on the tokens in these texts, under any common tokenizer."""
    return sum(_most(found) for text in texts for found in _PIECE.finditer(text))


def _most(found: re.Match[str]) -> int:
    match found.lastgroup:
        case "letters":
            return -(-len(found.group()) // 2)
        case "other":  # no vocabulary needs more than one token for a byte
            return len(found.group().encode())
        case "spaces":  # one space belongs to the next word
            return -(-(len(found.group()) - 1) // 4)
        case _:
            return 1


def prompt_tokens(messages: Sequence[BaseMessage], tools: Sequence[BaseTool] = ()) -> int:
    forms = [json.dumps(tool.get_input_jsonschema()) + tool.description for tool in tools]
    calls = [str(getattr(each, "tool_calls", "") or "") for each in messages]
    images = sum(_images_in(each) for each in messages)
    return (
        most_tokens(*(each.text for each in messages), *forms, *calls)
        + _TOKENS_OF_A_CALL
        + _TOKENS_OF_A_MESSAGE * len(messages)
        + _TOKENS_OF_AN_IMAGE * images
    )


def _images_in(message: BaseMessage) -> int:
    parts = message.content if isinstance(message.content, list) else []
    return sum(isinstance(part, dict) and "image" in str(part.get("type")) for part in parts)


@dataclass(frozen=True)
class CallPrice:
    prompt: int
    ceiling: int
    least: int  # a shorter answer would not be useful
    price: Price | None  # None if cost is not limited, or if the price is unknown

    @classmethod
    def of(
        cls, spec: ModelSpec, settings: DebateSettings, prompt: int, ceiling: int, limit: int | None
    ) -> "CallPrice":
        least = min(ceiling, least_answer(spec, limit))
        return cls(prompt, ceiling, least, price_for_budget(spec, settings))

    def worst(self, output: float) -> Amount:
        if self.price is None:
            return Amount(self.prompt + output)
        cost = (self.prompt * self._highest_input_price + output * self.price.output) / 1e6
        return Amount(self.prompt + output, cost)

    def output_within(self, room: Amount) -> float:
        tokens = room.tokens - self.prompt
        if self.price is None:
            return tokens
        left = room.cost - self.worst(0).cost
        if not self.price.output:
            return tokens if left >= 0 else -1
        return min(tokens, left * 1e6 / self.price.output)

    @property
    def _highest_input_price(self) -> float:
        price = self.price
        return max(price.input, price.cached or 0, price.cache_write or 0) if price else 0


# Finite, because inf * 0 and inf - inf are nan, which would let any call pass.
_UNKNOWN_PRICE = Price(1e30, 1e30)


def price_for_budget(spec: ModelSpec, settings: DebateSettings) -> Price | None:
    if settings.max_cost is None:
        return None
    return price_of(spec, settings.prices) or _UNKNOWN_PRICE


def least_answer(spec: ModelSpec, limit: int | None = None) -> int:
    thinks = provider_of(spec).thinks(spec.name)
    return min(limit or _LEAST_ANSWER, _LEAST_ANSWER) + (_LEAST_THINKING if thinks else 0)


def check_prices(seats: Sequence[Seat], settings: DebateSettings) -> None:
    paid = [seat for seat in seats if not seat.is_human]
    models = dict.fromkeys(model for seat in paid for model in (seat.model, *seat.fallback_models))
    for model in models if settings.max_cost else ():
        if price_of(parse_spec(model), settings.prices) is None:
            raise BadInput(
                f"The price of {model} is unknown, so max_cost cannot be kept. Set it with --set "
                f"'prices={{\"{model}\": [INPUT, OUTPUT]}}' in US dollars per million tokens, or "
                "limit the tokens with --budget."
            )


@dataclass(frozen=True)
class CallBudget:
    debate: str = ""
    used: Amount = NOTHING  # according to the debate's state
    kept: Amount = NOTHING  # set aside for the calls that write the answer
    warn: Callable[[Amount], None] = lambda _spent: None
    pause_requested: Callable[[], bool] = lambda: False


NO_BUDGET = CallBudget()


@dataclass
class Ledger:
    spent: Amount = NOTHING
    save: Callable[[str, Amount], Awaitable[None]] | None = None
    warned: bool = False
    _held: dict[str, Amount] = field(default_factory=dict)
    _waiting: set[asyncio.Event] = field(default_factory=set)

    @property
    def is_used(self) -> bool:
        return bool(self._held or self._waiting)

    @asynccontextmanager
    async def reserve(
        self, price: CallPrice, cap: Amount, budget: CallBudget
    ) -> AsyncIterator["Reservation"]:
        """Reserve a call's worst-case cost while it runs, or raise OverBudget."""
        output = await self._wait_for_room(price, cap, budget)
        entry, worst = uuid4().hex, price.worst(output)
        self._held[entry] = worst
        reservation = Reservation(int(output), worst)
        try:
            if self.save:
                await self.save(entry, worst)
            try:
                yield reservation
            except Exception as error:
                reservation.settle(_usage_of(error))
                raise
        finally:
            del self._held[entry]
            self.spent += reservation.counted
            for each in self._waiting:
                each.set()
            if self.save and reservation.counted != worst:
                with suppress(DatabaseUnavailable):  # the worst case stays reserved
                    await self.save(entry, reservation.counted)
            if not self.warned and self.spent.share_of(cap) >= WARN_AT:
                self.warned = True
                budget.warn(self.spent)

    async def _wait_for_room(self, price: CallPrice, cap: Amount, budget: CallBudget) -> float:
        while True:
            room = cap - sum(self._held.values(), self.spent) - budget.kept
            output = price.output_within(room)
            if output >= price.ceiling:
                return price.ceiling
            if not self._held:  # no running call can return anything
                break
            await self._wait(budget)
        if output < price.least:
            raise OverBudget
        return math.floor(output)

    async def _wait(self, budget: CallBudget) -> None:
        """Wait briefly for other calls to release budget. Raise Paused if a pause is requested."""
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _POLL_SECONDS)
        finally:
            self._waiting.discard(changed)
        if budget.pause_requested():
            raise Paused


@dataclass
class Reservation:
    ceiling: int | None
    counted: Amount

    def settle(self, usage: Usage) -> None:
        self.counted = amount_of(usage, if_unknown=self.counted)


def _usage_of(error: Exception) -> Usage:
    """Return a failed call's usage: as reported, zero if the call was refused, or unknown."""
    if isinstance(error, BadAnswer):
        return error.usage or Usage()
    return NO_USAGE if _was_refused(error) else Usage()


def _was_refused(error: BaseException) -> bool:
    status = getattr(error, "status_code", None)  # errors in a stream have no status
    if isinstance(status, int) and status >= 400:
        return status not in _MAY_BE_CHARGED
    cause = error.__cause__ or error.__context__
    return type(error).__name__ in _NEVER_SENT or (cause is not None and _was_refused(cause))


_ledgers: dict[str, Ledger] = {}
# Ledgers of debates that another program runs, such as `langgraph dev`; the last used comes last.
_external_ledgers: OrderedDict[str, Ledger] = OrderedDict()


@contextmanager
def using_ledger(debate: str, ledger: Ledger) -> Iterator[None]:
    _ledgers[debate] = ledger
    try:
        yield
    finally:
        _ledgers.pop(debate, None)


def _ledger_of(budget: CallBudget, cap: Amount) -> Ledger:
    if not budget.debate:
        return Ledger()
    if opened := _ledgers.get(budget.debate):
        return opened
    if budget.debate not in _external_ledgers:
        _forget_idle()
        _external_ledgers[budget.debate] = Ledger()
    _external_ledgers.move_to_end(budget.debate)
    ledger = _external_ledgers[budget.debate]
    # Another worker may have run the steps since this ledger was last used.
    ledger.spent = ledger.spent.at_least(budget.used)
    ledger.warned = ledger.warned or budget.used.share_of(cap) >= WARN_AT
    return ledger


def _forget_idle() -> None:
    idle = [debate for debate, ledger in _external_ledgers.items() if not ledger.is_used]
    for debate in idle[: max(0, len(_external_ledgers) + 1 - _MOST_LEDGERS)]:
        del _external_ledgers[debate]


@asynccontextmanager
async def reserved(
    spec: ModelSpec,
    settings: DebateSettings,
    budget: CallBudget,
    prompt: Callable[[], int],
    ceiling: int | None,
    limit: int | None,
) -> AsyncIterator[Reservation]:
    cap = cap_of(settings)
    if cap is None or ceiling is None:
        yield Reservation(ceiling, NOTHING)
        return
    price = CallPrice.of(spec, settings, prompt(), ceiling, limit)
    async with _ledger_of(budget, cap).reserve(price, cap, budget) as reservation:
        yield reservation
