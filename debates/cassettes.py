"""Writes and reads cassettes: finished debates that can be rerun without a model."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from contend.debates.events import Event
from contend.debates.record import FROM_CASSETTE, StoredDebate
from contend.debates.recordings import why_not_recorded
from contend.debates.repository import Repository
from contend.debates.settings_sources import settings_from
from contend.debates.spending import NO_LIMITS, read_limits
from contend.graph.errors import BUDGET, BadInput
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateInput, DebateState
from contend.models.recording import CallKey, RecordedCall

_FORMAT = "contend_cassette"
_VERSION = 1
_INPUT_KEYS = {*DebateInput.__annotations__, "retrieval"}
# Settings that would pause the rerun, or that name a folder of the recording machine.
_MACHINE_SETTINGS = {"pause", "output_dir"}


class _CassetteCall(BaseModel):
    asked: str
    messages: str
    number: int
    call: RecordedCall


class Cassette(BaseModel):
    debate: StoredDebate
    events: list[Event]
    calls: list[_CassetteCall]

    @property
    def settings(self) -> DebateSettings:
        return self.debate.as_settings()


def to_cassette(records: Repository, debate: StoredDebate) -> str:
    """Return a finished debate as a cassette, without API keys or files."""
    calls = records.recordings.read(debate.id)
    _check_exportable(records, debate, has_calls=bool(calls))
    settings = _without_machine(debate.settings)
    if _had_several_budgets(records, debate):  # none of them ended the rounds
        settings |= NO_LIMITS
    state = {name: value for name, value in debate.state.items() if name != "trace"}
    kept = debate.model_copy(update={"settings": settings, "state": state})
    stored = records.journal.read_without_chunks(debate.id, 0, debate.last_seq)
    events = [_without_machine_settings(each.as_event()) for each in stored]
    recorded = [_CassetteCall(**key._asdict(), call=call) for key, call in calls.items()]
    data = {
        "debate": kept.model_dump(mode="json"),
        "events": events,
        "calls": [each.model_dump(mode="json", exclude_defaults=True) for each in recorded],
    }
    document = {_FORMAT: _VERSION, "sha256": _checksum(data), "recording": data}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _check_exportable(records: Repository, debate: StoredDebate, *, has_calls: bool) -> None:
    name = f"Debate {debate.id[:8]}"
    if debate.status != "done":
        raise BadInput(f"{name} is not finished, so it cannot be a cassette yet.")
    if records.origin(debate.id):
        raise BadInput(f"{name} is a fork; its recording is only a part. Export its parent.")
    if not has_calls:
        raise BadInput(f"{name} has no recording: {why_not_recorded(debate)}.")
    if debate.stop_reason == BUDGET and _had_several_budgets(records, debate):
        raise BadInput(f"{name} had several budgets, and one ended its rounds; run it again.")
    if debate.state.get("documents") or debate.state.get("images"):
        raise BadInput(f"{name} uses documents or images, which a cassette does not hold.")
    if debate.stop_reason == "user" or any(turn.phase == "remark" for turn in debate.turns):
        raise BadInput(f"{name} was steered by a person's comments, which cannot be run again.")


def _had_several_budgets(records: Repository, debate: StoredDebate) -> bool:
    limits = [each for _, each in read_limits(records, debate)]
    return any(each != limits[0] for each in limits)


def read_cassette(path: Path) -> Cassette:
    try:
        return _parse(path.expanduser().read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"Cannot read {path} as a cassette: {_why(error)}.") from error


def shipped_cassette() -> Cassette:
    return read_cassette(Path(__file__).parent / "demo.cassette.json")


def _parse(text: str, name: str) -> Cassette:
    try:
        document = json.loads(text)
        data = document["recording"]
        if document[_FORMAT] != _VERSION:
            raise BadInput(f"{name} was made by a newer release; update Contend to use it.")
        if document["sha256"] != _checksum(data):
            _refuse_damaged(name)
        return Cassette.model_validate(data)
    except (json.JSONDecodeError, ValidationError):
        _refuse_damaged(name)
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{name} is not a cassette. Make one with: contend export ID --format cassette"
        ) from error


def _refuse_damaged(name: str) -> NoReturn:
    raise BadInput(f"{name} is damaged. Export the debate again.")


def check_same(cassette: Cassette, question: str | None, values: Mapping[str, Any]) -> None:
    recorded = cassette.debate
    if question is not None and question.strip() != recorded.question.strip():
        raise BadInput(
            f"The recording answers another question: {recorded.question!r}. Leave yours out, or "
            "ask it without --cassette."
        )
    before = cassette.settings.model_dump(mode="json")
    wanted = settings_from(recorded.protocol, {**before, **values}, "--set").model_dump(mode="json")
    differing = [name for name in before if before[name] != wanted[name]]
    if differing:
        name = differing[0]
        raise BadInput(
            f"The recording was made with other settings: {name} was {before[name]!r}, not "
            f"{wanted[name]!r}. Leave the option out, or ask without --cassette."
        )


def start_from_cassette(records: Repository, cassette: Cassette) -> StoredDebate:
    debate, fresh = cassette.debate, str(uuid4())
    state = debate.as_state()
    given = cast("DebateState", {name: state[name] for name in state if name in _INPUT_KEYS})  # type: ignore[literal-required]
    settings = cassette.settings.model_dump(mode="json") | {FROM_CASSETTE: True}
    demonstration = debate.demonstration
    records.start(fresh, debate.protocol, given, settings, demonstration=demonstration)
    for each in cassette.calls:
        key = CallKey(each.asked, each.messages, each.number)
        records.recordings.add(fresh, key, each.call)
    return records.find(fresh)


def _without_machine(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _MACHINE_SETTINGS}


def _without_machine_settings(event: Event) -> Event:
    about = event["metadata"]
    if "settings" not in about:
        return event
    return {**event, "metadata": {**about, "settings": _without_machine(about["settings"])}}


def _checksum(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "it is not text"
