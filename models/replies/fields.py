"""Reads a block's fields in any format that models commonly use."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PERCENT = r"\s*(%|percent|)"
NUMBER = rf"(\d+(?:\.\d+)?|(?<![\w.])\.\d+){_PERCENT}"
LONGEST_ITEM, MOST_ITEMS = 500, 12
_ABOUT = re.compile(
    r"(?:[~≈]|(?:about|around|roughly|approximately|approx\.?|circa|ca\.?)\s)\s*", re.IGNORECASE
)
_NUMBER_TEXT = re.compile(NUMBER, re.IGNORECASE)
# Excludes 1,000, which may mean a thousand.
_DECIMAL_COMMA = re.compile(rf"(0,\d+|\d+,\d\d?){_PERCENT}", re.IGNORECASE)
_FRACTION = re.compile(r"(\d{1,4})\s*/\s*(\d{1,4})")
_SHORTEST_MISSPELT = 3

Outcomes = Mapping[str, str]
"""Outcome labels by id."""


def find_outcome(given: Any, outcomes: Outcomes) -> str | None:
    name = "" if given is None else str(given).strip().strip("`'\"*.")  # 0 may be an id
    by_name: dict[str, set[str]] = {}
    for outcome, label in outcomes.items():
        for known in (outcome, label, f"{outcome}: {label}", f"{outcome} ({label})"):
            by_name.setdefault(_plain(known), set()).add(outcome)
    exact = [outcome for outcome in outcomes if outcome.casefold() == name.casefold()]
    found = by_name.get(_plain(name), set()) if not exact else set(exact)
    if not found:
        alike = (ids for known, ids in by_name.items() if _is_misspelt(_plain(name), known))
        found = set().union(*alike)
    return found.pop() if len(found) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def _is_misspelt(given: str, known: str) -> bool:
    if abs(len(given) - len(known)) > 1 or min(len(given), len(known)) < _SHORTEST_MISSPELT:
        return False
    pairs = enumerate(zip(given, known, strict=False))
    at = next((at for at, (left, right) in pairs if left != right), min(len(given), len(known)))
    rests = {(given[at + 1 :], known[at + 1 :]), (given[at + 1 :], known[at:])}
    rests.add((given[at:], known[at + 1 :]))
    is_digit = given[at : at + 1].isdigit() or known[at : at + 1].isdigit()
    return not is_digit and any(left == right for left, right in rests)


def number_in(value: Any) -> float | None:
    """Return the number in a value such as 0.7, "70%", "about 0,7" or "7/10", or None."""
    if isinstance(value, str):
        value = _number_in_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _number_in_text(text: str) -> float | None:
    text = text.strip().removesuffix(".")
    if about := _ABOUT.match(text):
        text = text[about.end() :]
    if fraction := _FRACTION.fullmatch(text):
        part, whole = int(fraction[1]), int(fraction[2])
        return part / whole if 0 < whole >= part else None
    written = _NUMBER_TEXT.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text)
    return written_number(*written.groups()) if written else None


def written_number(digits: str, sign: str) -> float:
    digits = digits.replace(",", ".")
    return float(f"{digits}e-2" if sign else digits)


def share_in(value: Any) -> float | None:
    number = number_in(value)
    return number if number is not None and 0 <= number <= 1 else None


def percentage_or_share(value: Any) -> float | None:
    number = number_in(value)
    if number is None or not 0 <= number <= 100:
        return None
    return number / 100 if number > 1 else number


def one_of(value: Any, names: Sequence[str]) -> str | None:
    known = {name.casefold(): name for name in names}
    given = "" if value is None else str(value)  # 0 may be the id of an outcome
    return known.get(given.strip().strip("`'\"*.").casefold())


def line_in(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def lines_in(value: Any) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(line[:LONGEST_ITEM] for each in given if (line := line_in(each)))[:MOST_ITEMS]
