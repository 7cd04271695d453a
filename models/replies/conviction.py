import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, StringConstraints

from contend.graph.readings import ReadFrom
from contend.models.replies.own_words import own_sentences
from contend.models.replies.signals import Remarked, first_signal

_SAYS_NOT = re.compile(r"(?:I\s+am\s+)?NOT\s+CONVINCED\b", re.IGNORECASE)
_SAYS = re.compile(
    r"(?:I\s+am\s+)?CONVINCED\b[\s*_`]*(?P<by>:|\bby\b|[-–—])?[\s*_`]*(?P<whom>.*)", re.IGNORECASE
)
_WRAPPING = " \t*_`\"'“”‘’()[]<>.,;:!"


class ConvictionBlock(BaseModel):
    """The content of the control block in which a speaker says whether it concedes."""

    small_prompt: ClassVar[str] = "forum/small/extract.conviction"

    convinced: bool = Field(description="True only if the speaker concedes.")
    convinced_by: str | None = Field(
        default=None, description="The participant conceded to, as named in the debate; else null."
    )
    argument: Remarked = Field(
        default="", description="The argument that convinced, in one sentence."
    )
    quote: Remarked = Field(
        default="", description="Words of that argument, exactly as they were said."
    )
    reasoning: Remarked = Field(default="", description="The reasons in one or two sentences.")


_Short = Annotated[str, StringConstraints(max_length=160)]


class ShortConvictionBlock(ConvictionBlock):
    """A ConvictionBlock with length limits, for the demo model."""

    convinced_by: Annotated[str, StringConstraints(max_length=40)] | None = None
    argument: _Short = ""
    quote: _Short = ""
    reasoning: _Short = ""


@dataclass(frozen=True)
class Claim:
    convinced: bool
    named: str = ""
    argument: str = ""
    quote: str = ""
    reasoning: str = ""
    read_from: ReadFrom = "block"


def claim_from_block(block: ConvictionBlock, speech: str) -> Claim:
    stated = claim_from_text(speech) if block.convinced else None
    return Claim(
        convinced=block.convinced,
        named=(block.convinced_by or "").strip() or (stated.named if stated else ""),
        argument=block.argument.strip(),
        quote=block.quote.strip(),
        reasoning=block.reasoning.strip() or speech,
    )


def claim_from_text(speech: str) -> Claim | None:
    """Parse `CONVINCED: NAME` or `NOT CONVINCED` at a line's start. Return None if ambiguous."""
    found = first_signal(speech, _read_claim)
    return replace(found[0], reasoning=found[1]) if found else None


def _read_claim(statement: str) -> tuple[Claim, int] | None:
    if denies := _SAYS_NOT.match(statement):
        return Claim(convinced=False, read_from="words"), denies.end()
    says = _SAYS.match(statement)
    if says is None or (not says["by"] and says["whom"].strip(_WRAPPING)):
        return None  # `Convinced as I am of ...` is not a concession
    return Claim(convinced=True, named=says["whom"], read_from="words"), says.end()


def claim_from_report(report: ConvictionBlock, speech: str) -> Claim | None:
    """Convert an extracted block to a claim, or return None if the text does not confirm it."""
    conceding = re.search(r"conced|convinc|persuad", " ".join(own_sentences(speech)), re.IGNORECASE)
    if report.convinced and not conceding:
        return None
    return replace(claim_from_block(report, speech), read_from="extraction")


def named_seat(named: str, known: Mapping[str, str]) -> str | None:
    """Return the seat called `named` or, failing that, the one whose name `named` begins with."""
    exactly = {name.casefold(): seat for name, seat in known.items()}
    if named.strip().casefold() in exactly:
        return exactly[named.strip().casefold()]
    alike = {_plain(name): seat for name, seat in known.items()}
    text = _plain(named)
    for name in sorted(filter(None, alike), key=len, reverse=True):
        # `model-b-2` is not `model-b`; but punctuation and a reason may follow a name.
        if re.match(rf"{re.escape(name)}(?!\w|[-.:/]\w)", text):
            return alike[name]
    return None


def _plain(text: str) -> str:
    return " ".join(text.casefold().strip(_WRAPPING).split())
