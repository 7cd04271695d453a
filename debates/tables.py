import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from contend.graph.checkpoints import sqlite
from contend.graph.checkpoints.location import CHECKPOINT_TABLES
from contend.graph.checkpoints.sqlite import SqliteFile, opened_file
from contend.graph.errors import DatabaseUnavailable

if TYPE_CHECKING:  # the driver is loaded only where a server is used
    from contend.graph.checkpoints.postgres import Postgres

# A test checks that these match the newest revision in migrations/.
metadata = sa.MetaData()
debates = sa.Table(
    "debates",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("protocol", sa.String(32), nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False, index=True),
    sa.Column("updated_at", sa.String(32), nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("state", sa.JSON, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("demonstration", sa.Boolean, nullable=False),
    sa.Column("user_rating", sa.Integer),
    sa.Column("last_seq", sa.Integer, nullable=False, default=0),
    sa.Column("lease_owner", sa.String(36)),
    sa.Column("lease_holder", sa.String(255)),
    sa.Column("lease_until", sa.String(32)),
    sa.Column("title", sa.Text),
    sa.Column("run_owner", sa.String(36)),
    sa.Column("run_holder", sa.String(255)),
    sa.Column("run_until", sa.String(32)),
)
turns = sa.Table(
    "debate_turns",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("turn", sa.JSON, nullable=False),
)
resolutions = sa.Table(
    "forecast_resolutions",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("outcome", sa.String(64), nullable=False),
    sa.Column("resolved_at", sa.String(32), nullable=False),
)
accepted = sa.Table(
    "accepted_debates",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("task_id", sa.String(200), nullable=False, unique=True),
)

events = sa.Table(
    "debate_events",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(32), nullable=False),
    sa.Column("is_chunk", sa.Boolean, nullable=False),
    # Without content if the event is shared: its content is stored once.
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("source_id", sa.String(36)),
    sa.Column("source_seq", sa.Integer),
)
sa.Index(
    "ix_debate_events_chunks",
    events.c.debate_id,
    sqlite_where=events.c.is_chunk,
    postgresql_where=events.c.is_chunk,
)
sa.Index(
    "ix_debate_events_sources",
    events.c.source_id,
    events.c.source_seq,
    sqlite_where=events.c.source_id.is_not(None),
    postgresql_where=events.c.source_id.is_not(None),
)

calls = sa.Table(
    "debate_calls",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("asked", sa.String(200), primary_key=True),
    sa.Column("messages", sa.String(32), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("call", sa.Text, nullable=False),
)

forks = sa.Table(
    "debate_forks",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    # No foreign key: the parent may be deleted.
    sa.Column("parent_id", sa.String(36), nullable=False, index=True),
    sa.Column("round", sa.Integer),
    sa.Column("node", sa.String(32), nullable=False),
    sa.Column("edited", sa.String(200)),
)

spending = sa.Table(
    "debate_spending",
    metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("entry", sa.String(32), primary_key=True),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float, nullable=False),
)
_SECONDS_BETWEEN_TRIES = 0.01
_OWNED = (turns, events, calls, forks, spending, resolutions, accepted)


def open_engine(where: "Path | Postgres") -> sa.Engine:
    if not isinstance(where, Path):
        return _postgres(where)
    engine = sa.create_engine(f"sqlite:///{where}", hide_parameters=True)
    sa.event.listen(engine, "connect", _configure_sqlite)
    sa.event.listen(engine, "handle_error", partial(_raise_outage, opened_file(where)))
    return engine


def _configure_sqlite(connection: Any, _: object) -> None:
    connection.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")
    _use_write_ahead_log(connection)
    connection.execute("PRAGMA synchronous=NORMAL")


def _use_write_ahead_log(connection: Any) -> None:
    deadline = time.monotonic() + sqlite.BUSY_TIMEOUT_MS / 1000
    mode = None
    while mode is None:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL")
        # SQLite does not wait while another connection switches the mode of a new file.
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)


@contextmanager
def write(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Begin a transaction; on SQLite, first wait for other writers."""
    path = engine.url.database if engine.dialect.name == "sqlite" else None
    turn = opened_file(Path(path)).wait_in_queue() if path else nullcontext()
    with turn, engine.begin() as connection:
        yield connection


def delete_debate(connection: sa.Connection, debate_id: str) -> int:
    dialect, freed = connection.dialect.name, 0
    checkpoints = [
        sa.table(name, sa.column("thread_id"))
        for name in CHECKPOINT_TABLES[dialect]
        if sa.inspect(connection).has_table(name)
    ]
    owned: list[tuple[sa.TableClause, sa.ColumnElement[Any]]] = [
        *((each, each.c.thread_id) for each in checkpoints),
        *((each, each.c.debate_id) for each in _OWNED),
        (debates, debates.c.id),  # last, because the other tables refer to this one
    ]
    for rows, key in owned:
        if dialect == "postgresql":
            size = sa.func.sum(sa.func.pg_column_size(sa.literal_column(f"{rows.name}.*")))
            counted = sa.select(size).select_from(rows).where(key == debate_id)
            freed += connection.execute(counted).scalar() or 0
        connection.execute(sa.delete(rows).where(key == debate_id))
    return freed


def compact(engine: sa.Engine) -> int | None:
    """Shrink an SQLite file; return the number of bytes freed, or None if not possible."""
    if engine.dialect.name != "sqlite":
        return None
    turn = opened_file(Path(engine.url.database or "")).wait_in_queue()
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    try:
        with turn, autocommit.connect() as connection:
            before = _move_log_into_file(connection)
            connection.exec_driver_sql("VACUUM")
            return before - _move_log_into_file(connection)
    except DatabaseUnavailable:
        return None


def _move_log_into_file(connection: sa.Connection) -> int:
    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    return int(connection.exec_driver_sql(size).scalar_one())


def _postgres(where: "Postgres") -> sa.Engine:
    # Let the driver parse the address, as for checkpoints; SQLAlchemy parses it differently.
    engine = sa.create_engine(
        "postgresql+psycopg://",
        connect_args=where.parts(),
        pool_pre_ping=True,
        hide_parameters=True,
    )
    sa.event.listen(engine, "handle_error", partial(_raise_outage, where))
    return engine


def _raise_outage(where: "SqliteFile | Postgres", context: sa.ExceptionContext) -> None:
    # The pool replaces stale connections itself, so they are not an outage.
    outage = where.as_outage(context.original_exception)
    if outage and not context.is_pre_ping:
        raise outage from context.original_exception
