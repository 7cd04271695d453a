from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from uuid import UUID, uuid5

from langgraph_sdk import Auth

from contend.graph.settings import SETTINGS
from contend.graph.settings_form import DEFAULT_MODEL_KEY

# How LangGraph servers derive the id of a graph's default assistant.
_OF_GRAPHS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
_BY_ASSISTANT = {str(uuid5(_OF_GRAPHS, name)): settings for name, settings in SETTINGS.items()}
_NO_ROLLBACK = (
    "Rollback is not possible, because it would delete model calls that are paid: interrupt the "
    "run, and continue from an earlier checkpoint."
)


def refuse_rollback(action: str | None) -> None:
    if action == "rollback":
        raise Auth.exceptions.HTTPException(status_code=422, detail=_NO_ROLLBACK)


def refuse_unknown_settings(assistant_id: object, context: Mapping[str, Any] | None) -> None:
    """Refuse unknown settings, which the server would silently drop."""
    settings = _BY_ASSISTANT.get(str(assistant_id)) or SETTINGS.get(str(assistant_id))
    names = {name for each in SETTINGS.values() for name in each.model_fields}
    if settings:
        names = {*settings.model_fields}
    unknown = [name for name in context or {} if name not in {*names, DEFAULT_MODEL_KEY}]
    if unknown:
        close = get_close_matches(unknown[0], names, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        detail = f"There is no setting {', '.join(unknown)}.{hint}"
        raise Auth.exceptions.HTTPException(status_code=422, detail=detail)
