"""The export formats, one row each. Cheap to import, because `contend --help` loads it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contend.debates.record import StoredDebate
    from contend.graph.settings import OutputFormat


@dataclass(frozen=True)
class ExportFormat:
    """A document that `render` returns, a folder of `files` of one kind, or training data."""

    description: str
    render: "Callable[[StoredDebate], str] | None" = None
    files: "OutputFormat | None" = None
    is_training_data: bool = False  # of all debates


def _to_markdown(debate: "StoredDebate") -> str:
    from contend.debates.exports.markdown import to_markdown  # slow to import

    return to_markdown(debate)


def _to_html(debate: "StoredDebate") -> str:
    from contend.debates.exports.html import to_page  # slow to import

    return to_page(debate)


def _to_json(debate: "StoredDebate") -> str:
    return json.dumps(debate.as_json(), ensure_ascii=False, indent=2) + "\n"


EXPORT_FORMATS = {
    "md": ExportFormat("one Markdown document", render=_to_markdown),
    "html": ExportFormat("one web page that needs nothing else", render=_to_html),
    "json": ExportFormat("the record as JSON", render=_to_json),
    "folder": ExportFormat("a folder of Markdown files", files="markdown"),
    "folder-json": ExportFormat("a folder of JSON files", files="json"),
    "folder-text": ExportFormat("a folder of text files", files="text"),
    "sft": ExportFormat("training data: final answers of all debates", is_training_data=True),
    "dpo": ExportFormat(
        "training data: revised answers of all debates against first drafts", is_training_data=True
    ),
}
