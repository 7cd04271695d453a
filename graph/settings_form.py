from typing import Any

from contend.graph.settings import DebateSettings

DEFAULT_MODEL_KEY = "model"
_MODEL: dict[str, Any] = {
    "type": "string",
    "default": "",
    "title": "Model",
    "description": "Model of every seat that is not named below, such as openai:gpt-5-mini.",
}


def settings_form(settings: type[DebateSettings]) -> dict[str, Any]:
    schema = settings.model_json_schema()
    fields = schema["properties"]
    own = [name for name in fields if name not in DebateSettings.model_fields]
    ordered = [*own, *(name for name in fields if name not in own)]
    described = {name: _with_nodes(fields[name], settings.nodes_of(name)) for name in ordered}
    return {**schema, "properties": {DEFAULT_MODEL_KEY: _MODEL, **described}}


def _with_nodes(field: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
    return {**field, "langgraph_nodes": nodes} if nodes else field
