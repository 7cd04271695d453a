from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from contend.debates.exports.wording import INITIAL, duration
from contend.models.text import UNSAFE, shorten

if TYPE_CHECKING:  # slow to import
    from contend.debates.estimate import Estimate
    from contend.graph.settings import DebateSettings

DEMONSTRATION = (
    "This is the built-in demo model: it is far too small to argue well, and its scores are not "
    "meaningful. For a real debate choose a larger model, for example --model ollama:qwen3:32b "
    "or --model openai:gpt-5-mini."
)

_OLD_PRICES = timedelta(days=180)


def plain(text: str) -> str:
    return UNSAFE.sub("", text)


def one_line(text: str, limit: int) -> str:
    return shorten(plain(text), limit)


def counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def cost(dollars: float | None) -> str:
    if dollars is None:
        return "unknown"
    return "free (local)" if dollars == 0 else f"${dollars:.4f}"


def estimate_words(found: "Estimate", today: date) -> str:
    words, likely = _range_words(found, today), found.likely
    if likely is None:
        return words
    dollars = f", {_dollars(likely.cost_usd)}" if likely.cost_usd else ""
    tokens = f"{_rounded(likely.tokens)} tokens"
    return f"{words}; likely {counted(likely.calls, 'call')}, {tokens}{dollars}"


def _range_words(found: "Estimate", today: date) -> str:
    tokens = _joined([_rounded(number) for number in found.tokens])
    calls = _joined([f"{number:,}" for number in found.calls])
    words = f"{calls} calls, about {tokens} tokens"
    if found.cost_usd is None:
        return f"{words}, cost unknown (no price for {', '.join(found.unpriced)})"
    if not any(found.cost_usd):
        return f"{words}, free (local)"
    cost_range = _joined([_dollars(amount) for amount in found.cost_usd])
    return f"{words}, {cost_range}{_prices_note(found.prices_read, today)}"


def estimate_table(found: "Estimate") -> list[str]:
    likely = found.likely
    rows = [["", "low", "likely", "high"]]
    low, high = found.calls
    rows.append(["calls", f"{low:,}", f"{likely.calls:,}" if likely else "", f"{high:,}"])
    tokens = [found.tokens[0], likely.tokens if likely else 0, found.tokens[1]]
    rows.append(["tokens", *(_rounded(number) for number in tokens)])
    if found.cost_usd is None:
        rows.append(["cost", "unknown", "unknown", "unknown"])
    else:
        usual = (likely.cost_usd if likely else None) or 0.0
        costs = [found.cost_usd[0], usual, found.cost_usd[1]]
        rows.append(["cost", *(_dollars(each) if each else "free" for each in costs)])
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    return ["  ".join(map(str.rjust, row, widths)) for row in rows]


def _prices_note(read: date | None, today: date) -> str:
    if read is None:
        return ""
    if today - read > _OLD_PRICES:
        return (
            f" (prices from {read}, over {_OLD_PRICES.days} days old; replace them with the "
            "setting prices)"
        )
    return f" (prices from {read})"


def _joined(ends: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys(ends))


def _rounded(number: int) -> str:
    return f"{number:,}" if number < 1000 else f"{round(number / 1000):,}k"


def _dollars(amount: float) -> str:
    if amount >= 0.01:
        return f"${amount:,.2f}"
    return f"${amount:.3f}" if amount >= 0.001 else "under $0.001"


def elapsed(seconds: float) -> str:
    return f"{int(seconds)} s" if seconds < 60 else duration(seconds * 1000)


def rounds_words(least: int, most: int) -> str:
    return counted(most, "round") if least == most else f"{least} to {most} rounds"


def round_title(number: int, least: int, most: int, opening: str = INITIAL) -> str:
    if number == 0:
        return opening
    if number > most:
        return f"Round {number} (added)"
    return f"Round {number} of {'' if least == most else 'at most '}{most}"


def resume_command(debate_id: str) -> str:
    return f"contend resume {debate_id[:8]}"


def larger_budget(settings: "DebateSettings") -> str:
    """Return command-line options that double the debate's budget."""
    tokens = f"--budget {2 * settings.budget}" if settings.budget else ""
    dollars = f"--max-cost {2 * settings.max_cost:g}" if settings.max_cost else ""
    return " ".join(filter(None, (tokens, dollars)))
