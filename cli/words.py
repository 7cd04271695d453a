"""How the terminal says things: numbers, times, reasons and other people's text."""

import re
from collections.abc import Mapping
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
DEMONSTRATION = (
    "This is the demonstration model: it is far too small to argue well, and its scores mean "
    "nothing. For a real debate name a better one, for example --model ollama:qwen3:32b or "
    "--model openai:gpt-5-mini."
)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Text without characters that could drive a terminal or reorder its line."""
    return _CONTROL.sub("", text)


def one_line(text: str, limit: int) -> str:
    """Text on one line, shortened at a word when it is longer than the limit."""
    joined = " ".join(plain(text).split())
    if len(joined) <= limit:
        return joined
    head = joined[: limit - 1]
    at_word = head.rpartition(" ")[0]
    return f"{at_word if len(at_word) > limit // 2 else head}…"


def number(count: int | None) -> str:
    """A count with separators; unknown stays unknown."""
    return "unknown" if count is None else f"{count:,}"


def cost(dollars: float | None) -> str:
    """A price; null is unknown, zero is a local model's."""
    if dollars is None:
        return "unknown"
    return "free (local)" if dollars == 0 else f"${dollars:.4f}"


def duration(milliseconds: float) -> str:
    """A span of time in the units a person would use."""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def local_time(stamp: str) -> str:
    """A stored time in the reader's own zone."""
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")


def stop_words(reason: str | None) -> str:
    """A stop reason in words; a later release's reason is shown as it is."""
    return STOP_WORDS.get(reason, reason) if reason else "not decided yet"


def rounds_words(settings: Mapping[str, Any]) -> str:
    """How many rounds the settings allow, such as 3-5; empty without such limits."""
    least, most = settings.get("min_rounds"), settings.get("max_rounds")
    if most is None:
        return ""
    return str(most) if least in (None, most) else f"{least}-{most}"


def score_words(rated: Mapping[str, Any]) -> str:
    """The judge's score with its parts."""
    parts = ("correctness", "completeness", "clarity", "depth")
    shown = ", ".join(f"{part} {rated[part]}" for part in parts)
    return f"{rated['score']:g} of 10 ({shown})"


def degraded_words(entry: Mapping[str, Any]) -> str:
    """One degradation in one line."""
    what = str(entry.get("what", ""))
    seat = str(entry.get("seat") or "debate").capitalize()
    where = f", round {entry['round']}" if entry.get("round") else ""
    return one_line(
        f"{seat}{where}: {DEGRADED_WORDS.get(what, what)} ({entry.get('why', '')})", 400
    )


def sentence(text: str) -> str:
    """Text with a full stop, unless it ends in one of its own."""
    stripped = text.strip()
    return stripped if stripped.endswith((".", "!", "?", "…")) else f"{stripped}."


def resume_command(debate_id: str) -> str:
    """The command that goes on with a debate."""
    return f"contend resume {debate_id[:8]}"
