from collections.abc import Collection
from dataclasses import dataclass

from contend.evals.chosen_items import describe_change
from contend.evals.measures import Paired, describe_pair
from contend.evals.run_store import RunStore
from contend.evals.summary import compare_graded, graded_by_arm
from contend.graph.errors import BadInput


@dataclass(frozen=True)
class ArmChange:
    """An arm's accuracy in two runs; `pair` compares the later run with the earlier one."""

    arm: str
    before: float
    after: float
    pair: Paired

    @property
    def is_drop(self) -> bool:
        return self.pair.high < 0

    @property
    def words(self) -> str:
        if self.is_drop:
            return f"dropped ({describe_pair(self.pair)})"
        return describe_pair(self.pair)


@dataclass(frozen=True)
class RunComparison:
    changes: list[ArmChange]
    notes: list[str]
    """What the comparison leaves out, and why."""


def compare_stores(before: RunStore, after: RunStore) -> RunComparison:
    """Compare two runs on the items that are the same in both."""
    changed = before.items.changed_in(after.items)
    earlier, later = (_graded_unchanged(store, changed) for store in (before, after))
    changes = [
        _change(arm, earlier[arm], later[arm])
        for arm in earlier
        if arm in later and earlier[arm].keys() & later[arm].keys()
    ]
    notes = _notes(before, after, changed)
    if not changes:
        nothing = "The two runs have no arm and item in common that both answered."
        raise BadInput(" ".join([nothing, *notes]))
    return RunComparison(changes, notes)


def _graded_unchanged(store: RunStore, changed: Collection[str]) -> dict[str, dict[str, bool]]:
    return graded_by_arm(each for each in store.results.values() if each.item not in changed)


def _notes(before: RunStore, after: RunStore, changed: list[str]) -> list[str]:
    notes = []
    if changed:
        said = describe_change(changed, before.items, after.items)
        notes.append(f"Left out, because the items differ in the two runs: {said}.")
    earlier, later = ({item for item, _ in store.results} for store in (before, after))
    if earlier != later:
        notes.append(
            f"Left out, because only one run has them: {len(earlier - later)} items of the first "
            f"and {len(later - earlier)} of the second."
        )
    notes += [
        f"The run in {store.folder} is from an older release, which did not record what its items "
        "were; items that have changed since then are not noticed."
        for store in (before, after)
        if not store.items.hashes
    ]
    return notes


def _change(arm: str, before: dict[str, bool], after: dict[str, bool]) -> ArmChange:
    shared = before.keys() & after.keys()
    pair = compare_graded(
        {item: after[item] for item in shared}, {item: before[item] for item in shared}
    )
    if pair is None:
        raise ValueError("the runs share no item")
    n = len(shared)
    return ArmChange(
        arm, sum(before[item] for item in shared) / n, sum(after[item] for item in shared) / n, pair
    )
