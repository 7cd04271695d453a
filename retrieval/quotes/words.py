"""Normalizes text to words for comparing quotes, removing insignificant differences."""

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from contend.retrieval.digits import LOWERED, RAISED

# Scripts without spaces between words: Thai to Myanmar, Khmer, kana, ideographs.
SIGNS = "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
SIGNS += "\U00020000-\U0003ffff"
UNSPACED = re.compile(f"[{SIGNS}]")

BORDER = "\ue000"
_JOIN = "\ue001"  # replaces a hyphen at the end of a line, which may or may not be part of the word
_MINUS, _DASH = "−", "–"
_DASHES = "‐-―−⸺⸻-"
_QUOTES = "\"'´‘’‚‛“”„‟«»‹›「」『』′″"
_POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ"
# Characters that NFKC must not change: 10⁶ is not 106, and 2½ is not 21⁄2.
_KEPT = f"´{_POWERS}₀-₎¼-¾⅐-⅞↉"
_LETTER = r"[^\W\d_]"
# Characters of words that `re` does not treat as letters.
_MARKS = "\u0300-\u036f\u0900-\u0963\u0966-\u0dff"
# Optional vowel marks of Arabic and Hebrew.
_VOWELS = "\u0640\u064b-\u0652\u0670\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_TAGS = "a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strong|su[bp]|tt|u"
# A raised 2 after one of these is not a footnote.
_UNIT = re.compile(
    r"\w*m(?:et(?:er|re|ro)|ètre)s?|miles?|feet|foot|inch(?:es)?|yards?|seconds?", re.IGNORECASE
)

Replacement = str | Callable[[re.Match[str]], str]


# A step has characters, a pattern and its replacement. It is skipped if the text has none of the
# characters; with "" it always runs, and with None only on text that is not ASCII.
_STEPS: tuple[tuple[str | None, re.Pattern[str], Replacement], ...] = (
    (BORDER + _JOIN, re.compile(f"[{BORDER}{_JOIN}]"), ""),
    # Markdown and HTML markup, of which only the text is kept.
    (">", re.compile(r"^[ \t]*>[> \t]*", re.MULTILINE), ""),
    ("&", re.compile(r"&(?:#\d{1,6}|#[xX][\da-fA-F]{1,5}|[a-zA-Z][a-zA-Z\d]{1,7});"),
     lambda found: html.unescape(found.group())),
    ("[", re.compile(r"\[\^[^\[\]\s]{1,40}\]"), ""),
    ("[", re.compile(rf"(?:(?<={_LETTER}{{4}})|(?<=[.,;:!?\"”’»%‰°)]))\[\d{{1,3}}\]"), ""),
    ("[", re.compile(r"!?\[([^\[\]]{1,300})\](?:\([^()\n]{0,500}\)|\[[^\[\]]{0,100}\])"), r"\1"),
    ("<", re.compile(r"<(https?://[^<>\s]{1,500})>"), r"\1"),
    ("<", re.compile(r"<(su[bp])>([\d+−-]{1,9})</su[bp]>", re.IGNORECASE),
     lambda found: found[2].translate(RAISED if found[1].lower() == "sup" else LOWERED)),
    ("<", re.compile(r"<br ?/?>", re.IGNORECASE), " "),
    ("<", re.compile(rf"</?(?:{_TAGS})(?: [^<>\n]{{0,300}})?>", re.IGNORECASE), ""),
    ("^", re.compile(r"\^\{?([+−-]?\d{1,4})\}?"), lambda found: found[1].translate(RAISED)),
    (_POWERS, re.compile(rf"(?<!{_LETTER})({_LETTER}{{4,}}|[.,;:!?\"”’»])[⁰¹²³⁴-⁹]+"),
     lambda found: found.group() if _UNIT.fullmatch(found[1]) else found[1]),
    ("`", re.compile(r"``([^`\n]{1,500}?)''"), r'"\1"'),
    ("\u00ad", re.compile(r"\u00ad\s*"), ""),
    ("", re.compile(f"[\u200b-\u200f\u2060\ufeff{_VOWELS}]|~~"), ""),
    # Between two digits, these are not markup.
    ("*_`\\", re.compile(r"(?<![*_`\\])(?:(?<!\d)[*_`\\]+|[*_`\\]++(?!\d))"), ""),
    (None, re.compile(f"[^{_KEPT}]+"), lambda found: unicodedata.normalize("NFKC", found.group())),
)  # fmt: skip
_LONG = 1000

