from collections.abc import Sequence

import sqlalchemy as sa

from contend.debates import tables
from contend.graph.state import Turn


def write_turns(
    connection: sa.Connection, debate_id: str, turns: Sequence[Turn], known: int
) -> None:
    stale = sa.and_(tables.turns.c.debate_id == debate_id, tables.turns.c.position >= known)
    connection.execute(tables.turns.delete().where(stale))
    rows = [
        {"debate_id": debate_id, "position": at, "turn": turn.model_dump(mode="json")}
        for at, turn in enumerate(turns)
        if at >= known
    ]
    if rows:
        connection.execute(tables.turns.insert(), rows)


def first_difference(left: Sequence[Turn], right: Sequence[Turn]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))
