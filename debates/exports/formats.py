"""Lists the export formats. `contend --help` loads this module, so keep its imports fast."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contend.debates.record import StoredDebate
    from contend.debates.repository import Repository
    from contend.graph.settings import OutputFormat


@dataclass(frozen=True)
class ExportFormat:
    description: str
    render: "Callable[[StoredDebate], str] | None" = None
    record: "Callable[[Repository, StoredDebate], str] | None" = None  # with the recorded calls
    files: "OutputFormat | None" = None
    is_training_data: bool = False  # of all debates

    def document(self, records: "Repository", debate: "StoredDebate") -> str | None:
        if self.render:
            return self.render(debate)
        return self.record(records, debate) if self.record else None


def _to_markdown(debate: "StoredDebate") -> str:
    from contend.debates.exports.markdown import to_markdown  # slow to import

    return to_markdown(debate)


def _to_html(debate: "StoredDebate") -> str:
    from contend.debates.exports.html import to_page  # slow to import

    return to_page(debate)


def _to_json(debate: "StoredDebate") -> str:
    return json.dumps(debate.as_json(), ensure_ascii=False, indent=2) + "\n"


def _to_cassette(records: "Repository", debate: "StoredDebate") -> str:
    from contend.debates.cassettes import to_cassette  # slow to import

    return to_cassette(records, debate)


EXPORT_FORMATS = {
    "md": ExportFormat("one Markdown document", render=_to_markdown),
    "html": ExportFormat("one self-contained web page", render=_to_html),
    "json": ExportFormat("the record as JSON", render=_to_json),
    "cassette": ExportFormat("a recording, for ask --cassette", record=_to_cassette),
    "folder": ExportFormat("a folder of Markdown files", files="markdown"),
    "folder-json": ExportFormat("a folder of JSON files", files="json"),
    "folder-text": ExportFormat("a folder of text files", files="text"),
    "sft": ExportFormat("training data (final answers of all debates)", is_training_data=True),
    "dpo": ExportFormat(
        "training data (preference pairs from all debates: revised answer vs. first draft)",
        is_training_data=True,
    ),
}
