import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from contend.retrieval.quotes.words import in_word, joins

_LINE_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})([^\n]*)")
_CODE = re.compile(r"``(?:(?!'')[^\n])+?``|(?<!`)`[^`\n]+`(?!`)")
_NEW_BLOCK = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,3}[.)][ \t]|#{1,6}[ \t]|\|)")
_QUOTED_LINE = re.compile(r"[ \t]*((?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,8}){0,3})>[> \t]*")
_SIGNED = re.compile(r"\n[ \t]*(?:—|–|--)[^\n]*\Z")
_WORTH = re.compile("[\"'“”„«»‹›「『｢❝〝‘’‚`[]")
_CLOSERS: dict[str, Collection[str]] = {
    "“": "”", "”": "”", "„": "“”", "«": "»", "»": "«»", "‹": "›", "›": "‹›", "「": "」",
    "『": "』", "｢": "｣", "❝": "❞", "〝": "〞〟", "``": ("''",),
}  # fmt: skip
_OPENER = re.compile("[“„«‹「『｢❝〝]|(?<!\\w)[»›](?=\\S)|(?<![^\\s(\\[*_—–])”(?=\\S)|``(?=[^\\s`])")
_MARK = re.compile("``|''|[“”„«»‹›「」『』｢｣❝❞〝〞〟]")
# Some marks open quotes in one language and close them in another. After a space they open.
_NESTED = re.compile(r"(?<=\s)[“”„«»‹›](?=\w)")
# Pairs of single quotation marks; an apostrophe looks like one, too.
_SINGLE = (("'", "'"), ("‘", "’"), ("’", "’"), ("‚", "‘’"))
# Words such as '90s and 'n' begin with an apostrophe.
_CLIPPED = re.compile(r"\d0s\b|(?:n|tis|twas|em|cause|til|bout|round)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"[sxz].[ ][^\W\d_]", re.IGNORECASE)
_PARAGRAPHS = 5
_SENTENCE_END = re.compile(r"[.!?][\"'”’»)\]]*\s|[。！？]")

_PAGE = r"(?:pp?|pages?|lines?|l)\.? ?"
_PLACE = rf"(?:{_PAGE})?\d{{1,9}}(?: ?[-–] ?\d{{1,9}})?"
_NAMED = rf"[^\W_][\w.-]{{0,60}} ?(?:: ?|, ?(?={_PAGE}\d)){_PLACE}"
_CITATION = re.compile(rf"\[ ?{_NAMED}(?: ?[,;] ?(?:{_NAMED}|{_PLACE}))* ?\]", re.IGNORECASE)
# [handbook, p. 12] may also cite a book; it counts only if it names one of the documents.
_COMMA = re.compile(rf"(\[ ?)([^\W_][\w.-]{{0,60}}) ?, ?(?={_PAGE}\d)", re.IGNORECASE)
_LINK = re.compile(r"\(|: ?https?:")
_REFERENCE = re.compile(r"(?:([\w.-]+) ?: ?)?\D*?(\d+)(?: ?[-–] ?(\d+))?\s*")
_BEFORE_CITATION = re.compile(r"[^\w\[]{0,12}")
# A citation, a space or a colon, and the opening quotation mark.
_BEFORE = re.compile(r"\[[^\[\]]*\](?::?[ \t]*)[^\w\s\[\]]{1,2}\Z")
_LONGEST_CITATION = 200
# Words that, in brackets and with a number, do not cite a source.
_NUMBERED = (
    "appendix box case ch chapter chart day edit eq equation ex example exhibit fig figure fn "
    "footnote hint issue item l level line lines map no note number op option p page pages para "
    "paragraph part phase photo pic plate point pp q question remark round rule sec section slide "
    "step tab table task tip update v version vol volume warning week year abb abbildung anhang "
    "anmerkung hinweis kapitel seite tabelle tableau "
    "argument claim confidence critique objection premise priority probability quality rank rating "
    "reason score severity weight"
)
_NO_LABELS = frozenset(_NUMBERED.split())


@dataclass(frozen=True)
class Reference:
    document: str
    first: int
    last: int
    text: str

    @property
    def label(self) -> str:
        return f"{self.document}:{self.first}"


@dataclass(frozen=True)
class QuotedSpan:
    text: str
    references: tuple[Reference, ...] = ()
    inner: tuple["QuotedSpan", ...] = ()  # quotes inside a block quote
    near_label: bool = False  # whether the same sentence cites a document


Citations = dict[int, re.Match[str]]


def find_spans(text: str, documents: Collection[str]) -> Iterator[QuotedSpan]:
    plain = text.replace("&quot;", '"').replace("＂", '"')
    blocks = list(_blocks(_without_fences(plain.split("\n"))))
    nth = 0
    while nth < len(blocks):
        quote, prose = blocks[nth]
        nth += 1
        if not quote and not _WORTH.search(prose):
            continue
        more = _count_continued(
            prose, [prose for _, prose in blocks[nth : nth + _PARAGRAPHS]], documents
        )
        prose = "\n\n".join([prose, *(blocks[at][1] for at in range(nth, nth + more))])
        nth += more
        goes_on = nth < len(blocks) and not blocks[nth][0]
        yield from _Block(quote, prose, documents, blocks[nth][1] if goes_on else "").spans()


class _Block:
    def __init__(self, quote: str, prose: str, documents: Collection[str], after: str) -> None:
        self._text = f"{quote}\n{prose}"
        self._quote = len(quote)
        self._documents = documents
        self._after = after.lstrip()
        self._codes = list(_CODE.finditer(self._text)) if "`" in self._text else []
        self._seen = _mask_code(self._text)
        self._citations = _citations(self._seen, documents)

    def spans(self) -> Iterator[QuotedSpan]:
        found: list[tuple[int, QuotedSpan]] = []
        if self._quote:
            places = self._quoted(0, self._quote)
            inner = tuple(self._span(start, end) for start, end in places)
            found.append((0, replace(self._span(0, self._quote), inner=inner)))
        prose = self._quoted(self._quote + 1, len(self._seen))
        spans = [(start, self._span(start, end)) for start, end in prose]
        found += self._with_labels_near([(at, self._with_label_before(at, s)) for at, s in spans])
        found += [(at, QuotedSpan("", self._named(each))) for at, each in self._citations.items()]
        found.sort(key=lambda each: each[0])
        yield from (span for _, span in found if span.text or span.references or span.inner)

    def _span(self, start: int, end: int) -> QuotedSpan:
        to, at = self._citation_at(start, end)
        named = self._named(self._citations.pop(at)) if at in self._citations else ()
        return QuotedSpan(_SIGNED.sub("", self._text[start:to].strip()).strip(), named)

    def _with_label_before(self, start: int, span: QuotedSpan) -> QuotedSpan:
        before = _BEFORE.search(self._seen, max(0, start - _LONGEST_CITATION), start)
        at = before.start() if before else -1
        if span.references or at not in self._citations:
            return span
        return replace(span, references=self._named(self._citations.pop(at)))

    def _with_labels_near(
        self, found: Sequence[tuple[int, QuotedSpan]]
    ) -> Iterator[tuple[int, QuotedSpan]]:
        ends = [each.end() for each in _SENTENCE_END.finditer(self._seen)]
        labelled = {
            bisect_right(ends, at)
            for at, each in self._citations.items()
            if any(named.document in self._documents for named in self._named(each))
        }
        for start, span in found:
            yield start, replace(span, near_label=bisect_right(ends, start) in labelled)

    def _named(self, citation: re.Match[str]) -> tuple[Reference, ...]:
        return references(citation.group(), self._documents)

    def _citation_at(self, start: int, end: int) -> tuple[int, int]:
        at = _citation_start(self._seen, end)
        last = self._seen.rfind("[", start, end)
        if at not in self._citations and last in self._citations:
            rest = self._seen[self._citations[last].end() : end]
            if not any(map(in_word, rest)):
                return last, last
        return end, at

    def _quoted(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        seen = self._seen[:end]
        if not _WORTH.search(self._text, start, end):
            return
        straight, loose = _find_straight(seen, start)
        paired, open_pair = _find_paired(seen, start)
        spans = [*straight, *paired, *self._spaced(start, end), *self._code(start, end)]
        for opens, closes in _SINGLE:
            spans += _find_single(seen, start, opens, closes) if opens in seen else []
        for mark, begin in (('"', loose), open_pair):
            # In a long quote, every paragraph begins with a mark, but only the last ends with one.
            if begin is not None and mark and self._after.startswith(mark):
                spans.append((begin, end))
        reached = start
        for begin, to in sorted(spans):
            if reached <= begin < to:
                yield begin, to
                reached = to

    def _spaced(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for at in self._citations:
            close = self._seen.rfind('"', max(start, at - 13), min(at, end))
            if close < 0 or _citation_start(self._seen, close + 1) != at:
                continue
            begin = self._seen.rfind('"', start, close) + 1
            spaced = self._seen[begin : begin + 1].isspace() or self._seen[close - 1].isspace()
            if begin > start and spaced:
                yield begin, close

    def _code(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for code in self._codes:
            ticks = 2 if code.group().startswith("``") else 1
            cited = _citation_start(self._seen, code.end()) in self._citations
            if cited and start <= code.start() and code.end() <= end:
                yield code.start() + ticks, code.end() - ticks


def _mask_code(text: str) -> str:
    return _CODE.sub(lambda code: f"·{'x' * (len(code.group()) - 2)}·", text)


def _citation_start(text: str, at: int) -> int:
    found = _BEFORE_CITATION.match(text, at)
    return found.end() if found else at


def _citations(text: str, documents: Collection[str]) -> Citations:
    found: Citations = {}
    for each in _CITATION.finditer(text) if "[" in text else ():
        named = references(each.group(), documents)
        known = any(reference.document in documents for reference in named)
        if named and (known or not _LINK.match(text, each.end())):
            found[each.start()] = each
    return found


def references(citation: str, documents: Collection[str]) -> tuple[Reference, ...]:
    """Parse `[Handbook: p. 12; 13-14]` as page 12 and pages 13 to 14 of `handbook`."""
    found: list[Reference] = []
    written = ""
    book = _COMMA.match(citation)
    if book and book[2].casefold() not in documents:
        return ()
    for piece in re.split("[,;]", _COMMA.sub(r"\1\2: ", citation).strip("[]")):
        parts = _REFERENCE.fullmatch(piece.strip())
        if not parts:
            continue
        written = parts[1] or written
        document = written.casefold()
        first, last = int(parts[2]), int(parts[3] or parts[2])
        text = piece.strip() if parts[1] else f"{written}:{piece.strip()}"
        if document in documents or not (document.isdigit() or document in _NO_LABELS):
            found.append(Reference(document, first, max(first, last), f"[{text}]"))
    return tuple(found)


def _count_continued(prose: str, following: Sequence[str], documents: Collection[str]) -> int:
    """Count the paragraphs that continue an open quote; return 0 unless it ends with a citation."""
    if not following or not _WORTH.search(prose):
        return 0
    seen = _mask_code(prose)
    _, loose = _find_straight(seen, 0)
    _, (mark, begin) = _find_paired(seen, 0)
    ends = [*(['"'] if loose is not None else []), *(_CLOSERS[mark] if begin is not None else [])]
    if not ends:
        return 0
    for count, paragraph in enumerate(following, start=1):
        if paragraph.lstrip().startswith((*ends, mark or '"')):
            return 0
        places = [at for at in (paragraph.find(each) for each in ends) if at >= 0]
        if places:
            at = _citation_start(paragraph, min(places) + 1)
            return count if at in _citations(paragraph, documents) else 0
    return 0


def _without_fences(lines: Sequence[str]) -> Iterator[str]:
    closing = _closing_fences(lines)
    fence = ""
    for nth, line in enumerate(lines):
        opened = None if fence else _LINE_FENCE.match(line)
        if opened and closing[nth + 1].get(opened[1][0], 0) >= len(opened[1]):
            fence = opened[1]
            yield ""
        elif fence:
            yield ""
            bare = line.strip()
            if bare.startswith(fence) and not bare.strip(fence[0]):
                fence = ""
        else:
            yield opened[2] if opened else line


def _closing_fences(lines: Sequence[str]) -> list[Mapping[str, int]]:
    longest: list[Mapping[str, int]] = [{}]
    for line in reversed(lines):
        bare = line.strip()
        sign = bare[:1]
        known = longest[-1]
        if sign in {"`", "~"} and not bare.strip(sign) and len(bare) > known.get(sign, 0):
            known = {**known, sign: len(bare)}
        longest.append(known)
    return longest[::-1]


def _blocks(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    quote: list[str] = []
    prose: list[str] = []
    closed = False
    for line in lines:
        quoted, blank = _QUOTED_LINE.match(line), not line.strip()
        ended = prose and (blank or quoted or _NEW_BLOCK.match(line))
        if ended or (quoted and (closed or (quoted[1] and quote))):
            yield "\n".join(quote), "\n".join(prose)
            quote, prose = [], []
        closed = blank
        if quoted:
            quote.append(line[quoted.end() :])
        elif not blank:
            prose.append(line)
    yield "\n".join(quote), "\n".join(prose)


def _find_straight(text: str, start: int) -> tuple[list[tuple[int, int]], int | None]:
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for mark in re.compile('"').finditer(text, start):
        at = mark.start()
        before, after = text[max(at - 1, 0) : at] or " ", text[at + 1 : at + 2] or " "
        if opened and not before.isspace() and not joins(after):
            spans.append((opened.pop(), at))
        elif not after.isspace() and not joins(before):
            opened.append(at + 1)
    return spans, opened[-1] if opened else None


def _find_paired(text: str, start: int) -> tuple[list[tuple[int, int]], tuple[str, int | None]]:
    spans: list[tuple[int, int]] = []
    opened: dict[str, list[int]] = {mark: [] for mark in _CLOSERS}

    def latest(marks: Iterable[str]) -> str:
        return max(marks, key=lambda mark: opened[mark][-1:], default="")

    for found in _MARK.finditer(text, start):
        at, sign = found.start(), found.group()
        closed = latest(mark for mark, closers in _CLOSERS.items() if sign in closers)
        if closed and opened[closed] and not _NESTED.match(text, at):
            spans.append((opened[closed].pop(), at))
        elif _OPENER.match(text, at):
            opened[sign].append(found.end())
    unclosed = latest(mark for mark, places in opened.items() if places)
    return spans, (unclosed, opened[unclosed][-1] if unclosed else None)


def _find_single(text: str, start: int, opens: str, closes: str) -> Iterator[tuple[int, int]]:
    marks = list(_marks(text, start, opens, closes))
    begin = None
    for nth, (at, closing) in enumerate(marks):
        if not closing:
            begin = at + 1
        elif begin is not None:
            later = marks[nth + 1][1] if nth + 1 < len(marks) else False
            if not (later and _POSSESSIVE.match(text, at - 1)):
                yield begin, at
                begin = None


def _marks(text: str, start: int, opens: str, closes: str) -> Iterator[tuple[int, bool]]:
    for found in re.compile(f"[{opens}{closes}]").finditer(text, start):
        at = found.start()
        before, after = text[at - 1 : at] if at > start else " ", text[at + 1 : at + 2] or " "
        if found.group() in closes and not before.isspace() and not joins(after):
            yield at, True
        elif found.group() in opens and not joins(before) and not after.isspace():
            yield from [] if _CLIPPED.match(text, at + 1) else [(at, False)]
