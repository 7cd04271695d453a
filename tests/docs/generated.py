"""What the code writes into the docs. After a change run `python -m tests.docs.generated`."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import SETTINGS, DebateSettings

ROOT = Path(__file__).parents[2]
SHARED = "settings"  # the page of the settings that all protocols have
PAGES = {name: ROOT / "docs" / f"{name}.md" for name in (*SETTINGS, SHARED)}
_TABLE = re.compile(r"^\| setting \| default \| allowed \|.*\n(?:\|.*\n)*", re.MULTILINE)
_GRAPH = re.compile(r"^```mermaid\n.*?^```\n", re.DOTALL | re.MULTILINE)
_CALLS = re.compile(r"^With the default settings .*\n", re.MULTILINE)

Schema = dict[str, Any]


def calls(protocol: str) -> str:
    fewest, most = strategy_for(SETTINGS[protocol]()).expected_calls()
    return f"{fewest} to {most}" if fewest < most else str(most)


def generated(page: str) -> list[str]:
    """Return the parts of a page that the code writes."""
    shared = DebateSettings.model_json_schema()["properties"]
    if page == SHARED:
        return [settings_table(shared)]
    of_page = SETTINGS[page].model_json_schema()["properties"]
    own = {name: schema for name, schema in of_page.items() if shared.get(name) != schema}
    graph = import_module(f"contend.graph.{page}").graph.get_graph().draw_mermaid()
    return [f"```mermaid\n{graph}```\n", _calls_line(page), settings_table(own)]


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
        patterns = [_TABLE] if name == SHARED else [_GRAPH, _CALLS, _TABLE]
        for pattern, part in zip(patterns, generated(name), strict=True):
            (old,) = pattern.finditer(text)
            text = text[: old.start()] + part + text[old.end() :]
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
