"""Stores the spending of debates with a budget. Calls in progress count at the worst-case cost."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import sqlalchemy as sa

from contend.debates.dialects import insert
from contend.debates.tables import spending, write
from contend.graph.errors import OUT_OF_BUDGET, BadInput, DatabaseUnavailable, ModelFailed

if TYPE_CHECKING:  # slow to import, and only runs need it
    from contend.debates.events import Event
    from contend.debates.record import StoredDebate
    from contend.debates.repository import Repository
    from contend.debates.settings_sources import Given
    from contend.graph.settings import DebateSettings
    from contend.graph.state import DebateState
    from contend.graph.values import Usage
    from contend.models.budget import Amount, Ledger
    from contend.models.recording import RecordedCall

Limits = dict[str, Any]

NO_LIMITS: Limits = {"budget": None, "max_cost": None}
# What the state said at the end of our last run; what it says more later, a server has spent.
_IN_STATE = "in the state"
# The prefix of the entries for what servers have spent.
_ELSEWHERE = "server "


class Spending:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def put(self, debate_id: str, entry: str, amount: "Amount") -> None:
        with write(self._engine) as connection:
            self._put(connection, debate_id, entry, amount)

    def _put(self, connection: sa.Connection, debate_id: str, entry: str, amount: "Amount") -> None:
        values = {"tokens": round(amount.tokens), "cost": amount.cost}
        row = insert(self._engine.dialect.name, spending).values(
            debate_id=debate_id, entry=entry, **values
        )
        row = row.on_conflict_do_update(index_elements=list(spending.primary_key), set_=values)
        connection.execute(row)

    def total(self, debate_id: str) -> "Amount":
        return self._sum(debate_id, spending.c.entry != _IN_STATE)

    def elsewhere(self, debate_id: str) -> "Amount":
        """Return what servers spent on the debate between our own runs."""
        return self._sum(debate_id, spending.c.entry.startswith(_ELSEWHERE))

    def _sum(self, debate_id: str, condition: sa.ColumnElement[bool]) -> "Amount":
        from contend.models.budget import Amount

        sums = sa.func.sum(spending.c.tokens), sa.func.sum(spending.c.cost)
        query = sa.select(*sums).where(spending.c.debate_id == debate_id, condition)
        with self._engine.connect() as connection:
            tokens, cost = connection.execute(query).one()
        return Amount(tokens or 0, cost or 0.0)

    def since_our_run(self, debate_id: str, in_state: "Amount") -> "Amount":
        """Return what a server has spent since our last run, or NOTHING if unknown."""
        from contend.models.budget import NOTHING, Amount

        with self._engine.connect() as connection:
            known = connection.execute(_of_state(debate_id)).scalar() is not None
        if not known:
            return NOTHING
        grown = in_state - self._sum(debate_id, spending.c.entry == _IN_STATE)
        return Amount(max(grown.tokens, 0), max(grown.cost, 0))

    def begin_our_run(self, debate_id: str, in_state: "Amount") -> None:
        grown = self.since_our_run(debate_id, in_state)
        mine = sa.and_(spending.c.debate_id == debate_id, spending.c.entry == _IN_STATE)
        with write(self._engine) as connection:
            if grown.tokens or grown.cost:
                self._put(connection, debate_id, f"{_ELSEWHERE}{uuid4().hex[:24]}", grown)
            connection.execute(spending.delete().where(mine))

    def end_our_run(self, debate_id: str, in_state: "Amount") -> None:
        self.put(debate_id, _IN_STATE, in_state)


def _of_state(debate_id: str) -> sa.Select[Any]:
    mine = sa.and_(spending.c.debate_id == debate_id, spending.c.entry == _IN_STATE)
    return sa.select(spending.c.entry).where(mine)


def spent_by(
    records: "Repository", debate_id: str, settings: "DebateSettings", state: "DebateState"
) -> "Amount":
    """Return a debate's total spending, including calls from before the budget was set."""
    from contend.nodes.budget import used_by

    stored = records.spending.total(debate_id)
    recorded = _recorded(records.recordings.read(debate_id).values(), settings)
    # A LangGraph server stores and records no calls, but the turns in the state have usage.
    in_state = used_by(state, settings)
    paid = _larger(stored, recorded + records.spending.elsewhere(debate_id))
    return _larger(paid + records.spending.since_our_run(debate_id, in_state), in_state)


def _larger(one: "Amount", other: "Amount") -> "Amount":
    from contend.models.budget import Amount

    return Amount(max(one.tokens, other.tokens), max(one.cost, other.cost))


