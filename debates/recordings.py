from typing import TYPE_CHECKING

import sqlalchemy as sa

from contend.debates.dialects import insert
from contend.debates.tables import calls, write

if TYPE_CHECKING:  # slow to import, and only runs and replays need it
    from contend.debates.record import StoredDebate
    from contend.debates.repository import Repository
    from contend.models.recording import CallKey, RecordedCall, Recording


def load_recording(records: "Repository", debate: "StoredDebate", recording: "Recording") -> None:
    parent = records.origin(debate.id) if debate.reused_turns else None
    if not (debate.is_from_cassette or parent):
        return
    recording.known = records.recordings.read(parent.parent_id if parent else debate.id)
    recording.retrieval = debate.as_state().get("retrieval")
    if debate.is_from_cassette:
        recording.is_complete, recording.keep = True, None


def why_not_recorded(debate: "StoredDebate") -> str:
    server = debate.server or debate.ran_on
    if server is None:
        return "an earlier release or another program ran it"
    return (
        f"{server} made its calls. A server records calls in its own database, and only if its "
        "langgraph.json has Contend's app (http.app)"
    )


class Recordings:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def add(self, debate_id: str, key: "CallKey", call: "RecordedCall") -> None:
        """Store a call, replacing an earlier recording with the same key."""
        text = call.model_dump_json(exclude_defaults=True)
        row = insert(self._engine.dialect.name, calls).values(
            debate_id=debate_id, **key._asdict(), call=text
        )
        row = row.on_conflict_do_update(
            index_elements=list(calls.primary_key), set_={"call": row.excluded.call}
        )
        with write(self._engine) as connection:
            connection.execute(row)

    def read(self, debate_id: str) -> "dict[CallKey, RecordedCall]":
        from contend.models.recording import CallKey, RecordedCall

        columns = calls.c.asked, calls.c.messages, calls.c.number, calls.c.call
        query = sa.select(*columns).where(calls.c.debate_id == debate_id)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return {CallKey(*key): RecordedCall.model_validate_json(text) for *key, text in rows}
