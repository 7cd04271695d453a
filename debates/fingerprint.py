"""Detects changes in prompts or settings since the last run of a debate."""

import hashlib
import json
from collections.abc import Mapping

from contend import prompts
from contend.graph.settings import DebateSettings

_CHANGED = {
    "prompts": "The prompts have changed since this debate stopped, so its next turns may differ "
    "from the earlier ones.",
    "settings": "This version of Contend has other settings than the one that ran this debate; "
    "new ones have their default.",
}


def fingerprint_of(settings: DebateSettings) -> dict[str, str]:
    # The budget may change, because no prompt contains it.
    values = settings.model_dump(mode="json") | {"budget": None, "max_cost": None}
    chosen = json.dumps(values, sort_keys=True)
    return {"prompts": prompts.digest(settings.protocol, "shared"), "settings": _hash(chosen)}


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return " ".join(said for name, said in _CHANGED.items() if before.get(name) != now[name])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
