from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from contend.debates import tables
from contend.debates.leases import is_held
from contend.debates.migrations import NEWEST, refuse_newer, stored_revision
from contend.debates.record import StoredDebate
from contend.graph.errors import DamagedDebate
from contend.graph.state import Turn

if TYPE_CHECKING:  # the driver is loaded only where a server is used
    from contend.graph.checkpoints.postgres import Postgres

RESOLUTION = (
    sa.select(tables.resolutions.c.outcome)
    .where(tables.resolutions.c.debate_id == tables.debates.c.id)
    .scalar_subquery()
    .label("resolution")
)


# Errors of parsing a stored debate, and SQLite's error for a damaged page.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, sa.exc.DatabaseError)

Report = Callable[[DamagedDebate], None]
"""A callback for each damaged debate that is skipped."""


def skip_silently(_: DamagedDebate) -> None:
    pass


@dataclass(frozen=True)
class Contents:
    debates: int
    damaged: tuple[DamagedDebate, ...]


def check_records(where: "Path | Postgres") -> Contents | None:
    engine = tables.open_engine(where)
    try:
        with engine.connect() as connection:
            revision = stored_revision(connection)
            if revision is None:
                return None
            refuse_newer(revision)
            ids = connection.execute(sa.select(tables.debates.c.id)).scalars().all()
            # Older tables cannot be read; the next command that needs them upgrades them.
            damaged = find_damaged(connection, ids) if revision == NEWEST else []
            return Contents(len(ids), tuple(damaged))
    finally:
        engine.dispose()


def find_damaged(connection: sa.Connection, ids: Sequence[str]) -> list[DamagedDebate]:
    damaged: list[DamagedDebate] = []
    for _ in load_readable(connection, ids, damaged.append, with_turns=True):
        pass
    return damaged


def load_debate(connection: sa.Connection, debate_id: str, *, with_turns: bool) -> StoredDebate:
    query = sa.select(tables.debates, RESOLUTION).where(tables.debates.c.id == debate_id)
    spoken = sa.select(tables.turns.c.turn).where(tables.turns.c.debate_id == debate_id)
    try:
        turns = (
            connection.execute(spoken.order_by(tables.turns.c.position)).scalars().all()
            if with_turns
            else []
        )
        row = connection.execute(query).one()
        return read_row(connection, row, [Turn.model_validate(turn) for turn in turns])
    except UNREADABLE as error:
        raise DamagedDebate(debate_id) from error


def load_readable(
    connection: sa.Connection, ids: Sequence[str], report: Report, *, with_turns: bool = False
) -> Iterator[StoredDebate]:
    for each in ids:
        try:
            yield load_debate(connection, each, with_turns=with_turns)
        except DamagedDebate as damaged:
            connection.rollback()
            report(damaged)


def read_row(connection: sa.Connection, row: Any, turns: list[Turn]) -> StoredDebate:
    values = {**row._mapping, "turns": turns, "status": read_status(connection, row)}
    found = StoredDebate(**values)
    found.check()
    return found


def read_status(connection: sa.Connection, row: Any) -> str:
    """Return the status, or `interrupted` for a running debate whose lease nobody holds."""
    is_abandoned = row.status == "running" and not is_held(connection, row)
    return "interrupted" if is_abandoned else str(row.status)
