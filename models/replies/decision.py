import re
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from contend.graph.readings import Decision
from contend.models.replies.own_words import own_sentences
from contend.models.replies.signals import Remarked, first_signal

Word = Literal["continue", "stop"]

_LABEL = re.compile(r"^(?:my\s+)?(?:decision|verdict|ruling)\s*:[\s*_`]*", re.IGNORECASE)
# Must be followed by punctuation or the end of the line: `STOP would be premature` is no decision.
_WORD = re.compile(r"(continue|stop)(?=[*_`]*\s*(?:[-–—:.,;!]|$))", re.IGNORECASE)
# Finds the other word as a sentence of its own, which retracts the decision.
_SENTENCES = re.compile(r"(?<=[.!?:;])\s+")


class DecisionBlock(BaseModel):
    """The content of the control block with the judge's decision."""

    small_prompt: ClassVar[str] = "forum/small/extract.continue"

    decision: Annotated[Word, BeforeValidator(lambda word: str(word).strip().lower())]
    reasoning: Remarked = Field(default="", description="The reasons in one or two sentences.")


class ShortDecisionBlock(DecisionBlock):
    """A DecisionBlock with a length limit, for the demo model."""

    reasoning: Annotated[str, StringConstraints(max_length=200)] = ""


def decision_from_block(block: DecisionBlock, speech: str) -> Decision:
    return Decision(decision=block.decision, reasoning=block.reasoning.strip() or speech)


def decision_from_text(speech: str) -> Decision | None:
    """Parse CONTINUE or STOP at the start of the first line, or of later lines that all agree."""
    found = first_signal(speech, _read_word)
    return Decision(decision=found[0], reasoning=found[1], read_from="words") if found else None


def decision_from_report(report: DecisionBlock, speech: str) -> Decision | None:
    """Convert an extracted block, or return None if the judge's text lacks that decision."""
    if not re.search(rf"\b{report.decision}", " ".join(own_sentences(speech)), re.IGNORECASE):
        return None
    read = decision_from_block(report, speech)
    return read.model_copy(update={"read_from": "extraction"})


def _read_word(statement: str) -> tuple[Word, int] | None:
    label = _LABEL.match(statement)
    at = label.end() if label else 0
    found = _WORD.match(statement, at)
    matches = map(_WORD.match, _SENTENCES.split(statement[at:]))
    words = {match[1].lower() for match in matches if match}
    if found is None or len(words) != 1:
        return None
    return "stop" if words == {"stop"} else "continue", found.end()