_RUN = rf"[^\W_{SIGNS}]+(?:[{_MARKS}]+[^\W_{SIGNS}]*)*"
# Joins two parts into one word or number: can't, well-known, Paris–Bonn, 3.5, 10:30.
_TIE = r"(?:['’](?=[tT]\b)|[-‐‑]\s*|[‒–−]|(?<=\d)[.,:/⁄](?=\d))"
_WORD = rf"{_RUN}(?:{_TIE}{_RUN})*(?:(?<=\d)\s?[%‰°])?"
_BELOW_ZERO = r"(?<![\w)\]‒-―−-])[-‒–−][$€£¥]?(?=[.,]?\d)"
_TOKEN = re.compile(
    rf"{_WORD}|[{SIGNS}]|{_BELOW_ZERO}[.,]?{_WORD}|(?<!\w)\.(?=\d){_WORD}"
    rf"|[{_DASHES}]+|[{_QUOTES}]+|\.(?:\s?\.)+|[^\w\s]|_"
)
_SIGN_OF_NUMBER = re.compile("[$£¥¢\u20a0-\u20bf<>≤≥≈≠=±+~×÷#§]")
_NUMBER = re.compile(f"[{_MINUS}.]?\\d")
# How spelling is normalized, once there are borders around the words.
_ALIKE: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("\u0307ı", re.compile("i\u0307|ı"), "i"),
    ("", re.compile(rf"(?<={_LETTER})[-‐‑]\s+(?={_LETTER})"), _JOIN),
    ("", re.compile(r"\s+"), ""),
    ("", re.compile(rf"(?<={BORDER})[-‒–−](?=[^{BORDER}{_DASHES}])"), _MINUS),
    ("", re.compile(rf"(?<={BORDER})[{_DASHES}]+(?={BORDER})"), _DASH),
    ("‐‑‒–−", re.compile(r"(?<=\w)[‐‑‒–−](?=\w)"), "-"),
    ("", re.compile(f"[{_QUOTES}]+"), "'"),
    ("", re.compile(r"\.{2,}"), "…"),
)
_HYPHEN = re.compile(f"[-{_JOIN}]")


def strip_markup(text: str) -> str:
    for needs, pattern, place in _STEPS:
        # Checking first is much faster for long texts.
        if needs is None:
            concerned = not text.isascii()
        else:
            concerned = not needs or len(text) < _LONG or any(sign in text for sign in needs)
        if concerned:
            text = pattern.sub(place, text)
    return text


def tokens(text: str) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(text)


def normalize_spelling(text: str) -> str:
    found = _TOKEN.findall(text)
    joined = BORDER.join([*found, ""]).casefold()
    spelled = BORDER + joined
    for needs, pattern, place in _ALIKE:
        if not needs or any(sign in spelled for sign in needs):
            spelled = pattern.sub(place, spelled)
    return spelled[1:]


@dataclass(frozen=True)
class QuoteWords:
    text: str
    hyphens: dict[int, str]
    places: Sequence[int]

    @classmethod
    def of(cls, spelled: str) -> "QuoteWords":
        pieces: list[str] = []
        hyphens: dict[int, str] = {}
        reached = length = 0
        for found in _HYPHEN.finditer(spelled):
            pieces.append(spelled[reached : found.start()])
            length += found.start() - reached
            hyphens[length] = found.group()
            reached = found.end()
        return cls("".join([*pieces, spelled[reached:]]), hyphens, tuple(hyphens))

    def holds(self, part: "QuoteWords", at: int) -> bool:
        """Return whether hyphens at `at` match those in `part`; re-sign must not match resign."""
        low, high = bisect_right(self.places, at), bisect_left(self.places, at + len(part.text))
        own = {place - at: self.hyphens[place] for place in self.places[low:high]}
        return own == part.hyphens or all(
            own.get(place) == part.hyphens.get(place)
            or _JOIN in (own.get(place), part.hyphens.get(place))
            for place in own.keys() | part.hyphens.keys()
        )


def trimmed(words: Sequence[str]) -> Sequence[str]:
    """Remove leading and trailing symbols, but keep a number's sign, as in `5 %`."""
    wordy = [nth for nth, word in enumerate(words) if any(map(in_word, word))]
    if not wordy:
        return []
    first, last = wordy[0], wordy[-1]
    if _NUMBER.match(words[first]):
        while first and _SIGN_OF_NUMBER.fullmatch(words[first - 1]):
            first -= 1
    if words[last][-1].isdigit():
        while last + 1 < len(words) and _SIGN_OF_NUMBER.fullmatch(words[last + 1]):
            last += 1
    return words[first : last + 1]


def joins(sign: str) -> bool:
    return bool(sign) and in_word(sign) and not UNSPACED.match(sign)


def in_word(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LMN"
