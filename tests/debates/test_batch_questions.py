"""Reading batch questions from files."""

from pathlib import Path

import pytest

from contend.debates.batch_questions import BatchQuestion, read_questions
from contend.graph.errors import BadInput


def _read(folder: Path, name: str, text: str | bytes) -> list[BatchQuestion]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_questions(path)


def test_extra_csv_columns_are_settings_and_empty_cells_are_ignored(tmp_path: Path) -> None:
    rows = [
        "Question,max_rounds,outcomes,due,,",
        '"A, or B?",2,,',
        "",
        '"C\nD?",,yes: E; no: F,2027-05-01,,',
    ]
    text = "\ufeff" + "\r\n".join(rows)
    assert _read(tmp_path, "q.csv", text) == [
        BatchQuestion("Row 2", "A, or B?", {"max_rounds": "2"}),
        BatchQuestion("Row 4", "C\nD?", {}, ("yes: E", "no: F"), "2027-05-01"),
    ]


def test_json_lines_accept_numbers_lists_and_outcomes(tmp_path: Path) -> None:
    text = (
        '{"question": "A?", "max_rounds": 2, "judge_fallbacks": ["a:b"]}\n\n'
        '{"question": "B?", "outcomes": ["yes: C", "no: D"], "due": null}\n'
    )
    assert _read(tmp_path, "q.jsonl", text) == [
        BatchQuestion("Line 1", "A?", {"max_rounds": "2", "judge_fallbacks": '["a:b"]'}),
        BatchQuestion("Line 3", "B?", {}, ("yes: C", "no: D")),
    ]


def test_a_text_file_has_one_question_per_line(tmp_path: Path) -> None:
    questions = _read(tmp_path, "q.txt", "A?\n\n  B? \n")
    assert questions == [BatchQuestion("Line 1", "A?"), BatchQuestion("Line 3", "B?")]


def test_the_key_of_a_question_does_not_depend_on_its_row() -> None:
    same = (
        BatchQuestion("Row 2", "A?", {"top_k": "1"}),
        BatchQuestion("Row 9", "A?", {"top_k": "1"}),
    )
    assert same[0].key() == same[1].key() == {"question": "A?", "settings": {"top_k": "1"}}
    assert BatchQuestion("Row 2", "A?").key() != same[0].key()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.csv", "", "has no questions"),
        ("q.csv", "question\n", "has no questions"),
        ("q.csv", "frage,note\nA?,\n", "a column `question`; it has: frage, note"),
        ("q.csv", "question;max_rounds\nA?;2\n", "a column `question`; it has: question;max"),
        ("q.csv", "question\nA?\nWell, B?\n", "Row 3 has 2 cells, but there are 1 columns"),
        ("q.csv", "question,top_k\nA?,1\n,2\n", "Row 3 has no question"),
        ("q.csv", "question,top_k,top_k\nA?,1,2\n", "Row 1 has the name `top_k` twice"),
        ("q.csv", "QUESTION,question\nA?,B?\n", "Row 1 has the name `question` twice"),
        ("q.csv", "question,topK,top_k\nA?,1,2\n", "Row 1 has the name `top_k` twice"),
        ("q.csv", "question,\nA?,\nB?, 2\n", "Row 3 has '2' in column 2, which has no name"),
        ("q.csv", 'question\n"A?\n', "cannot be read"),
        ("q.csv", "question\nA?\nB?\n A? \n", "Row 4 repeats row 2: A?"),
        ("q.csv", b"question\n\xff\xfe\n", "not UTF-8"),
        ("q.jsonl", '{"question": "A?"}\n{"question": \n', "Line 2 is not valid JSON"),
        ("q.jsonl", '["A?"]\n', "Line 1 must be an object"),
        ("q.jsonl", '{"question": "A?", "Question": "B?"}', "Line 1 has the name `question` twice"),
        ("q.jsonl", '{"question": "A?", "a": 1, "a": 2}', "Line 1 has the name `a` twice"),
        ("q.jsonl", '{"query": "A?"}\n', "Line 1 has no question"),
        ("q.txt", "A?\nA?\n", "Line 2 repeats line 1"),
        ("q.xlsx", "A?", "q.xlsx: questions are read from .csv, .jsonl and .txt files"),
    ],
)
def test_an_invalid_file_is_refused_and_the_error_names_the_row(
    tmp_path: Path, name: str, text: str | bytes, said: str
) -> None:
    with pytest.raises(BadInput) as refused:
        _read(tmp_path, name, text)
    assert said in str(refused.value)


def test_the_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Cannot read .*q\.csv: No such file"):
        read_questions(tmp_path / "q.csv")
