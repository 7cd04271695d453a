"""Reading whether a speaker concedes, and to whom."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from contend.graph.readings import ReadFrom
from contend.models.replies.signals import Remarked, first_signal

_SAYS_NOT = re.compile(r"(?:I\s+am\s+)?NOT\s+CONVINCED\b", re.IGNORECASE)
_SAYS = re.compile(
    r"(?:I\s+am\s+)?CONVINCED\b[\s*_`]*(?P<by>:|\bby\b|[-–—])?[\s*_`]*(?P<whom>.*)",
    re.IGNORECASE,
)
_WRAPPING = " \t*_`\"'“”‘’()[]<>.,;:!"


class ConvictionBlock(BaseModel):
    """What a speaker's control block carries."""

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
    """The same for the demonstration model, which without bounds would never end."""

    convinced_by: Annotated[str, StringConstraints(max_length=40)] | None = None
    argument: _Short = ""
    quote: _Short = ""
    reasoning: _Short = ""


@dataclass(frozen=True)
class Claim:
    """What a speaker says of its conviction, before anybody has looked whom it names."""

    convinced: bool
    named: str = ""
    argument: str = ""
    quote: str = ""
    reasoning: str = ""
    read_from: ReadFrom = "block"


def claim_from_block(block: ConvictionBlock, speech: str) -> Claim:
    """The block, with what the speech says where it gives no reasons, or no name."""
    said = claim_from_words(speech) if block.convinced else None
    return Claim(
        convinced=block.convinced,
        named=(block.convinced_by or "").strip() or (said.named if said else ""),
        argument=block.argument.strip(),
        quote=block.quote.strip(),
        reasoning=block.reasoning.strip() or speech,
    )


def claim_from_words(speech: str) -> Claim | None:
    """`CONVINCED: NAME` or `NOT CONVINCED` where a line begins; None if neither, or unclear."""
    found = first_signal(speech, _claim)
    return replace(found[0], reasoning=found[1]) if found else None


def _claim(statement: str) -> tuple[Claim, int] | None:
    if denies := _SAYS_NOT.match(statement):
        return Claim(convinced=False, read_from="words"), denies.end()
    says = _SAYS.match(statement)
    if says is None or (not says["by"] and says["whom"].strip(_WRAPPING)):
        return None  # `Convinced as I am of ...` concedes nothing
    return Claim(convinced=True, named=says["whom"], read_from="words"), says.end()


def claim_from_report(report: ConvictionBlock, speech: str) -> Claim | None:
    """What a schema-bound call read, held to the speech: it may not concede for the speaker."""
    conceding = re.search(r"conced|convinc|persuad", speech, re.IGNORECASE)
    if report.convinced and not conceding:
        return None
    return replace(claim_from_block(report, speech), read_from="extraction")


def named_seat(named: str, known: Mapping[str, str]) -> str | None:
    """The id of the seat a concession names; `known` gives the id for everything seats go by.

    Of names that read alike, the last one known counts. Else it is the longest name that the words
    begin with; a name must end where a word ends.
    """
    exactly = {name.casefold(): seat for name, seat in known.items()}
    if named.strip().casefold() in exactly:
        return exactly[named.strip().casefold()]
    alike = {_plain(name): seat for name, seat in known.items()}
    text = _plain(named)
    longest_first = sorted(alike, key=len, reverse=True)
    return next((alike[name] for name in longest_first if _begins(text, name)), None)


def _begins(text: str, name: str) -> bool:
    rest = text[len(name) :]
    # A name that goes on (`model-b-2`) is another name; what follows a sign is a reason.
    return bool(name) and text.startswith(name) and not re.match(r"\w|[-.:/]\w", rest)


def _plain(text: str) -> str:
    return " ".join(text.casefold().strip(_WRAPPING).split())
