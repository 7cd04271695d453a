"""Comparing two runs on the items they share."""

from pathlib import Path

import pytest

from contend.evals.chosen_items import NO_ITEMS, ChosenItems
from contend.evals.compare import compare_stores
from contend.evals.run_store import EvalResult, RunStore
from contend.graph.errors import BadInput


def _store(folder: Path, items: ChosenItems, *numbers: int) -> RunStore:
    store = RunStore(folder)
    with store.locked():
        store.open({}, items)
        for number in numbers:
            about = {"item": f"set/i{number}", "data": "set", "topic": "t", "kind": "number"}
            store.add(EvalResult(**about, arm="single", status="done", right=True))
    return store


def _items(version: int, *hashes: str) -> ChosenItems:
    named = {f"set/i{number}": each for number, each in enumerate(hashes)}
    return ChosenItems(hashes=named, versions={"set": version})


def test_runs_of_the_same_items_are_compared_without_notes(tmp_path: Path) -> None:
    found = compare_stores(
        _store(tmp_path / "a", _items(1, "x", "y"), 0, 1),
        _store(tmp_path / "b", _items(1, "x", "y"), 0, 1),
    )
    assert (found.changes[0].pair.n, found.notes) == (2, [])


def test_changed_and_unshared_items_are_skipped_and_reported(tmp_path: Path) -> None:
    found = compare_stores(
        _store(tmp_path / "a", _items(1, "x", "y", "z"), 0, 1, 2),
        _store(tmp_path / "b", _items(2, "x", "new", "z", "more"), 0, 1, 3),
    )
    assert found.changes[0].pair.n == 1
    changed, only_one = found.notes
    assert changed == (
        "Left out, because the items differ in the two runs: set/i1 "
        "(set was version 1 and is now 2)."
    )
    assert "1 items of the first and 1 of the second" in only_one


def test_runs_without_shared_items_cannot_be_compared(tmp_path: Path) -> None:
    before = _store(tmp_path / "a", _items(1, "x"), 0)
    after = _store(tmp_path / "b", _items(1, "new"), 0)
    with pytest.raises(BadInput, match=r"no arm and item in common.*items differ in the two runs"):
        compare_stores(before, after)


def test_comparing_a_run_of_an_older_release_adds_a_warning(tmp_path: Path) -> None:
    before = _store(tmp_path / "a", NO_ITEMS, 0)
    (tmp_path / "a" / "items.json").unlink()
    before.read()
    found = compare_stores(before, _store(tmp_path / "b", _items(1, "x"), 0))
    assert found.changes[0].pair.n == 1
    assert ["older release" in each for each in found.notes] == [True]
