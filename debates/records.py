"""The stored debate: one row for the debate, one for each turn, and a lease for its runner."""

import os
import socket
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast
from uuid import uuid4

import sqlalchemy as sa
from pydantic import BaseModel, TypeAdapter

from graph.checkpoints import BUSY_TIMEOUT_MS
from graph.errors import BadInput
from graph.state import DebateState, Turn
from nodes.store import trace_of

Status = Literal["running", "paused", "interrupted", "failed", "done"]

SCHEMA_VERSION = 1
# A runner renews its lease long before it ends; a crashed one on this machine is seen at once.
LEASE = timedelta(seconds=30)

_metadata = sa.MetaData()
_debates = sa.Table(
    "debates",
    _metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("protocol", sa.String(32), nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
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
)
_turns = sa.Table(
    "debate_turns",
    _metadata,
    sa.Column("debate_id", sa.ForeignKey("debates.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("turn", sa.JSON, nullable=False),
)


class Debate(BaseModel):
    """A stored debate."""

    id: str
    protocol: str
    question: str
    status: Status
    created_at: str
    updated_at: str
    settings: dict[str, Any]
    state: dict[str, Any]
    error: str | None
    demonstration: bool
    user_rating: int | None
    last_seq: int
    turns: list[Turn] = []

    def as_state(self) -> DebateState:
        """The debate's state as of its last saved step."""
        return cast(
            "DebateState", {**_state_adapter().validate_python(self.state)} | {"turns": self.turns}
        )

    def as_json(self) -> dict[str, Any]:
        """The published record: the trace, and around it all that is known of the debate."""
        return {
            **trace_of(self.as_state(), self.id, self.user_rating),
            "protocol": self.protocol,
            "status": self.status,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "error": self.error,
            "settings": self.settings,
            "turns": [turn.model_dump(mode="json") for turn in self.turns],
        }


class Records:
    """The repository of debates on one database."""

    def __init__(self, path: Path) -> None:
        self._engine = sa.create_engine(f"sqlite:///{path}")
        sa.event.listen(self._engine, "connect", _configure_sqlite)
        with self._engine.begin() as connection:
            _refuse_newer(connection)
            _metadata.create_all(connection)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def start(
        self,
        debate_id: str,
        protocol: str,
        state: DebateState,
        settings: dict[str, Any],
        *,
        demonstration: bool,
    ) -> None:
        """Write the row of a debate that is about to run."""
        with self._engine.begin() as connection:
            connection.execute(
                _debates.insert().values(
                    id=debate_id,
                    protocol=protocol,
                    question=state["question"],
                    status="running",
                    created_at=_now(),
                    updated_at=_now(),
                    settings=settings,
                    state=_dump(state),
                    demonstration=demonstration,
                    last_seq=0,
                )
            )

    def save(
        self,
        lease: "Lease",
        status: Status,
        state: DebateState,
        last_seq: int,
        error: str | None = None,
    ) -> None:
        """Bring the row up to the state, with its new turns; refused to a runner without lease."""
        debate_id = lease.debate_id
        with self._engine.begin() as connection:
            saved = connection.execute(
                _debates.update()
                .where(lease.is_mine)
                .values(
                    status=status,
                    state=_dump(state),
                    updated_at=_now(),
                    last_seq=last_seq,
                    error=error,
                )
            )
            if saved.rowcount != 1:
                raise LeaseLost(debate_id)
            mine = _turns.c.debate_id == debate_id
            count = sa.select(sa.func.count()).select_from(_turns).where(mine)
            have = connection.execute(count).scalar_one()
            rows = [
                {"debate_id": debate_id, "position": at, "turn": turn.model_dump(mode="json")}
                for at, turn in enumerate(state.get("turns", []))
                if at >= have
            ]
            if rows:
                connection.execute(_turns.insert(), rows)

    def find(self, reference: str) -> Debate:
        """The debate with this id, or with the one id that begins so."""
        prefix = reference.strip().lower()
        with self._engine.connect() as connection:
            query = sa.select(_debates).where(_debates.c.id.startswith(prefix, autoescape=True))
            rows = connection.execute(query.limit(2)).all() if prefix else []
            if len(rows) != 1:
                problem = "More than one debate begins with" if rows else "No debate has the id"
                raise BadInput(f"{problem} '{reference}'. `contend list` shows them.")
            query = sa.select(_turns.c.turn).where(_turns.c.debate_id == rows[0].id)
            turns = connection.execute(query.order_by(_turns.c.position)).scalars()
            return _debate(rows[0], [Turn.model_validate(turn) for turn in turns])

    def newest(self, limit: int) -> list[Debate]:
        """The debates begun last, newest first, without their turns."""
        query = sa.select(_debates).order_by(_debates.c.created_at.desc()).limit(limit)
        with self._engine.connect() as connection:
            return [_debate(row, []) for row in connection.execute(query)]

    def rate(self, debate_id: str, rating: int) -> None:
        """Keep the user's rating."""
        with self._engine.begin() as connection:
            row = _debates.update().where(_debates.c.id == debate_id)
            connection.execute(row.values(user_rating=rating))

    def acquire(self, debate_id: str) -> "Lease":
        """Become the one runner of a debate; refused while another is alive."""
        lease = Lease(self._engine, debate_id)
        lease.acquire()
        return lease


class LeaseLost(Exception):
    """Another runner has taken the debate over; this one may write nothing more."""

    def __init__(self, debate_id: str) -> None:
        super().__init__(f"Another process has taken debate {debate_id} over.")


class Lease:
    """The right to run one debate, renewed while it lasts."""

    def __init__(self, engine: sa.Engine, debate_id: str) -> None:
        self._engine, self.debate_id, self._owner = engine, debate_id, str(uuid4())
        self.is_mine = sa.and_(_debates.c.id == debate_id, _debates.c.lease_owner == self._owner)

    def acquire(self) -> None:
        """Take the lease if it is free, has run out, or its holder is dead."""
        with self._engine.begin() as connection:
            found = connection.execute(
                sa.select(_debates).where(_debates.c.id == self.debate_id)
            ).one()
            holder = found.lease_holder
            free = sa.or_(
                _debates.c.lease_until.is_(None),
                _debates.c.lease_until < _now(),
                _debates.c.lease_owner == (found.lease_owner if _is_dead(holder) else None),
            )
            taken = connection.execute(
                _debates.update()
                .where(_debates.c.id == self.debate_id, free)
                .values(lease_owner=self._owner, lease_holder=_this_process(), lease_until=_until())
            )
        if taken.rowcount != 1:
            raise BadInput(f"Debate {self.debate_id} is being run by another process ({holder}).")

    def renew(self) -> bool:
        """Keep the lease; False when it was lost. A busy database is asked again in time."""
        try:
            return self._set(lease_until=_until())
        except sa.exc.OperationalError:
            return True

    def release(self) -> None:
        """Give it back."""
        self._set(lease_owner=None, lease_holder=None, lease_until=None)

    def _set(self, **values: str | None) -> bool:
        row = _debates.update().where(self.is_mine)
        with self._engine.begin() as connection:
            return connection.execute(row.values(**values)).rowcount == 1


def _debate(row: Any, turns: list[Turn]) -> Debate:
    values = dict(row._mapping)
    abandoned = row.status == "running" and not _is_held(row)
    return Debate(**values | {"turns": turns} | ({"status": "interrupted"} if abandoned else {}))


def _is_held(row: Any) -> bool:
    alive = row.lease_until is not None and row.lease_until >= _now()
    return alive and not _is_dead(row.lease_holder)


def _is_dead(holder: str | None) -> bool:
    """Whether the holder was a process of this machine that is gone; elsewhere time must tell."""
    host, _, pid = (holder or "").rpartition(":")
    if host != socket.gethostname() or sys.platform == "win32":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _until() -> str:
    return (datetime.now(UTC) + LEASE).isoformat(timespec="microseconds")


def _dump(state: DebateState) -> dict[str, Any]:
    """The state as JSON, without what is kept elsewhere: the turns, and the trace made of them."""
    kept = {key: value for key, value in state.items() if key not in ("turns", "trace")}
    return cast(
        "dict[str, Any]", _state_adapter().dump_python(cast("DebateState", kept), mode="json")
    )


@cache
def _state_adapter() -> TypeAdapter[DebateState]:
    return TypeAdapter(DebateState)


def _refuse_newer(connection: sa.Connection) -> None:
    """Mark a new database with the form of its tables, and leave one of a later form alone."""
    found = connection.execute(sa.text("PRAGMA user_version")).scalar_one()
    if found > SCHEMA_VERSION:
        raise BadInput("The database was written by a newer version of Contend; upgrade to use it.")
    connection.execute(sa.text(f"PRAGMA user_version={SCHEMA_VERSION}"))


def _configure_sqlite(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
