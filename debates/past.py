from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from contend.debates.record import REUSED_TURNS
from contend.debates.tables import debates

# Older debates probably used other models and settings.
_MOST = 20


@dataclass(frozen=True)
class PastDebate:
    calls: int
    input_tokens: int
    output_tokens: int
    models: frozenset[str]


def read_past(connection: sa.Connection, protocol: str) -> list[PastDebate]:
    """Return recent finished debates, except reruns and those without token counts."""
    trace = debates.c.state["trace"]
    usage, seats = trace["usage"].label("usage"), trace["seats"].label("seats")
    query = sa.select(usage, seats, debates.c.settings)
    query = query.where(debates.c.protocol == protocol, debates.c.status == "done")
    rows = connection.execute(query.order_by(debates.c.created_at.desc()).limit(_MOST)).all()
    # Debates that reused recorded calls did not pay for them.
    whole = (row for row in rows if REUSED_TURNS not in row.settings)
    return [_past(row.usage, row.seats) for row in whole if _is_known(row.usage)]


def _is_known(usage: Any) -> bool:
    if not usage or usage.get("without_usage") or not usage["turns"]:
        return False
    return usage["input_tokens"] is not None and usage["output_tokens"] is not None


def _past(usage: Any, seats: Any) -> PastDebate:
    models = frozenset(seat["model"] for seat in seats or ())
    return PastDebate(usage["turns"], usage["input_tokens"], usage["output_tokens"], models)
