"""Removes what a small model repeats of its prompt instead of answering."""

import re
from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage

from contend.graph.phases import PhaseName
from contend.graph.state import DebateState

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"\w+")
_FEWEST_WORDS = 4
# Small models swap words when they repeat.
_ALIKE = 0.9
_ANSWERS = ("propose", "synthesize")
# Small models copy what a critic says about their answer into the next one.
_REVIEW = re.compile(
    r"\b(?:(?:the|this|my)(?: \w+)? (?:answer|draft)(?: also| only)?"
    r" (?:is (?:somewhat|not clear|incomplete|flawed|missing|incorrect|wrong|weak)|"
    r"does|did|fails|lacks|may not|contains|overstates|states|suggests|provides|claims|mentions|"
    r"incorrectly)|the critic(?:'s)?|weakest claim)\b",
    re.IGNORECASE,
)


def without_echo(
    text: str, messages: Sequence[BaseMessage], state: DebateState, phase: PhaseName
) -> tuple[str, int]:
    """Return the text without sentences of the question or the instructions, and how many."""
    question, echoes = _words(state["question"]), _instructions(messages, state)
    is_answer = phase in _ANSWERS
    paragraphs, removed = [], 0
    for paragraph in text.split("\n\n"):
        said = _SENTENCE_END.split(paragraph)
        kept = [
            each
            for each in said
            if not (_is_echo(each, question, echoes) or (is_answer and _REVIEW.search(each)))
        ]
        removed += len(said) - len(kept)
        paragraphs.append(" ".join(kept) if len(kept) < len(said) else paragraph)
    left = "\n\n".join(each for each in paragraphs if each.strip())
    return (left, removed) if left else (text, 0)


def _instructions(messages: Sequence[BaseMessage], state: DebateState) -> list[frozenset[str]]:
    """Return the words of each sentence of the prompt without a speaker's words or the question."""
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
    # "Yes, it should" repeats most words of the question too, and is an answer.
    repeats_question = sentence.rstrip().endswith("?") and _are_alike(words, question)
    return repeats_question or any(_are_alike(words, each) for each in echoes)


def _are_alike(some: frozenset[str], others: frozenset[str]) -> bool:
    return bool(some) and len(some & others) / len(some | others) >= _ALIKE
