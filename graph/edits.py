"""Checks clients' edits of a debate's state before they are stored."""

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.channels.binop import _get_overwrite
from pydantic import ValidationError

from contend.graph.errors import BadInput
from contend.graph.settings import DebateSettings, read_stored
from contend.graph.state import DebateState


def checked_edits(
    edits: Iterable[Any], settings: Mapping[str, Any], model: type[DebateSettings]
) -> list[Any]:
    """Check edits in order, each against the settings that result from the earlier edits."""
    checked = []
    for edit in edits:
        if isinstance(edit, Mapping):
            checked.append(checked_edit(edit, settings, model))
            settings = checked[-1].get("settings", settings)
        else:
            checked.append(edit)
    return checked


def checked_edit(
    edit: Mapping[str, Any], before: Mapping[str, Any], model: type[DebateSettings]
) -> dict[str, Any]:
    """Return the edit with complete settings, or raise BadInput if the edit is invalid."""
    _refuse_unknown(edit, DebateState.__annotations__, "field")
    if edit.get("protocol", model.protocol) != model.protocol:
        raise BadInput("The protocol of a debate cannot be changed: start a new thread.")
    replaces, inner = _get_overwrite(edit.get("settings"))
    given = inner if replaces else edit.get("settings")
    if not isinstance(given, dict):
        return dict(edit)
    return {**edit, "settings": _whole_settings(given, before, model)}


def _whole_settings(
    given: Mapping[str, Any], before: Mapping[str, Any], model: type[DebateSettings]
) -> dict[str, Any]:
    known = model.model_fields
    _refuse_unknown(given, {**known, **before}, "setting")  # an older release had others
    stored = read_stored(model, before).model_dump(mode="json")
    named = {name: given[name] for name in given if name in known}
    try:
        return model.model_validate({**stored, **named}).model_dump(mode="json")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, ("settings", *first["loc"])))
        raise BadInput(f"{place} is not well-formed: {first['msg']}.") from error


def _refuse_unknown(given: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    if unknown := [name for name in given if name not in known]:
        raise BadInput(f"A debate has no {what} {', '.join(unknown)}.")
