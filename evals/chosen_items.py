"""Identifies the items that a run answers, so that changes to them are detected."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_MOST_NAMED = 3


class ChosenItems(BaseModel):
    """Item hashes by item key, and the versions of versioned data sets."""

    model_config = ConfigDict(frozen=True)

    hashes: dict[str, str] = {}
    versions: dict[str, int] = {}

    def changed_in(self, other: "ChosenItems") -> list[str]:
        """Return the keys of items that are in both but differ."""
        shared = self.hashes.keys() & other.hashes.keys()
        return sorted(key for key in shared if self.hashes[key] != other.hashes[key])

    def with_added(self, other: "ChosenItems") -> "ChosenItems":
        return ChosenItems(
            hashes={**self.hashes, **other.hashes}, versions={**self.versions, **other.versions}
        )

    def only(self, items: Iterable[str]) -> "ChosenItems":
        wanted = set(items)
        hashes = {key: each for key, each in self.hashes.items() if key in wanted}
        return ChosenItems(hashes=hashes, versions=self.versions)

    @property
    def digest(self) -> str:
        """Return one hash of all the items, independent of their order."""
        written = json.dumps(self.hashes, sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:12]

    def describe_data(self, given: str) -> str:
        version = self.versions.get(Path(given.partition("=")[0]).stem)
        return given if version is None else f"{given} (version {version})"


NO_ITEMS = ChosenItems()


def describe_change(changed: list[str], before: ChosenItems, after: ChosenItems) -> str:
    """Name some of the changed items, and any changed versions of their data sets."""
    more = len(changed) - _MOST_NAMED
    named = ", ".join(changed[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    sets = dict.fromkeys(key.partition("/")[0] for key in changed)
    versions = [
        f"{data} was version {before.versions[data]} and is now {after.versions[data]}"
        for data in sets
        if data in before.versions
        and data in after.versions
        and before.versions[data] != after.versions[data]
    ]
    return f"{named} ({'; '.join(versions)})" if versions else named
