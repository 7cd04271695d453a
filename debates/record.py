from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

from contend.debates.exports.cautions import cautions_of
from contend.debates.outputs import find_folder
from contend.graph.errors import OUT_OF_BUDGET
from contend.graph.protocols.base import strategy_for
from contend.graph.record import DebateRecord, Status
from contend.graph.settings import SETTINGS, DebateSettings, read_stored
from contend.graph.settings.forecast import request_of
from contend.graph.state import DebateState, Turn
from contend.nodes.record import read_record

# Internal settings of debates that use a recording.
FROM_CASSETTE = "from_cassette"
REUSED_TURNS = "reused_turns"
RAN_ON = "ran_on"  # the LangGraph server that started the debate, if any
OPENING = "opening"  # what a server said while it prepared the debate, until that begins
SERVER = "server"  # the addresses of the LangGraph server that continues the debate, if any


_COLUMNS = {"turns", "settings", "protocol"}


class StoredDebate(BaseModel):
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
    resolution: str | None = None
    """The outcome that came true, if the forecast is resolved."""
    title: str | None = None
    """The user's title for the debate, shown instead of the question."""

    @property
    def shown_title(self) -> str:
        return self.title or self.question

    def check(self) -> None:
        self.as_state()
        self.as_settings()

    def as_state(self) -> DebateState:
        return cast(
            "DebateState", {**_state_adapter().validate_python(self.state)} | {"turns": self.turns}
        )

    def with_state(self, status: Status, state: DebateState, error: str | None) -> "StoredDebate":
        turns = list(state.get("turns", []))
        changed = {"status": status, "state": dump_state(state), "turns": turns, "error": error}
        return self.model_copy(update=changed)

    def as_settings(self) -> DebateSettings:
        """Return the settings without checking that this release can run with them."""
        return read_stored(SETTINGS[self.protocol], self.settings)

    def settings_to_run(self, changes: Mapping[str, Any] | None = None) -> DebateSettings:
        """Return the settings with changes applied; raise BadInput if they are unusable."""
        from contend.debates.settings_sources import stored_settings_from

        return stored_settings_from(self.protocol, self.settings, changes or {})

    @property
    def ran_on(self) -> str | None:
        """Return the LangGraph server that ran this debate, or None if Contend ran it."""
        return self.settings.get(RAN_ON)

    @property
    def server(self) -> str | None:
        """Return the URLs of the LangGraph server that runs this debate, or None."""
        return self.settings.get(SERVER)

    @property
    def is_from_cassette(self) -> bool:
        return bool(self.settings.get(FROM_CASSETTE))

    @property
    def reused_turns(self) -> frozenset[str]:
        return frozenset(self.settings.get(REUSED_TURNS, ()))

    @property
    def stop_reason(self) -> str | None:
        stop = self.state.get("stop")
        if stop:
            return str(stop["reason"])
        return "failed" if self.status == "failed" else None

    @property
    def is_out_of_budget(self) -> bool:
        return self.status == "paused" and (self.error or "").startswith(OUT_OF_BUDGET)

    def as_record(self) -> DebateRecord:
        record = read_record(self.as_state(), self.id).rated(self.user_rating)
        about = self.model_dump(
            include={"protocol", "status", "created_at", "updated_at", "error", "settings"}
        )
        more: dict[str, Any] = {"stop_reason": self.stop_reason, "turns": self.turns}
        more["warnings"] = cautions_of(record.as_json())
        more |= {"title": self.title} if self.title else {}
        return record.model_copy(update={**about, **more, **self.forecast_fate(), **self._output()})

    def as_json(self) -> dict[str, Any]:
        return self.as_record().as_json()

    def forecast_fate(self) -> dict[str, str | None]:
        if "request" not in self.state:
            return {}
        # Without its settings, whose limits may be tighter than when the forecast was made.
        asked = {key: part for key, part in self.state["request"].items() if key != "config"}
        context = request_of({"request": asked}).prediction_context
        due = context.data_summary.timeframe.end
        return {"due": due.isoformat() if due else None, "resolution": self.resolution}

    def _output(self) -> dict[str, str | None]:
        plan = strategy_for(self.as_settings()).folder_plan
        if plan is None:
            return {}
        found = find_folder(plan.base, self.created_at, self.id)
        return {"output_dir": str(found) if found else None}


def settings_in(state: DebateState, protocol: str) -> dict[str, Any]:
    """Return the protocol's settings in the state, without internal settings."""
    given = state.get("settings", {})
    return {name: given[name] for name in SETTINGS[protocol].model_fields if name in given}


def dump_state(state: DebateState) -> dict[str, Any]:
    kept = {key: value for key, value in state.items() if key not in _COLUMNS}
    return cast(
        "dict[str, Any]", _state_adapter().dump_python(cast("DebateState", kept), mode="json")
    )


@cache
def _state_adapter() -> TypeAdapter[DebateState]:
    return TypeAdapter(DebateState)
