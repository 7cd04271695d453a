"""Removes sentences that a small model copied from its prompt instead of answering."""

import re
from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage

from contend.graph.phases import PhaseName
from contend.graph.state import DebateState, turns_of

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"\w+")
_FEWEST_WORDS = 4
# Below 1, because small models change a word or two when they copy.
_ALIKE = 0.9
_ANSWERS = ("propose", "synthesize")
# Typical words of a critique, which small models copy into the next answer.
_REVIEW = re.compile(r"\b(?:answer|claim|critic|draft)\b", re.IGNORECASE)


def without_echo(
    text: str, messages: Sequence[BaseMessage], state: DebateState, phase: PhaseName
) -> tuple[str, int]:
    """Return the text without copied sentences, and how many were removed."""
    question, echoes = _words(state["question"]), _instructions(messages, state)
    if phase in _ANSWERS:
        echoes += _reviews(state)
    paragraphs, removed = [], 0
    for paragraph in text.split("\n\n"):
        # The sentences, and the white space after each.
        said = _SENTENCE_END.split(paragraph)
        spaces = [*(found[0] for found in _SENTENCE_END.finditer(paragraph)), ""]
        kept = [
            sentence + space
            for sentence, space in zip(said, spaces, strict=True)
            if not _is_echo(sentence, question, echoes)
        ]
        removed += len(said) - len(kept)
        paragraphs.append("".join(kept).rstrip() if len(kept) < len(said) else paragraph)
    left = "\n\n".join(each for each in paragraphs if each.strip())
    return (left, removed) if left else (text, 0)


def _reviews(state: DebateState) -> list[frozenset[str]]:
    """Return the word sets of sentences in which a critique discusses the answer itself."""
    spoken = (_SENTENCE_END.split(turn.text) for turn in turns_of(state, "critique"))
    return _sentences(each for said in spoken for each in said if _REVIEW.search(each))


def _instructions(messages: Sequence[BaseMessage], state: DebateState) -> list[frozenset[str]]:
    """Return the word sets of the prompt's own sentences, without the question and the turns."""
    asked = _sentences(str(message.content) for message in messages)
    spoken = _sentences([state["question"], *(turn.text for turn in state.get("turns", []))])
    return [words for words in asked if not any(said <= words for said in spoken)]


def _sentences(texts: Iterable[str]) -> list[frozenset[str]]:
    found = (_words(each) for text in texts for each in _SENTENCE_END.split(text))
    return [words for words in found if len(words) >= _FEWEST_WORDS]


def _words(sentence: str) -> frozenset[str]:
    return frozenset(_WORD.findall(sentence.casefold()))


def _is_echo(sentence: str, question: frozenset[str], echoes: list[frozenset[str]]) -> bool:
    words = _words(sentence)
    # Only a question counts: "Yes, it should ..." also repeats most of its words, but answers it.
    repeats_question = sentence.rstrip().endswith("?") and _are_alike(words, question)
    return repeats_question or any(_are_alike(words, each) for each in echoes)


def _are_alike(some: frozenset[str], others: frozenset[str]) -> bool:
    return bool(some) and len(some & others) / len(some | others) >= _ALIKE
