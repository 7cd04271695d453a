"""What a person reads instead of the record's codes, wherever a debate is shown."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

STOP_WORDS = {
    "skeptic_ready": "the Skeptic found the answer ready",
    "score_reached": "the wanted quality score was reached",
    "no_critical_issues": "no critical issue was left",
    "max_rounds": "the most rounds allowed were used",
    "judge_stop": "the judge ended it",
    "one_left": "one position was left",
    "converged": "the positions converged",
    "budget": "the budget was used up",
    "user": "you asked for the answer",
}
DEGRADED_WORDS = {
    "retried": "trying again",
    "fell_back": "falling back to the next model",
    "failed": "gave up",
    "history_shortened": "earlier turns left out",
    "prompt_too_long": "the prompt may not fit",
    "unreadable": "verdict not readable",
    "not_rated": "answer not rated",
}
POINT_WORDS = {
    "open": "open",
    "partial": "partly resolved",
    "resolved": "resolved",
    "dropped": "not raised again",
}

PointData = Mapping[str, Any]
Points = Mapping[str, Iterable[PointData]]


def stop_words(reason: str | None) -> str:
    """A stop reason in words; a later release's reason is shown as it is."""
    return STOP_WORDS.get(reason, reason) if reason else "not decided yet"


def degraded_words(entry: Mapping[str, Any]) -> str:
    """One degradation: whom it befell, what was done about it, and why."""
    what = str(entry.get("what", ""))
    seat = str(entry.get("seat") or "debate").capitalize()
    where = f", round {entry['round']}" if entry.get("round") else ""
    return f"{seat}{where}: {DEGRADED_WORDS.get(what, what)} ({entry.get('why', '')})"


def local_time(stamp: str) -> str:
    """A stored time in the reader's own zone."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")


def sentence(text: str) -> str:
    """Text with a full stop, unless it ends in one of its own."""
    stripped = text.strip()
    return stripped if stripped.endswith((".", "!", "?", "…")) else f"{stripped}."


def point_groups(points: Points) -> dict[str, list[PointData]]:
    """The record's points by what became of them; those partly resolved are open."""
    left = list(points["open"])
    return {
        "open": [point for point in left if point["status"] != "dropped"],
        "resolved": list(points["resolved"]),
        "not raised again": [point for point in left if point["status"] == "dropped"],
    }
