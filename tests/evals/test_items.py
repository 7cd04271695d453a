"""The bundled data sets, and errors in item files."""

import json
from collections import Counter
from pathlib import Path

import pytest

from contend.evals.grading import grade, question_text
from contend.evals.items import (
    DATASETS,
    Item,
    choose_items,
    read_item_file,
    read_own,
    read_own_lines,
)
from contend.evals.run import DataItem, describe_items
from contend.graph.errors import BadInput

GOOD = {"id": "a", "question": "2 + 2?", "kind": "number", "answer": "4"}


def _file(folder: Path, *lines: str) -> Path:
    path = folder / "items.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_bundled_sets_have_the_documented_size() -> None:
    checkable, open_ones = read_own("questions"), read_own("open")
    assert checkable.problems == open_ones.problems == []
    assert len(checkable.items) >= 80
    assert len(open_ones.items) >= 20
    assert {item.kind for item in checkable.items} == {"choice", "number", "yes_no", "text"}
    assert sum(item.tempting is not None for item in checkable.items) >= 40
    assert all(len(item.rubric) >= 3 for item in open_ones.items)


# Raise the version of a set when you change an item in it, so that users see that runs differ.
@pytest.mark.parametrize(
    ("name", "version", "digest"),
    [("questions", 1, "b041bbfec2b4"), ("open", 1, "6d24a7487ccd")],
)
def test_changing_a_set_requires_a_new_version(name: str, version: int, digest: str) -> None:
    loaded = read_own(name)
    found = describe_items([DataItem(name, item, loaded.version) for item in loaded.items])
    assert (found.versions, found.digest) == ({name: version}, digest)


def test_every_bundled_set_has_a_version() -> None:
    for path in DATASETS.glob("*.jsonl"):
        assert read_own_lines(path.stem)
        assert '"version"' not in read_own_lines(path.stem)[0]


@pytest.mark.parametrize(
    ("header", "version", "problem"),
    [
        ('{"version": 3}', 3, None),
        ('{"version": "3"}', None, "line 1: version: Input should be a valid integer"),
        ('{"version": 0}', None, "line 1: version: Input should be greater than or equal to 1"),
        ('{"version": 3, "note": 1}', None, "line 1: note: Extra inputs are not permitted"),
    ],
)
def test_the_first_line_of_a_file_may_be_its_version(
    tmp_path: Path, header: str, version: int | None, problem: str | None
) -> None:
    loaded = read_item_file(_file(tmp_path, header, json.dumps(GOOD)))
    assert loaded.version == version
    assert [item.id for item in loaded.items] == ["a"]
    assert [each.removeprefix("items.jsonl ") for each in loaded.problems] == (
        [problem] if problem else []
    )


def test_a_version_after_the_first_line_is_an_error(tmp_path: Path) -> None:
    loaded = read_item_file(_file(tmp_path, json.dumps(GOOD), '{"version": 3}'))
    assert loaded.version is None
    assert len(loaded.problems) == 1


def test_the_hash_of_an_item_changes_with_its_meaning() -> None:
    item = Item.model_validate(GOOD)
    assert item.digest == Item.model_validate({**GOOD, "topic": "general"}).digest
    changes: list[dict[str, object]] = [{"answer": "5"}, {"question": "2 + 3?"}, {"tolerance": 0.1}]
    digests = {Item.model_validate({**GOOD, **each}).digest for each in changes}
    assert len({item.digest, *digests}) == 4


def test_no_constant_guess_scores_well() -> None:
    items = read_own("questions").items
    for kind in ("choice", "yes_no"):
        answers = Counter(item.answer for item in items if item.kind == kind)
        assert max(answers.values()) / answers.total() < 0.6


@pytest.mark.parametrize("item", read_own("questions").items, ids=lambda item: item.id)
def test_grades_correct_answers_right_and_tempting_ones_wrong(item: Item) -> None:
    assert grade(f"Because of this and that.\n\nAnswer: {item.answer}", item).right
    if item.tempting is not None:
        wrong = grade(f"Answer: {item.tempting}", item)
        assert wrong.answer is not None
        assert wrong.right is False


def test_questions_state_the_answer_format_except_open_ones() -> None:
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
def test_a_malformed_line_is_reported_and_the_others_are_read(
    tmp_path: Path, line: str, problem: str
) -> None:
    loaded = read_item_file(
        _file(tmp_path, json.dumps(GOOD), line, json.dumps({**GOOD, "id": "c"}))
    )
    assert [item.id for item in loaded.items] == ["a", "c"]
    assert len(loaded.problems) == 1
    assert problem in loaded.problems[0]


def test_refuses_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_item_file(path)


def test_a_limit_selects_the_same_items_after_others_are_added() -> None:
    items = [Item.model_validate({**GOOD, "id": f"i{number}"}) for number in range(50)]
    chosen = choose_items(items, 10, seed=3)
    assert len(chosen) == 10
    assert choose_items(items[:40], 10, seed=3) != chosen or all(i in items[:40] for i in chosen)
    assert {i.id for i in choose_items(items[10:], 10, 3)} >= {
        i.id for i in chosen if i in items[10:]
    }
    assert choose_items(items, 10, seed=4) != chosen
    assert choose_items(items, None, seed=3) == items
