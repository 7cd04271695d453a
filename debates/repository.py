from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from contend.debates import leases, tables
from contend.debates.checkpoint_threads import CheckpointThreads
from contend.debates.events import Event
from contend.debates.family import (
    Family,
    Origin,
    SharedPart,
    read_family,
    read_origin,
    write_origin,
)
from contend.debates.journal import Journal
from contend.debates.leases import (
    RECORD,
    Lease,
    LeaseColumns,
    LeaseLost,
    is_elsewhere,
    is_held,
    written,
)
from contend.debates.listing import Filter, ListPage, read_page
from contend.debates.loading import (
    UNREADABLE,
    Report,
    find_damaged,
    load_debate,
    load_readable,
    read_row,
    skip_silently,
)
from contend.debates.migrations import bring_up_to_date
from contend.debates.missing_events import add_missing_events, append_event
from contend.debates.past import PastDebate, read_past
from contend.debates.record import StoredDebate, dump_state
from contend.debates.recordings import Recordings
from contend.debates.spending import Spending
from contend.debates.stored_events import (
    encode,
    insert_events,
    lock_sources,
    reassign_shared_events,
)
from contend.debates.stored_turns import first_difference, write_turns
from contend.graph.errors import BadInput, DamagedDebate
from contend.graph.events import node_event
from contend.graph.record import Status
from contend.graph.state import DebateState
from contend.models.text import clean

if TYPE_CHECKING:  # the driver is loaded only where a server is used
    from contend.graph.checkpoints.postgres import Postgres

_WHOLE_ID = 36


class DebateExists(Exception):
    pass


class TaskAccepted(Exception):
    """Raised if the task already has an unfinished debate."""


@dataclass(frozen=True)
class UnfinishedTask:
    debate: StoredDebate
    elsewhere: bool
    """Whether another machine ran the debate last and may have newer checkpoints."""


