"""Reading small samples of public data sets in their published format."""

import json
from pathlib import Path
from typing import Any

import pytest

from contend.evals.public_sets import read_data
from contend.graph.errors import BadInput

MMLU = "State a $LETTER. Think step by step before answering.\n\nWho?\nA. I\nB. You"
FORECAST = """forecast_due_date,source,id,question,background_1500,freeze_datetime,outcome
2026-04-12,manifold,x1,Will it?,Some say so.,2026-04-02T00:00:00+00:00,1
2026-04-12,manifold,x2,Will they?,,2026-04-02T00:00:00+00:00,perhaps
"""


def _write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content", "kind", "answer"),
    [
        ("gsm8k", '{"question": "Eggs?", "answer": "9 * 2 = 18\\n#### 1,800"}', "number", "1,800"),
        ("strategyqa", [{"qid": "q", "question": "Is it?", "answer": False}], "yes_no", "no"),
        (
            "aqua",
            '{"question": "x?", "options": ["A)21", "B)21.5"], "correct": "B", "rationale": ""}',
            "choice",
            "B",
        ),
        ("mmlu", [{"question": MMLU, "answer": "B"}], "choice", "B"),
        ("mmlu", [{"question": "Who?", "choices": ["I", "You"], "answer": 0}], "choice", "A"),
        (
            "bbh",
            {"examples": [{"input": "When?\nOptions:\n(A) Now\n(B) Then", "target": "(B)"}]},
            "choice",
            "B",
        ),
        ("bbh", {"examples": [{"input": "2 * -3 = ", "target": "-6"}]}, "number", "-6"),
        ("bbh", {"examples": [{"input": "Is it?", "target": "Yes"}]}, "yes_no", "yes"),
        ("bbh", {"examples": [{"input": "Close: ( [", "target": "] )"}]}, "text", "] )"),
    ],
)
def test_reads_each_format(tmp_path: Path, name: str, content: Any, kind: str, answer: str) -> None:
    path = _write(tmp_path / "data.json", content)
    read, loaded = read_data(f"{name}={path}")
    assert loaded.problems == []
    (item,) = loaded.items
    assert (read, item.kind, item.answer) == (name, kind, answer)


def test_options_are_separated_from_the_question(tmp_path: Path) -> None:
    path = _write(tmp_path / "data.json", [{"question": MMLU, "answer": "B"}])
    (item,) = read_data(f"mmlu={path}")[1].items
    assert (item.question, item.options) == ("Who?", ("I", "You"))


def test_reads_all_tasks_of_a_folder(tmp_path: Path) -> None:
    for task in ("one", "two"):
        _write(tmp_path / f"{task}.json", {"examples": [{"input": "Is it?", "target": "No"}]})
    items = read_data(f"bbh={tmp_path}")[1].items
    assert [(item.id, item.topic) for item in items] == [
        ("bbh-one-1", "one"),
        ("bbh-two-1", "two"),
    ]


def test_reports_an_unreadable_forecast_row(tmp_path: Path) -> None:
    loaded = read_data(f"forecastbench={_write(tmp_path / 'f.csv', FORECAST)}")[1]
    (item,) = loaded.items
    assert (item.kind, item.answer, item.topic) == ("forecast", "yes", "manifold")
    assert "Background, as of 2026-04-02:\nSome say so." in item.question
    assert loaded.problems[0].startswith("f.csv line 3: ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("riddles", "There is no data set 'riddles'"),
        ("riddles=x", "There is no loader 'riddles'"),
        ("gsm8k=missing.jsonl", "File not found: missing.jsonl"),
    ],
)
def test_reports_an_unknown_set_or_missing_file(given: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_data(given)
