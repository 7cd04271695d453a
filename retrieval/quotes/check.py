"""Checks every quote in a turn against the documents, word by word, without a model."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice

from contend.graph.values import QuoteCheck
from contend.models.text import shorten
from contend.retrieval.documents import Corpus
from contend.retrieval.quotes.spans import QuotedSpan, Reference, find_spans
from contend.retrieval.quotes.words import (
    BORDER,
    UNSPACED,
    QuoteWords,
    in_word,
    joins,
    normalize_spelling,
    strip_markup,
    tokens,
    trimmed,
)

_FEWEST_WORDS = 4
_FEWEST_NEAR_A_LABEL = 2
_SIGNS_OF_A_WORD = 2
_FEWEST_DISPROVED = 2
_LEAST_INNER = 1 / 3
_MOST_LEFT_OUT = 300
_MOST_IN_A_WORD = 5
_LONGEST_READING = 400
_MOST_PARTS = 20

# Marks for words that a speaker left out or inserted: `...`, `[...]`, `[the]`, and `meet[ing]`.
_EDITED = re.compile(r"\[([^\[\]]{0,200})\]|\.(?:\s?\.){2,}")
_CAPITAL = re.compile(r"(?<!\w)\[(\w)\](?=\w)")
_REMARK = re.compile(
    r"[(\[](?:(?:my|our|own) )?(?:emphas[ei]s|italics?|bold|underlining|translation"
    r"|hervorhebung(?:en)?)"
    r"(?: (?:added|mine|ours|supplied|omitted|removed|by|me|us|in|the|original|von|mir|im))*"
    r"[)\]]\W*\Z",
    re.IGNORECASE,
)
_GAP = "\ue002"
_BROKEN_OFF = re.compile(r"[^\W\d_][-‐‑]")
_REST_OF_WORD = re.compile(r"\s*[^\W\d_]\S*")


@dataclass(frozen=True)
class _Quote:
    """A quote split at omissions and insertions into parts that must match exactly."""

    parts: tuple[QuoteWords, ...]
    altered: bool = False


@dataclass(frozen=True)
class _DocumentWords:
    words: QuoteWords
    numbers: tuple[int, ...]
    starts: tuple[int, ...]
    pages: tuple[str, ...]

    def page_at(self, at: int) -> int:
        return bisect_right(self.starts, at) - 1

    def page_of(self, number: int) -> int:
        """Return the index in `pages` of the page with this number or passage with this line."""
        return max(bisect_right(self.numbers, number), 1) - 1

    def text_between(self, start: int, end: int) -> str:
        first, last = self.page_at(start), self.page_at(end - 1)
        pieces = list(self.pages[first : last + 1])
        pieces[-1] = pieces[-1][: self._token(last, end - 1).end()]
        pieces[0] = pieces[0][self._token(first, start).start() :]
        return shorten(" ".join(pieces), _LONGEST_READING)

    def _token(self, nth: int, at: int) -> re.Match[str]:
        before = self.words.text.count(BORDER, self.starts[nth], at)
        return next(islice(tokens(self.pages[nth]), before, None))


# A document's name and words, and where in them a quote begins and ends.
_Place = tuple[str, _DocumentWords, int, int]


def check_quotes(
    text: str, corpus: Corpus, debate: Sequence[str], disproved: Sequence[str] = ()
) -> tuple[QuoteCheck, ...]:
    # Repeating a false quote from an earlier turn does not make it a quote from the debate.
    checker = _Checker(corpus, debate, disproved)
    return tuple(check for span in find_spans(text, corpus.pages) for check in checker.check(span))


def was_said(quote: str, turns: Sequence[str]) -> bool:
    return _is_in_any(_readings(quote), turns)


@dataclass(frozen=True)
class _Checker:
    corpus: Corpus
    debate: Sequence[str]
    disproved: Sequence[str]

    def check(self, span: QuotedSpan) -> Iterator[QuoteCheck]:
        inner = [each for each in span.inner if _is_checked(each)]
        mostly_inner = sum(len(each.text) for each in inner) >= _LEAST_INNER * len(span.text)
        quote = self._quote_check(span) if _is_checked(span) else None
        if inner and mostly_inner and (quote is None or quote.status != "found"):
            for each in inner:
                yield from self.check(each)
        else:
            yield from [quote] if quote else []
            for each in span.inner:
                yield from self._label_checks(each)
        yield from self._label_checks(span)

    def _label_checks(self, span: QuotedSpan) -> Iterator[QuoteCheck]:
        for reference in span.references:
            if not self._exists(reference):
                cited, text = reference.label, reference.text
                yield QuoteCheck(text=text, status="not_found", cited=cited, written=text)

    def _exists(self, reference: Reference) -> bool:
        pages = self.corpus.pages.get(reference.document, ())
        last = self.corpus.lengths.get(reference.document, pages[-1].number if pages else 0)
        return 1 <= reference.first <= last and 1 <= reference.last <= last

    def _quote_check(self, span: QuotedSpan) -> QuoteCheck | None:
        quotes = _readings(span.text)
        if not quotes:
            return None
        cited = span.references[0] if span.references else None
        named = [each for each in span.references if self._exists(each)]
        for quote in quotes:
            if place := self._find_place(quote, named):
                return _build_check(span, quote, place, cited)
        said = not cited and _is_in_any(quotes, self.debate)
        launders = said and any(_repeats(span.text, quotes, each) for each in self.disproved)
        return QuoteCheck(
            text=span.text,
            status="from_debate" if said and not launders else "not_found",
            cited=cited.label if cited else None,
            written=cited.text if cited else None,
        )

    def _find_place(self, quote: _Quote, named: Sequence[Reference]) -> _Place | None:
        documents = _index_corpus(self.corpus)
        for reference in named:
            for words in documents.get(reference.document, ()):
                low = words.starts[words.page_of(reference.first)]
                ends = *words.starts[1:], len(words.words.text)
                high = ends[words.page_of(reference.last)]
                if found := _find(quote, words.words, low, high):
                    return reference.document, words, *found
        first = [each.document for each in named if each.document in documents]
        for name in dict.fromkeys([*first, *documents]):
            for words in documents[name]:
                if found := _find(quote, words.words):
                    return name, words, *found
        return None


def _build_check(
    span: QuotedSpan, quote: _Quote, place: _Place, cited: Reference | None
) -> QuoteCheck:
    document, words, start, end = place
    first, last = words.page_at(start), words.page_at(end - 1)
    where = f"{document}:{words.numbers[first]}"
    named = (each for each in span.references if each.document == document)
    holds = (e for e in named if first <= words.page_of(e.last) and words.page_of(e.first) <= last)
    holding = next(holds, None)
    written = holding or cited
    return QuoteCheck(
        text=span.text,
        status="altered" if quote.altered else "found",
        cited=where if holding else cited.label if cited else None,
        written=written.text if written else None,
        where=where,
        reads=words.text_between(start, end) if quote.altered else None,
    )


def _is_checked(span: QuotedSpan) -> bool:
    fewest = _FEWEST_NEAR_A_LABEL if span.near_label else _FEWEST_WORDS
    return bool(span.text) and (bool(span.references) or _has_words(span.text, fewest))


def _has_words(text: str, fewest: int) -> bool:
    return _count(text) >= fewest or len(UNSPACED.findall(text)) >= fewest * _SIGNS_OF_A_WORD


def _count(text: str) -> int:
    return sum(any(map(in_word, word)) for word in re.split(r"[\s–—]+", text))


def _repeats(text: str, quotes: Sequence[_Quote], disproved: str) -> bool:
    contains = _has_words(disproved, _FEWEST_DISPROVED) and was_said(disproved, [text])
    return contains or _is_in_any(quotes, [disproved])


@lru_cache(maxsize=4)
def _index_corpus(corpus: Corpus) -> dict[str, tuple[_DocumentWords, ...]]:
    found: dict[str, tuple[_DocumentWords, ...]] = {}
    for name, pages in corpus.pages.items():
        numbers = tuple(page.number for page in pages)
        texts = [[page.text for page in pages], [page.raw for page in pages]]
        found[name] = tuple(_index(numbers, each) for each in texts if any(each))
    return {name: indexes for name, indexes in found.items() if indexes}


def _index(numbers: tuple[int, ...], texts: Sequence[str]) -> _DocumentWords:
    pages = _with_whole_words([strip_markup(text) for text in texts])
    spelled = [normalize_spelling(page) for page in pages]
    lengths = (len(QuoteWords.of(each).text) for each in spelled[:-1])
    starts = tuple(accumulate(lengths, initial=len(BORDER)))
    return _DocumentWords(QuoteWords.of(BORDER + "".join(spelled)), numbers, starts, tuple(pages))


def _with_whole_words(pages: list[str]) -> list[str]:
    """Move the rest of each word that is split across two pages back to the earlier page."""
    for nth in range(1, len(pages)):
        broken = _BROKEN_OFF.fullmatch(pages[nth - 1].rstrip()[-2:])
        rest = _REST_OF_WORD.match(pages[nth]) if broken else None
        if rest:
            pages[nth - 1] += f"\n{rest.group()}"
            pages[nth] = pages[nth][rest.end() :]
    return pages


def _is_in_any(quotes: Sequence[_Quote], turns: Sequence[str]) -> bool:
    return any(_find(quote, _turn_words(turn)) for quote in quotes for turn in turns)


@lru_cache(maxsize=512)
def _turn_words(turn: str) -> QuoteWords:
    return QuoteWords.of(BORDER + normalize_spelling(strip_markup(turn)))


def _readings(span: str) -> list[_Quote]:
    # Keep the opening mark, so that a leading `> 5` is not mistaken for a block quote.
    text = strip_markup(f'"{span}')
    text = _REMARK.sub("", text) or text
    whole = _quote_words(text)
    if not whole:
        return []
    edited = _split_at_edits(_CAPITAL.sub(r"\1", text)) if _EDITED.search(text) else None
    return [_Quote((whole,)), *([edited] if edited else [])]


def _quote_words(text: str, *, opens: bool = True, closes: bool = True) -> QuoteWords | None:
    """Return the quote's words; `opens` requires a whole first word, `closes` a whole last word."""
    words = trimmed(normalize_spelling(text).split(BORDER)[:-1])
    if not words:
        return None
    return QuoteWords.of(f"{BORDER * opens}{BORDER.join(words)}{BORDER * closes}")