class Repository:
    def __init__(self, where: "Path | Postgres") -> None:
        self._engine = tables.open_engine(where)
        self.journal = Journal(self._engine)
        self.recordings = Recordings(self._engine)
        self.spending = Spending(self._engine)
        self.threads = CheckpointThreads(self._engine)
        try:
            bring_up_to_date(self._engine)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._engine.dispose()

    def start(
        self,
        debate_id: str,
        protocol: str,
        state: DebateState,
        settings: dict[str, Any],
        *,
        demonstration: bool,
        task_id: str | None = None,
        shared: SharedPart | None = None,
    ) -> None:
        row = tables.debates.insert().values(
            id=debate_id,
            protocol=protocol,
            question=state["question"],
            status="running",
            created_at=_now(),
            updated_at=_now(),
            settings=settings,
            state=dump_state(state),
            demonstration=demonstration,
            last_seq=len(shared.events) if shared else 0,
        )
        with tables.write(self._engine) as connection:
            try:
                connection.execute(row)
            except sa.exc.IntegrityError as taken:
                raise DebateExists(debate_id) from taken
            if task_id is not None:
                _accept(connection, debate_id, task_id)
            if shared:
                write_origin(connection, debate_id, shared.origin)
                lock_sources(connection, shared.events)
                insert_events(connection, {debate_id: shared.events})

    def save(
        self,
        lease: Lease,
        status: Status,
        state: DebateState,
        last_seq: int,
        error: str | None = None,
        said: Sequence[Event] = (),
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Save the debate, its turns and events; raise LeaseLost if another process took over."""
        turns, stored = state.get("turns", []), dump_state(state)  # before the transaction
        changed = {} if settings is None else {"settings": settings}
        with tables.write(self._engine) as connection:
            saved = connection.execute(
                tables.debates.update()
                .where(lease.is_mine)
                .values(
                    status=status,
                    state=stored,
                    updated_at=_now(),
                    last_seq=last_seq,
                    error=clean(error) if error else None,
                    **changed,
                )
            )
            if saved.rowcount != 1:
                raise LeaseLost(lease.debate_id)
            write_turns(connection, lease.debate_id, turns, first_difference(lease.saved, turns))
            insert_events(connection, {lease.debate_id: encode(said)})
            if status in ("done", "failed"):
                connection.execute(_acceptance_of(lease.debate_id))
        lease.saved = tuple(turns)

    def find(self, reference: str, *, with_turns: bool = True) -> StoredDebate:
        prefix = reference.strip().lower()
        meant = tables.debates.c.id.startswith(prefix, autoescape=True)
        if len(prefix) == _WHOLE_ID:  # uses the index
            meant = tables.debates.c.id == prefix
        with self._engine.connect() as connection:
            query = sa.select(tables.debates.c.id).where(meant)
            ids = connection.execute(query.limit(2)).scalars().all() if prefix else []
            if len(ids) != 1:
                problem = "More than one debate id starts with" if ids else "No debate has the id"
                raise BadInput(f"{problem} '{reference}'. `contend list` shows all.")
            return load_debate(connection, ids[0], with_turns=with_turns)

    def newest(self, limit: int, report: Report = skip_silently) -> list[StoredDebate]:
        newest_first = tables.debates.c.created_at.desc()
        return self._list(sa.select(tables.debates).order_by(newest_first).limit(limit), report)

    def search(self, wanted: Filter, limit: int) -> ListPage:
        with self._engine.connect() as connection:
            return read_page(connection, wanted, limit)

    def unfinished(self, untouched: timedelta) -> list[UnfinishedTask]:
        """Return paused or long-interrupted accepted debates; mark damaged debates as failed."""
        query = sa.select(tables.debates.c.id, tables.debates.c.lease_holder).join(tables.accepted)
        before = written(datetime.now(UTC) - untouched)
        damaged: list[DamagedDebate] = []
        with self._engine.connect() as connection:
            elsewhere = {row.id: is_elsewhere(row) for row in connection.execute(query).all()}
            debates = list(load_readable(connection, list(elsewhere), damaged.append))
        for each in damaged:
            with suppress(BadInput):  # a process is running the debate
                self.acquire(each.debate_id).release()
                self.give_up(each.debate_id, str(each))
        found = [UnfinishedTask(each, elsewhere[each.id]) for each in debates]
        cut_off = [each for each in found if each.debate.status == "interrupted"]
        paused = [each for each in found if each.debate.status == "paused"]
        # Leave out debates that were just inserted, because they are about to start.
        return paused + [each for each in cut_off if each.debate.updated_at < before]

    def accept(self, debate_id: str, task_id: str | None = None) -> None:
        """Mark an unfinished debate as accepted, so that a service finishes it after a restart."""
        debates = tables.debates.c
        task = sa.literal(task_id or task_of_debate(debate_id))
        # Include failed debates, which may be running again with their new status unsaved.
        unfinished = sa.select(debates.id, task).where(
            debates.id == debate_id, debates.status != "done"
        )
        insert = tables.accepted.insert().from_select(["debate_id", "task_id"], unfinished)
        with suppress(sa.exc.IntegrityError), tables.write(self._engine) as connection:
            connection.execute(insert)

    def accept_with(self, debate_id: str, settings: dict[str, Any], task_id: str | None) -> None:
        row = tables.debates.update().where(tables.debates.c.id == debate_id)
        with tables.write(self._engine) as connection:
            connection.execute(row.values(settings=settings))
            if task_id is not None:
                _accept(connection, debate_id, task_id)

    def withdraw(self, debate_id: str) -> None:
        """Keep services from continuing a debate until a person resumes it."""
        with tables.write(self._engine) as connection:
            connection.execute(_acceptance_of(debate_id))

    def debate_of(self, task_id: str) -> str | None:
        query = sa.select(tables.accepted.c.debate_id).where(tables.accepted.c.task_id == task_id)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar()

    def origin(self, debate_id: str) -> Origin | None:
        with self._engine.connect() as connection:
            return read_origin(connection, debate_id)

    def family(self, debate_id: str) -> Family:
        with self._engine.connect() as connection:
            return read_family(connection, debate_id)

    def newest_of_task(self, task_id: str) -> str | None:
        debates = tables.debates.c
        named = debates.state["request"]["task_id"].as_string() == task_id
        query = sa.select(debates.id).where(named).order_by(debates.created_at.desc()).limit(1)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar()

    def give_up(self, debate_id: str, reason: str) -> None:
        """Mark an unfinished debate as failed, unless a process is running it."""
        debates = tables.debates
        free = sa.and_(debates.c.id == debate_id, debates.c.lease_owner.is_(None))
        failed = debates.update().where(free, debates.c.status.not_in(["done", "failed"]))
        with tables.write(self._engine) as connection:
            values = {"status": "failed", "error": clean(reason), "updated_at": _now()}
            if connection.execute(failed.values(values)).rowcount:
                append_event(connection, debate_id, node_event("error", None, clean(reason)))
            ended = sa.exists().where(free, tables.accepted.c.debate_id == debates.c.id)
            connection.execute(_acceptance_of(debate_id).where(ended))

    def store_missing_events(self, debate_id: str) -> bool:
        with tables.write(self._engine) as connection:
            return add_missing_events(connection, debate_id)

    def rate(self, debate_id: str, rating: int) -> None:
        self._set(debate_id, user_rating=rating)

    def rename(self, debate_id: str, title: str | None) -> None:
        self._set(debate_id, title=title)

    def change_settings(self, debate_id: str, settings: dict[str, Any]) -> None:
        self._set(debate_id, settings=settings)

    def _set(self, debate_id: str, **values: Any) -> None:
        row = tables.debates.update().where(tables.debates.c.id == debate_id)
        with tables.write(self._engine) as connection:
            connection.execute(row.values(values))

    def done(self, protocol: str, report: Report = skip_silently) -> list[StoredDebate]:
        wanted = sa.and_(tables.debates.c.protocol == protocol, tables.debates.c.status == "done")
        query = sa.select(tables.debates).where(wanted).order_by(tables.debates.c.created_at)
        return self._list(query, report)

    def _list(self, query: sa.Select[Any], report: Report) -> list[StoredDebate]:
        with self._engine.connect() as connection:
            try:
                return [read_row(connection, row, []) for row in connection.execute(query).all()]
            except UNREADABLE:
                connection.rollback()
            ids = connection.execute(query.with_only_columns(tables.debates.c.id)).scalars().all()
            return list(load_readable(connection, ids, report))

    def past(self, protocol: str) -> list[PastDebate]:
        with self._engine.connect() as connection:
            return read_past(connection, protocol)

    def ids(self) -> list[str]:
        with self._engine.connect() as connection:
            return list(connection.execute(sa.select(tables.debates.c.id)).scalars())

    def damaged(self) -> list[str]:
        ids = self.ids()
        with self._engine.connect() as connection:
            return [each.debate_id for each in find_damaged(connection, ids)]

    def untouched_since(self, before: datetime, *, keep_rated: bool) -> list[str]:
        debates = tables.debates.c
        query = sa.select(
            debates.id, debates.lease_owner, debates.lease_holder, debates.lease_until
        ).where(debates.updated_at < written(before))
        if keep_rated:
            resolved = sa.exists().where(tables.resolutions.c.debate_id == debates.id)
            query = query.where(debates.user_rating.is_(None), ~resolved)
        with self._engine.connect() as connection:
            rows = connection.execute(query.order_by(debates.updated_at)).all()
            return [row.id for row in rows if not is_held(connection, row)]

    def delete(self, debate_id: str) -> int:
        lease = self.acquire(debate_id)
        try:
            with tables.write(self._engine) as connection:
                reassign_shared_events(connection, debate_id)
                return tables.delete_debate(connection, debate_id)
        finally:
            lease.release()

    def compact(self) -> int | None:
        return tables.compact(self._engine)

    def resolve(self, debate_id: str, outcome: str) -> None:
        mine = tables.resolutions.c.debate_id == debate_id
        debate = sa.select(tables.debates.c.id).where(tables.debates.c.id == debate_id)
        with tables.write(self._engine) as connection:
            # Row lock: the last writer wins.
            connection.execute(debate.with_for_update()).all()
            connection.execute(tables.resolutions.delete().where(mine))
            connection.execute(
                tables.resolutions.insert().values(
                    debate_id=debate_id, outcome=outcome, resolved_at=_now()
                )
            )

    def resolutions(self) -> dict[str, str]:
        query = sa.select(tables.resolutions.c.debate_id, tables.resolutions.c.outcome)
        with self._engine.connect() as connection:
            return {row.debate_id: row.outcome for row in connection.execute(query)}

    def is_held_by(self, debate_id: str, owner: str | None) -> bool:
        with self._engine.connect() as connection:
            return leases.is_held_by(connection, debate_id, owner)

    def is_held_elsewhere(self, debate_id: str, columns: LeaseColumns = RECORD) -> bool:
        with self._engine.connect() as connection:
            return is_elsewhere(leases.read_lease(connection, debate_id, columns))

    def acquire(self, debate_id: str, columns: LeaseColumns = RECORD) -> Lease:
        lease = Lease(self._engine, debate_id, columns)
        lease.acquire()
        return lease


def task_of_debate(debate_id: str) -> str:
    return f"debate {debate_id}"


def _accept(connection: sa.Connection, debate_id: str, task_id: str) -> None:
    try:
        connection.execute(tables.accepted.insert().values(debate_id=debate_id, task_id=task_id))
    except sa.exc.IntegrityError as taken:
        raise TaskAccepted from taken


def _acceptance_of(debate_id: str) -> sa.Delete:
    return tables.accepted.delete().where(tables.accepted.c.debate_id == debate_id)


def _now() -> str:
    return written(datetime.now(UTC))
