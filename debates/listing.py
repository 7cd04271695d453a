from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from contend.debates.leases import is_held
from contend.debates.loading import RESOLUTION, UNREADABLE, read_status
from contend.debates.record import StoredDebate
from contend.debates.tables import debates
from contend.graph.record import Status

_SHOWN = ("seats", "round", "stop", "auto_score", "final_answer", "request")
_COLUMNS = [
    *(each for each in debates.c if each.name not in ("settings", "state")),
    *(debates.c.state[name].label(f"state_{name}") for name in _SHOWN),
    RESOLUTION,
]


@dataclass(frozen=True)
class Filter:
    words: str = ""
    """Text to find in the question, title or answer."""
    protocol: str | None = None
    status: Status | None = None
    before: tuple[str, str] | None = None
    """The creation time and id of the last debate on the previous page."""
    ours: tuple[str, ...] = ()
    """The ids of debates that this process runs; some may not have a lease yet."""


@dataclass(frozen=True)
class ListPage:
    debates: tuple[StoredDebate, ...]
    """Debates without turns or settings, and with only part of their state."""
    damaged: tuple[str, ...]
    following: tuple[str, str] | None
    """The value of `before` for the next page; None on the last page."""


def read_page(connection: sa.Connection, wanted: Filter, limit: int) -> ListPage:
    query = sa.select(debates.c.created_at, debates.c.id)
    query = query.where(*_conditions(connection, wanted)).limit(limit + 1)
    newest_first = query.order_by(debates.c.created_at.desc(), debates.c.id.desc())
    found = connection.execute(newest_first).all()
    readable, damaged = [], []
    for row in found[:limit]:
        try:
            readable.append(_load(connection, row.id))
        except UNREADABLE:
            connection.rollback()
            damaged.append(row.id)
    last = found[limit - 1] if len(found) > limit else None
    following = (last.created_at, last.id) if last else None
    return ListPage(tuple(readable), tuple(damaged), following)


def _conditions(connection: sa.Connection, wanted: Filter) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if wanted.words:
        texts = (debates.c.question, debates.c.title, _answer(connection))
        found.append(sa.or_(*(each.icontains(wanted.words, autoescape=True) for each in texts)))
    if wanted.protocol:
        found.append(debates.c.protocol == wanted.protocol)
    if wanted.status:
        found.append(_has_status(connection, wanted.status, wanted.ours))
    if wanted.before:
        place = sa.tuple_(debates.c.created_at, debates.c.id)
        found.append(place < sa.tuple_(*wanted.before))
    return found


def _answer(connection: sa.Connection) -> sa.ColumnElement[Any]:
    answer: sa.ColumnElement[Any] = debates.c.state["final_answer"].as_string()
    if connection.dialect.name == "sqlite":  # one damaged row would make the whole query fail
        return sa.case((sa.func.json_valid(debates.c.state) == 1, answer))
    return answer


def _has_status(
    connection: sa.Connection, status: Status, ours: tuple[str, ...]
) -> sa.ColumnElement[bool]:
    if status not in ("running", "interrupted"):
        return debates.c.status == status
    # Both are stored as `running`; only the lease shows whether a process runs the debate.
    is_running = debates.c.status == "running"
    leases = sa.select(
        *(debates.c.id, debates.c.lease_owner, debates.c.lease_holder, debates.c.lease_until)
    ).where(is_running, debates.c.lease_until.is_not(None))
    held = [row.id for row in connection.execute(leases).all() if is_held(connection, row)]
    runs = debates.c.id.in_([*held, *ours])
    return sa.and_(is_running, runs if status == "running" else ~runs)


def _load(connection: sa.Connection, debate_id: str) -> StoredDebate:
    row = connection.execute(sa.select(*_COLUMNS).where(debates.c.id == debate_id)).one()
    values = dict(row._mapping)
    parts = {name: values.pop(f"state_{name}") for name in _SHOWN}
    state = {name: part for name, part in parts.items() if part is not None}
    if "seats" not in state:  # every debate has seats
        raise ValueError(f"the state of debate {debate_id} is damaged")
    status = read_status(connection, row)
    found = StoredDebate(**values | {"status": status, "state": state, "settings": {}})
    found.as_state()
    found.forecast_fate()
    return found
