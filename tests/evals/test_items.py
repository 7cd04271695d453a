"""Data sets: ours are whole and sound, and a line that is not an item is named."""

import json
from collections import Counter
from pathlib import Path

import pytest

from contend.evals.grading import grade, question_text
from contend.evals.items import Item, choose_items, read_item_file, read_own
from contend.graph.errors import BadInput

GOOD = {"id": "a", "question": "2 + 2?", "kind": "number", "answer": "4"}


def _file(folder: Path, *lines: str) -> Path:
    path = folder / "items.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_our_own_sets_are_as_large_as_promised() -> None:
    checkable, open_ones = read_own("questions"), read_own("open")
    assert checkable.problems == open_ones.problems == []
    assert len(checkable.items) >= 80
    assert len(open_ones.items) >= 20
    assert {item.kind for item in checkable.items} == {"choice", "number", "yes_no", "text"}
    assert sum(item.tempting is not None for item in checkable.items) >= 40
    assert all(len(item.rubric) >= 3 for item in open_ones.items)


def test_no_letter_and_neither_yes_nor_no_is_a_good_guess() -> None:
    items = read_own("questions").items
    for kind in ("choice", "yes_no"):
        answers = Counter(item.answer for item in items if item.kind == kind)
        assert max(answers.values()) / answers.total() < 0.6


@pytest.mark.parametrize("item", read_own("questions").items, ids=lambda item: item.id)
def test_our_answers_are_read_as_right_and_the_tempting_ones_as_wrong(item: Item) -> None:
    assert grade(f"Because of this and that.\n\nAnswer: {item.answer}", item).right
    if item.tempting is not None:
        wrong = grade(f"Answer: {item.tempting}", item)
        assert wrong.answer is not None
        assert wrong.right is False


def test_every_item_says_how_to_answer() -> None:
    assert "`Answer: X`" in question_text(read_own("questions").items[11])
    assert "Answer:" not in question_text(read_own("open").items[0])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "items.jsonl line 2: not JSON"),
        ("[1]", "items.jsonl line 2: not a JSON object"),
        (json.dumps({**GOOD, "id": "b", "answer": "four"}), "line 2: answer must be a number"),
        (json.dumps({**GOOD, "id": "b", "kind": "choice"}), "line 2: a choice needs 2 to 26"),
        (json.dumps({**GOOD, "id": "b", "kind": "riddle"}), "line 2: kind: Input should be"),
        (json.dumps({**GOOD, "id": "b", "note": 1}), "line 2: note: Extra inputs"),
        (json.dumps({"id": "b", "kind": "open", "question": "Why?"}), "needs a rubric"),
        (json.dumps(GOOD), "items.jsonl line 2: a second item with the id 'a'"),
    ],
)
def test_a_malformed_line_is_named_and_the_rest_counts(
    tmp_path: Path, line: str, problem: str
) -> None:
    loaded = read_item_file(
        _file(tmp_path, json.dumps(GOOD), line, json.dumps({**GOOD, "id": "c"}))
    )
    assert [item.id for item in loaded.items] == ["a", "c"]
    assert len(loaded.problems) == 1
    assert problem in loaded.problems[0]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_item_file(path)


def test_a_limit_takes_the_same_items_whatever_is_added() -> None:
    items = [Item.model_validate({**GOOD, "id": f"i{number}"}) for number in range(50)]
    chosen = choose_items(items, 10, seed=3)
    assert len(chosen) == 10
    assert choose_items(items[:40], 10, seed=3) != chosen or all(i in items[:40] for i in chosen)
    assert {i.id for i in choose_items(items[10:], 10, 3)} >= {
        i.id for i in chosen if i in items[10:]
    }
    assert choose_items(items, 10, seed=4) != chosen
    assert choose_items(items, None, seed=3) == items
