from collections import defaultdict
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from contend.debates.stored_events import StoredEvent
from contend.debates.tables import debates, forks


@dataclass(frozen=True)
class Origin:
    parent_id: str
    round: int | None
    node: str  # the last node that both debates share
    edited: str | None = None  # the turn that a person rewrote


@dataclass(frozen=True)
class SharedPart:
    origin: Origin
    events: list[StoredEvent]


@dataclass(frozen=True)
class Family:
    """The first debate of a family, and the origins of all its direct and indirect forks."""

    eldest: str
    origins: dict[str, Origin]

    def children(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for debate_id, origin in self.origins.items():
            found[origin.parent_id].append(debate_id)
        return found


def write_origin(connection: sa.Connection, debate_id: str, origin: Origin) -> None:
    connection.execute(forks.insert().values(debate_id=debate_id, **asdict(origin)))


def read_family(connection: sa.Connection, debate_id: str) -> Family:
    eldest = debate_id
    while origin := read_origin(connection, eldest):
        eldest = origin.parent_id
    origins: dict[str, Origin] = {}
    generation = [eldest]
    while generation:
        query = sa.select(forks).join(debates, debates.c.id == forks.c.debate_id)
        query = query.where(forks.c.parent_id.in_(generation)).order_by(debates.c.created_at)
        rows = connection.execute(query).mappings().all()
        origins |= {row["debate_id"]: _origin(row) for row in rows}
        generation = [row["debate_id"] for row in rows]
    return Family(eldest, origins)


def read_origin(connection: sa.Connection, debate_id: str) -> Origin | None:
    query = sa.select(forks).where(forks.c.debate_id == debate_id)
    row = connection.execute(query).mappings().one_or_none()
    return _origin(row) if row else None


def _origin(row: sa.RowMapping) -> Origin:
    return Origin(row["parent_id"], row["round"], row["node"], row["edited"])
