"""The results table of a batch."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from contend.debates.batch_folder import BatchFolder
from contend.debates.batch_questions import BatchQuestion


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_results_table_escapes_spreadsheet_formulas(tmp_path: Path, start: str) -> None:
    folder, text = BatchFolder(tmp_path / "results"), f"{start}1+1"
    with folder.locked():
        (debate_id,) = folder.open([BatchQuestion("Row 2", text)], {})
        known = folder.results[debate_id]
        folder.results[debate_id] = replace(known, answer=text, error="1-1", score=-1.5)
        folder.write_plan()
    with (folder.path / "results.csv").open(encoding="utf-8", newline="") as table:
        (row,) = csv.DictReader(table)
    assert (row["question"], row["answer"]) == (f"'{text}", f"'{text}")
    assert (row["error"], row["score"], row["stop_reason"]) == ("1-1", "-1.5", "")
    again = BatchFolder(folder.path)
    again.open([BatchQuestion("Row 2", text)], {})
    assert again.results[debate_id].answer == text
