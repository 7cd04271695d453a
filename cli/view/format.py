"""Numbers, times and untrusted text for the terminal."""

from contend.debates.exports.wording import INITIAL, duration
from contend.models.text import UNSAFE, shorten

DEMONSTRATION = (
    "This is the built-in demo model: it is far too small to argue well, and its scores are not "
    "meaningful. For a real debate choose a larger model, for example --model ollama:qwen3:32b "
    "or --model openai:gpt-5-mini."
)


def plain(text: str) -> str:
    """Remove characters that could control a terminal or reorder its line."""
    return UNSAFE.sub("", text)


def one_line(text: str, limit: int) -> str:
    return shorten(plain(text), limit)


def counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def cost(dollars: float | None) -> str:
    """Format a price: None is unknown, zero is a local model."""
    if dollars is None:
        return "unknown"
    return "free (local)" if dollars == 0 else f"${dollars:.4f}"


def elapsed(seconds: float) -> str:
    """Format a time that is still growing, without tenths of a second."""
    return f"{int(seconds)} s" if seconds < 60 else duration(seconds * 1000)


def rounds_words(least: int, most: int) -> str:
    return counted(most, "round") if least == most else f"{least} to {most} rounds"


def round_title(number: int, least: int, most: int, opening: str = INITIAL) -> str:
    """Title a round; round 0 is the opening."""
    if number == 0:
        return opening
    if number > most:
        return f"Round {number} (added)"
    return f"Round {number} of {'' if least == most else 'at most '}{most}"


def resume_command(debate_id: str) -> str:
    return f"contend resume {debate_id[:8]}"
