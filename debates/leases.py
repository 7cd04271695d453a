"""Manages leases, which let only one process at a time run a debate."""

import os
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import sqlalchemy as sa

from contend.debates.tables import debates, write
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.state import Turn

# Renewed long before it expires; a crash of a process on this machine is noticed immediately.
LEASE = timedelta(seconds=30)


class LeaseColumns(NamedTuple):
    owner: sa.Column[Any]
    holder: sa.Column[Any]
    until: sa.Column[Any]

    def select(self, debate_id: str) -> sa.Select[Any]:
        named = zip(self, ("lease_owner", "lease_holder", "lease_until"), strict=True)
        columns = [column.label(name) for column, name in named]
        return sa.select(*columns).where(debates.c.id == debate_id)


RECORD = LeaseColumns(debates.c.lease_owner, debates.c.lease_holder, debates.c.lease_until)
"""The lease to write a debate's record; its holder usually runs the debate too."""
RUN = LeaseColumns(debates.c.run_owner, debates.c.run_holder, debates.c.run_until)
"""The lease to run a debate on a server, where a client may hold the record's lease."""


class LeaseLost(Exception):
    def __init__(self, debate_id: str) -> None:
        super().__init__(f"Another process has taken over debate {debate_id}.")


# Owner ids of the leases this process holds.
_held: set[str] = set()


class Lease:
    def __init__(self, engine: sa.Engine, debate_id: str, columns: LeaseColumns = RECORD) -> None:
        self._engine, self.debate_id, self.owner = engine, debate_id, str(uuid4())
        self._columns = columns
        self.is_mine = sa.and_(debates.c.id == debate_id, columns.owner == self.owner)
        self.saved: tuple[Turn, ...] = ()

    def acquire(self) -> None:
        """Take the lease; raise BadInput if a live process holds it and it has not expired."""
        _held.add(self.owner)
        try:
            self._take()
        except BaseException:
            _held.discard(self.owner)
            raise

    def _take(self) -> None:
        with write(self._engine) as connection:
            owner, holder, until = self._columns
            found = connection.execute(self._columns.select(self.debate_id)).first()
            if found is None:
                raise BadInput(f"Debate {self.debate_id} was deleted.")
            now = _clock(connection)
            free = sa.or_(
                until.is_(None),
                until < written(now),
                owner == (found.lease_owner if _is_dead(found) else None),
            )
            taken = connection.execute(
                debates.update()
                .where(debates.c.id == self.debate_id, free)
                .values(
                    {
                        owner: self.owner,
                        holder: f"{_machine()}:{os.getpid()}",
                        until: written(now + LEASE),
                    }
                )
            )
        if taken.rowcount != 1:
            by = found.lease_holder
            raise BadInput(f"Debate {self.debate_id} is being run by another process ({by}).")

    def renew(self) -> bool:
        """Renew the lease. Return False only if it was lost, not on a database error."""
        try:
            with write(self._engine) as connection:
                return self._set(connection, until=written(_clock(connection) + LEASE))
        except (sa.exc.SQLAlchemyError, DatabaseUnavailable):
            return True

    def release(self) -> None:
        _held.discard(self.owner)
        with write(self._engine) as connection:
            self._set(connection, owner=None, holder=None, until=None)

    def _set(self, connection: sa.Connection, **values: str | None) -> bool:
        changed = {getattr(self._columns, name): value for name, value in values.items()}
        update = debates.update().where(self.is_mine).values(changed)
        return connection.execute(update).rowcount == 1


def is_held(connection: sa.Connection, row: Any) -> bool:
    alive = row.lease_until is not None and row.lease_until >= written(_clock(connection))
    return alive and not _is_dead(row)


def read_lease(connection: sa.Connection, debate_id: str, columns: LeaseColumns = RECORD) -> Any:
    return connection.execute(columns.select(debate_id)).first()


def is_held_by(connection: sa.Connection, debate_id: str, owner: str | None) -> bool:
    """Return whether `owner` (or anyone, if None) holds the record's lease."""
    row = read_lease(connection, debate_id)
    if row is None or owner not in (None, row.lease_owner):
        return False
    return is_held(connection, row)


def is_elsewhere(row: Any) -> bool:
    return bool(row and row.lease_holder) and row.lease_holder.rpartition(":")[0] != _machine()


def _is_dead(row: Any) -> bool:
    machine, _, pid = (row.lease_holder or "").rpartition(":")
    if machine != _machine() or sys.platform == "win32" or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return row.lease_owner not in _held  # a database outage may have prevented the release
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # a running process of another user
        pass
    return False


@cache
def _machine() -> str:
    """Return the host name, made unique per boot and container on Linux."""
    name = socket.gethostname()
    with suppress(OSError):  # Linux only
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        namespace = Path("/proc/self/ns/pid").readlink()
        name += f"-{sha256(f'{boot}{namespace}'.encode()).hexdigest()[:8]}"
    return name


def _clock(connection: sa.Connection) -> datetime:
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    now: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now


def written(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds")
