"""Separates a speaker's own lines from code, quotes and other people's words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a list of debates must not wait for it
    from markdown_it import MarkdownIt

_CODE = ("fence", "code_block", "html_block")

_WORDS = re.compile(r"[^\W_]|[🔴🟡🟢✅⚠❌]")
_SIGN = re.compile(r"(?:[-+•–]|\*(?!\*)|\d+[.)])\s+|#{1,6}\s*|")
_QUOTE = r"\"[^\"]*\"?|“[^”]*”?|„[^“”]*[“”]?|«[^»]*»?|`[^`]*`?"
_QUOTED = re.compile(rf"[*_]*(?:{_QUOTE}|'[^']*')[*_.!]*")
_QUOTE_MARK = re.compile(r"[\"“”„«»`]")
# The last quotation mark in a line, if it opens a quote that ends in a later line.
_QUOTE_OPENS = re.compile(r"[\s(\[:*_]?[\"“„«`](?=\S)")
_REPORTS = (
    r"says?|said|saying|writ\w+|wrote|quot\w+|cit(?:es?|ed)|claim(?:s|ed)|declar\w+|stat(?:es|ed)"
    r"|asks?|asked|wants?|wanted|tells?|told|suggest\w*|propos(?:es|ed)|offer\w*|conclud\w+"
)
_INTRODUCES = re.compile(
    rf"\b(?:{_REPORTS}|ends?|ended|clos(?:es|ed)|answer(?:s|ed)|repl(?:y|ies|ied)|reads?|puts? it"
    r"|example|excerpt|passage|message|instructions?|prompt|transcript|text|words?|lines?)\b",
    re.IGNORECASE,
)
_ATTRIBUTES = re.compile(rf"\b(?:{_REPORTS})\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;✅])\s+|(?<=/10)\s+[-–—|]\s+")
# Words that only report something, and words that retract it.
REPORTING = r"\b(?:sa(?:y|id)|writ|wrote|signal|quot|claim|call|declar|want|ask|told|tell)\w*"
_REFUSING = (
    r"n['’]t\b|\b(?:not|cannot|never|nor|refus\w+|until|unless|once|if|when|before|after|"
    r"would|should|could|might|but|still|however|yet|except|almost|only|though)\b"
)
RETRACTION = re.compile(rf"{REPORTING}|{_REFUSING}", re.IGNORECASE)
_OWN_VOICE = re.compile(r"\b(?:I|my)\b", re.IGNORECASE)


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@dataclass(frozen=True)
class Line:
    text: str
    own: bool
    sign: str
    nested: bool
    after_blank: bool


def split_lines(reply: str) -> list[Line]:
    """Return all lines that contain words, each marked as the speaker's own or not."""
    return list(_lines(reply))


def own_text(reply: str) -> str:
    return "\n".join(line.text for line in _lines(reply) if line.own)


def own_sentences(reply: str) -> list[str]:
    """Return the speaker's own sentences, leaving out quotes and reported speech."""
    own = [re.sub(_QUOTE, " ", line.text) for line in _lines(reply) if line.own]
    # After such a report, the rest of the line may still quote somebody else.
    plain = (takewhile(lambda x: not _is_about(_ATTRIBUTES, x), sentences_of(text)) for text in own)
    return list(chain.from_iterable(plain))


def plain_sentences(reply: str) -> list[str]:
    """Return the speaker's own sentences, without questions and retractions."""
    return [x for x in own_sentences(reply) if not RETRACTION.search(x) and "?" not in x]


def sentences_of(text: str) -> list[str]:
    return _SENTENCE.split(text)


def _lines(reply: str) -> Iterator[Line]:
    written = reply.splitlines()
    code = _code_lines("\n".join(written))
    in_quote, introduced, in_paragraph, after_blank = False, False, False, True
    for at, raw in enumerate(written):
        bare = raw.strip()
        if not bare:
            # There may be a blank line between an introduction and the quote that it introduces.
            introduced, in_quote = introduced and not in_paragraph, False
            in_paragraph, after_blank = False, True
            continue
        sign_found = _SIGN.match(bare)
        sign = sign_found.group() if sign_found else ""
        text = bare[len(sign) :]
        own = not (at in code or in_quote or bare.startswith(">") or text.startswith(">"))
        own = own and not introduced and not _QUOTED.fullmatch(text)
        if _WORDS.search(bare):
            yield Line(text, own, sign, raw.startswith(("  ", "\t")), after_blank)
        after_blank = False
        if at in code:
            continue
        in_quote = not _QUOTE_MARK.search(bare) if in_quote else _opens_quote(bare)
        introduces = _introduces_others(text)
        in_paragraph = not introduces
        introduced = introduces or introduced


def _introduces_others(text: str) -> bool:
    """Return whether the text introduces somebody else's words, as `The Proposer wrote:` does."""
    if not text.rstrip(" \t*_").endswith(":"):
        return False
    last = re.split(r"[.!?]\s", text)[-1]
    return _is_about(_INTRODUCES, last)


def _is_about(others: re.Pattern[str], sentence: str) -> bool:
    found = others.search(sentence)
    return found is not None and not _OWN_VOICE.search(sentence[: found.start()])


def _opens_quote(line: str) -> bool:
    last = max(line.rfind(mark) for mark in '"“”„«»`')
    return last >= 0 and _QUOTE_OPENS.match(line, max(0, last - 1)) is not None


def _code_lines(reply: str) -> set[int]:
    tokens = _markdown().parse(reply)
    return {
        line for token in tokens if token.type in _CODE and token.map for line in range(*token.map)
    }
