"""Generate parts of the docs from the code: `python -m tests.docs.generated`."""

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import SETTINGS, DebateSettings

ROOT = Path(__file__).parents[2]
SHARED = "settings"  # the page of the settings that all protocols have
STUDIO = "studio"  # the page of the forms that Studio shows
PAGES = {name: ROOT / "docs" / f"{name}.md" for name in (*SETTINGS, SHARED, STUDIO)}
_TABLE = re.compile(r"^\| setting \| default \| allowed \|.*\n(?:\|.*\n)*", re.MULTILINE)
_GRAPH = re.compile(r"^```mermaid\n.*?^```\n", re.DOTALL | re.MULTILINE)
_FORMS = re.compile(r"^## The forms of the graphs\n(?:.*\n)*", re.MULTILINE)
_CALLS = re.compile(r"^With the default settings .*\n", re.MULTILINE)

Schema = dict[str, Any]


def calls(protocol: str) -> str:
    fewest, most = strategy_for(SETTINGS[protocol]()).expected_calls()
    return f"{fewest} to {most}" if fewest < most else str(most)


def generated(page: str) -> list[str]:
    """Return the generated parts of a page."""
    shared = DebateSettings.model_json_schema()["properties"]
    if page == SHARED:
        return [settings_table(shared)]
    if page == STUDIO:
        return [_forms()]
    of_page = SETTINGS[page].model_json_schema()["properties"]
    own = {name: schema for name, schema in of_page.items() if shared.get(name) != schema}
    return [_drawing(page), _calls_line(page), settings_table(own)]


def _graph(protocol: str) -> Any:
    return import_module(f"contend.graph.{protocol}").graph


def _drawing(protocol: str) -> str:
    return f"```mermaid\n{_graph(protocol).get_graph().draw_mermaid()}```\n"


def _forms() -> str:
    """Describe the inputs, settings and results of each graph from its schemas."""
    forms = {name: _fields_of(_graph(name)) for name in SETTINGS}
    shared = set.intersection(*({*form} for form in forms.values()))
    first = next(iter(forms.values()))
    every = _rows(row for row in first if row in shared)
    own = (
        f"### `{name}`\n\n{_drawing(name)}\n{_rows(row for row in form if row not in shared)}"
        for name, form in forms.items()
    )
    return "\n".join(["## The forms of the graphs", "", "### Every graph", "", every, *own])


def _fields_of(graph: Any) -> list[str]:
    kinds = {
        "input": graph.get_input_jsonschema(),
        "setting": graph.get_context_jsonschema(),
        "result": graph.get_output_jsonschema(),
    }
    return [
        f"| `{name}` | {kind} | {', '.join(field.get('langgraph_nodes', []))} | "
        f"{field['description']} |"
        for kind, schema in kinds.items()
        for name, field in schema["properties"].items()
    ]


def _rows(rows: Iterable[str]) -> str:
    return "\n".join(["| field | kind | nodes | |", "|---|---|---|---|", *rows, ""])


def settings_table(properties: dict[str, Schema]) -> str:
    rows = [f"| `{name}` | {_row(schema)} |" for name, schema in properties.items()]
    return "\n".join(["| setting | default | allowed | |", "|---|---|---|---|", *rows, ""])


def _calls_line(protocol: str) -> str:
    return f"With the default settings a debate makes {calls(protocol)} model calls.\n"


def _row(schema: Schema) -> str:
    return f"{_default(schema.get('default'))} | {_allowed(schema)} | {schema['description']}"


def _default(value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    match value:
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(_default, value))
        case {"name": name}:
            return str(name)
        case dict():
            return ", ".join(f"{name} {_default(each)}" for name, each in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _allowed(schema: Schema) -> str:
    """Describe the values a setting may have, if it says so."""
    kinds = [schema, *schema.get("anyOf", []), schema.get("items", {})]
    merged = {name: value for kind in reversed(kinds) for name, value in kind.items()}
    if "enum" in merged:
        return ", ".join(merged["enum"])
    if "minimum" in merged and "maximum" in merged:
        return f"{merged['minimum']} to {merged['maximum']}"
    if "exclusiveMinimum" in merged:
        most = f", up to {merged['maximum']}" if "maximum" in merged else ""
        return f"above {merged['exclusiveMinimum']}{most}"
    return f"{merged['minimum']} or more" if "minimum" in merged else ""


def main() -> None:
    for name, page in PAGES.items():
        text = page.read_text("utf-8")
        patterns = {SHARED: [_TABLE], STUDIO: [_FORMS]}.get(name, [_GRAPH, _CALLS, _TABLE])
        for pattern, part in zip(patterns, generated(name), strict=True):
            (old,) = pattern.finditer(text)
            text = text[: old.start()] + part + text[old.end() :]
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
