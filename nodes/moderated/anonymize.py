"""Replaces the sides' names with neutral labels, so that the judge cannot tell who is speaking."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from contend.graph.state import DebateState
from contend.graph.values import Seat
from contend.nodes.moderated.schedule import statements_in

# More nouns than a debate can have sides, so that at least one is in no side's name.
_NOUNS = (
    *("Speaker", "Voice", "Debater", "Panelist", "Orator"),
    *("Discussant", "Participant", "Contributor", "Contestant"),
)
# Shorter names are matched with their exact case: in lower case they are words or symbols.
_SHORTEST_NAME = 3
# Places where any word begins with a capital letter.
_SENTENCE_BEGINS = r"(?:^|[.!?:]\s|[\n(\"“*_#>-])\s*"


def neutral_labels(order: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return a numbered label for each seat, with a noun that occurs in no name."""
    called = " ".join(names).casefold()
    noun = next((each for each in _NOUNS if each.casefold() not in called), _NOUNS[-1])
    return {seat: f"{noun} {number}" for number, seat in enumerate(order, 1)}


def names_kept(state: DebateState, sides: Sequence[Seat]) -> list[str]:
    """Return the names to keep, which the debate also uses as ordinary words."""
    subject = "\n".join([state["question"], *(side.position for side in sides)])
    said = "\n".join(turn.text for turn in statements_in(state.get("turns", [])))
    return list(_kept(tuple(side.name for side in sides), subject, said))


# Cached, because it searches the whole debate and is called for every statement in a prompt.
@lru_cache(maxsize=4)
def _kept(names: tuple[str, ...], subject: str, said: str) -> tuple[str, ...]:
    return tuple(
        name for name in names if _names_in([name]).search(subject) or _is_a_word(name, said)
    )


def without_names(text: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return text
    longest_first = sorted(labels, key=len, reverse=True)
    return _names_in(longest_first).sub(
        # Find the name by group number, because case folding does not unify all forms of a letter.
        lambda found: labels[longest_first[(found.lastindex or 1) - 1]],
        text,
    )


def _names_in(names: Sequence[str]) -> re.Pattern[str]:
    each = (f"({_pattern(name)})" for name in names)
    letter = r"[^\W_]"  # an underscore may be emphasis markup
    before, after = rf"(?<!{letter})(?<!{letter}-)", rf"(?!{letter}|-{letter})"
    return re.compile(f"{before}(?:{'|'.join(each)}){after}", re.IGNORECASE)


def _pattern(name: str) -> str:
    pattern = r"\s+".join(map(re.escape, name.split()))
    return pattern if len(name) >= _SHORTEST_NAME else f"(?-i:{pattern})"


def _is_a_word(name: str, said: str) -> bool:
    # A name as short as `A` is a word if it is also used in lower case and may begin a sentence.
    if len(name) < _SHORTEST_NAME:
        is_written_small = re.search(rf"\b{re.escape(name.lower())}\b", said)
        begins = rf"{_SENTENCE_BEGINS}{re.escape(name)}\s+[^\W\d_A-Z]"
        return bool(is_written_small and not name.islower() and re.search(begins, said))
    uses = _names_in([name]).findall(said)
    small = sum(use.islower() for use in uses)
    return not name.islower() and small > len(uses) - small
