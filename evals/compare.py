from dataclasses import dataclass

from contend.evals.measures import Paired, describe_pair
from contend.evals.run_store import RunStore
from contend.evals.summary import compare_graded, graded_by_arm
from contend.graph.errors import BadInput


@dataclass(frozen=True)
class ArmChange:
    """An arm in two runs; `pair` is the later run minus the earlier run."""

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


def compare_stores(before: RunStore, after: RunStore) -> list[ArmChange]:
    earlier, later = (graded_by_arm(store.results.values()) for store in (before, after))
    changes = [
        _change(arm, earlier[arm], later[arm])
        for arm in earlier
        if arm in later and earlier[arm].keys() & later[arm].keys()
    ]
    if not changes:
        raise BadInput("The two runs have no arm and item in common that both answered.")
    return changes


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