def _split_at_edits(text: str) -> _Quote | None:
    inserted = [_count(edit[1] or "") for edit in _EDITED.finditer(text)]
    marked = _EDITED.sub(lambda edit: _GAP if _count(edit[1] or "") else f" {_GAP} ", text)
    pieces = marked.split(_GAP)
    quoted = sum(_count(piece) for piece in pieces)
    if len(pieces) > _MOST_PARTS or sum(inserted) > quoted:
        return None
    last = len(pieces) - 1
    parts = [
        _quote_words(
            piece,
            opens=not (nth and joins(piece[:1])),
            closes=not (nth < last and joins(piece[-1:])),
        )
        for nth, piece in enumerate(pieces)
    ]
    worded = tuple(part for part in parts if part)
    return _Quote(worded, altered=any(inserted) or len(worded) > 1) if worded else None


def _find(
    quote: _Quote, source: QuoteWords, low: int = 0, high: int | None = None
) -> tuple[int, int] | None:
    first, *rest = quote.parts
    if not all(part.text in source.text for part in quote.parts):
        return None
    begins = _occurrences(first, source, low, len(source.text) if high is None else high)
    chains = {end: begin for begin, end in (begins if rest else islice(begins, 1))}
    for part in rest:
        chains = _extend(chains, part, source)
    return next(((begin, end) for end, begin in chains.items()), None)


def _extend(chains: dict[int, int], part: QuoteWords, source: QuoteWords) -> dict[int, int]:
    ends = list(chains)
    if not ends:
        return {}
    reach = _MOST_LEFT_OUT if part.text.startswith(BORDER) else _MOST_IN_A_WORD
    found: dict[int, int] = {}
    for at, to in _occurrences(part, source, ends[0], ends[-1] + reach + 1):
        nearest = ends[bisect_right(ends, at) - 1]
        if at - nearest <= reach:
            found[to] = chains[nearest]
    return found


def _occurrences(
    part: QuoteWords, source: QuoteWords, low: int, high: int
) -> Iterator[tuple[int, int]]:
    opens, closes = part.text.startswith(BORDER), part.text.endswith(BORDER)
    last = high - opens + len(part.text) - 1
    at = source.text.find(part.text, max(low - opens, 0), last)
    while at >= 0:
        if source.holds(part, at):
            yield at + opens, at + len(part.text) - closes
        at = source.text.find(part.text, at + 1, last)
