"""The lease of a debate: one process at a time runs it."""

import os
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from contend.debates.tables import debates
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.state import Turn

# A runner renews its lease long before it ends; a crashed one on this machine is seen at once.
LEASE = timedelta(seconds=30)


class LeaseLost(Exception):
    """Another runner has taken the debate over; this one may write nothing more."""

    def __init__(self, debate_id: str) -> None:
        super().__init__(f"Another process has taken debate {debate_id} over.")


# The leases this process holds, by their owners.
_held: set[str] = set()


class Lease:
    """The right to run one debate, renewed while it lasts."""

    def __init__(self, engine: sa.Engine, debate_id: str) -> None:
        self._engine, self.debate_id, self._owner = engine, debate_id, str(uuid4())
        self.is_mine = sa.and_(debates.c.id == debate_id, debates.c.lease_owner == self._owner)
        self.saved: tuple[Turn, ...] = ()
        """The turns its holder is known to have written."""

    def acquire(self) -> None:
        """Take the lease if it is free, has run out, or its holder is dead."""
        _held.add(self._owner)
        try:
            self._take()
        except BaseException:
            _held.discard(self._owner)
            raise

    def _take(self) -> None:
        with self._engine.begin() as connection:
            found = connection.execute(
                sa.select(debates).where(debates.c.id == self.debate_id)
            ).one()
            holder, now = found.lease_holder, _clock(connection)
            free = sa.or_(
                debates.c.lease_until.is_(None),
                debates.c.lease_until < written(now),
                debates.c.lease_owner == (found.lease_owner if _is_dead(found) else None),
            )
            taken = connection.execute(
                debates.update()
                .where(debates.c.id == self.debate_id, free)
                .values(
                    lease_owner=self._owner,
                    lease_holder=_this_process(),
                    lease_until=written(now + LEASE),
                )
            )
        if taken.rowcount != 1:
            raise BadInput(f"Debate {self.debate_id} is being run by another process ({holder}).")

    def renew(self) -> bool:
        """Keep the lease; False when it was lost. A database in trouble is asked again in time."""
        try:
            with self._engine.begin() as connection:
                return self._set(connection, lease_until=written(_clock(connection) + LEASE))
        except (sa.exc.SQLAlchemyError, DatabaseUnavailable):
            return True

    def release(self) -> None:
        """Give it back."""
        _held.discard(self._owner)
        with self._engine.begin() as connection:
            self._set(connection, lease_owner=None, lease_holder=None, lease_until=None)

    def _set(self, connection: sa.Connection, **values: str | None) -> bool:
        return (
            connection.execute(debates.update().where(self.is_mine).values(**values)).rowcount == 1
        )


def is_held(connection: sa.Connection, row: Any) -> bool:
    """Whether somebody runs the debate of this row."""
    alive = row.lease_until is not None and row.lease_until >= written(_clock(connection))
    return alive and not _is_dead(row)


def is_elsewhere(row: Any) -> bool:
    """Whether another machine had the lease and never gave it back."""
    return bool(row.lease_holder) and row.lease_holder.rpartition(":")[0] != _machine()


def _is_dead(row: Any) -> bool:
    """Whether the holder was a process of this machine that is gone; elsewhere time must tell."""
    machine, _, pid = (row.lease_holder or "").rpartition(":")
    if machine != _machine() or sys.platform == "win32":
        return False
    if int(pid) == os.getpid():
        return row.lease_owner not in _held  # it could not be given back: the database was away
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _this_process() -> str:
    return f"{_machine()}:{os.getpid()}"


@cache
def _machine() -> str:
    """This machine or container: others may have its name, and the number of a process there
    says nothing here.
    """
    name = socket.gethostname()
    with suppress(OSError):  # Linux only
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        room = Path("/proc/self/ns/pid").readlink()
        name += f"-{sha256(f'{boot}{room}'.encode()).hexdigest()[:8]}"
    return name


def _clock(connection: sa.Connection) -> datetime:
    """The time leases go by. Machines that share a server go by its clock, not by their own."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    now: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now


def written(time: datetime) -> str:
    """A time as it is stored, so that text sorts as time."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")