async def open_ledger(
    records: "Repository", debate_id: str, settings: "DebateSettings", state: "DebateState"
) -> "Ledger":
    from contend.models.budget import WARN_AT, Ledger, cap_of

    cap = cap_of(settings)
    await asyncio.to_thread(_begin_our_run, records, debate_id, settings, state)
    if cap is None:
        return Ledger()
    spent = await asyncio.to_thread(_count_earlier_calls, records, debate_id, settings, state)

    async def save(entry: str, amount: "Amount") -> None:
        await asyncio.to_thread(records.spending.put, debate_id, entry, amount)

    return Ledger(spent, save, warned=spent.share_of(cap) >= WARN_AT)


def _begin_our_run(
    records: "Repository", debate_id: str, settings: "DebateSettings", state: "DebateState"
) -> None:
    from contend.nodes.budget import used_by

    records.spending.begin_our_run(debate_id, used_by(state, settings))


async def close_ledger(
    records: "Repository", debate: "StoredDebate", settings: "DebateSettings", state: "DebateState"
) -> None:
    """Store the debate's usage so far, as the baseline for `since_our_run`."""
    from contend.nodes.budget import used_by

    if debate.server is None:
        given = debate.id, used_by(state, settings)
        with suppress(DatabaseUnavailable):
            await asyncio.to_thread(records.spending.end_our_run, *given)


def _count_earlier_calls(
    records: "Repository", debate_id: str, settings: "DebateSettings", state: "DebateState"
) -> "Amount":
    spent = spent_by(records, debate_id, settings, state)
    missing = spent - records.spending.total(debate_id)
    if missing.tokens or missing.cost:
        # A separate entry, because an earlier run may have added one too.
        records.spending.put(debate_id, uuid4().hex, missing)
    return spent


def budget_of(settings: "DebateSettings") -> "Limits":
    return settings.model_dump(include=set(NO_LIMITS))


def limits_over_time(events: "Iterable[Event]", last: "Limits") -> "list[tuple[datetime, Limits]]":
    found: list[tuple[datetime, Limits | None]] = []
    for event in events:
        given = event["metadata"].get("settings", event["metadata"])
        limits = {name: given[name] for name in NO_LIMITS if name in given} or None
        if event["event"] in ("debate_start", "resumed"):
            found.append((datetime.fromisoformat(event["ts"]), limits))
        elif event["event"] == "paused" and found and limits:
            found[-1] = (found[-1][0], limits)  # release 0.2 did not store it when it resumed
    return [(since, limits or last) for since, limits in found]


def read_limits(records: "Repository", debate: "StoredDebate") -> "list[tuple[datetime, Limits]]":
    stored = records.journal.read_without_chunks(debate.id, 0, debate.last_seq)
    events = (each.as_event() for each in stored)
    return limits_over_time(events, budget_of(debate.as_settings()))


def why_not_asked(failed: ModelFailed, settings: "DebateSettings") -> str:
    from contend.models.budget import cap_of, cap_words

    cap = cap_of(settings)
    size = f" of {cap_words(cap)}" if cap else ""
    who = f", so {failed.seat} was not asked" if failed.seat else ""
    return f"{OUT_OF_BUDGET}{size}{who}"


def _recorded(calls: "Iterable[RecordedCall]", settings: "DebateSettings") -> "Amount":
    from contend.models.budget import NOTHING, amount_of_earlier

    used = [each for call in calls for each in _usages(call)]
    prices = settings.prices
    return sum((amount_of_earlier(usage, [model], prices) for usage, model in used), NOTHING)


def _usages(call: "RecordedCall") -> "Iterator[tuple[Usage, str]]":
    from contend.graph.values import Usage

    if call.answer:
        yield Usage.model_validate(call.answer["result"]["usage"]), call.answer["model"]
    troubles = (each.trouble for each in call.received if each.trouble)
    yield from ((trouble.usage, trouble.model) for trouble in troubles)


def with_budget(
    records: "Repository", debate: "StoredDebate", changes: "Mapping[str, Given]"
) -> "DebateSettings":
    """Return the settings with changes applied; raise BadInput if their budget is already spent."""
    from contend.models.budget import cap_of, cap_words, check_prices

    settings = debate.settings_to_run(changes)
    state = debate.as_state()
    check_prices(state["seats"], settings)
    cap, spent = cap_of(settings), spent_by(records, debate.id, settings, state)
    if cap and spent.share_of(cap) >= 1:
        raise BadInput(
            f"A budget of {cap_words(cap)} does not pay for another call: {cap_words(cap, spent)} "
            "were spent before. Choose a larger one."
        )
    return settings
