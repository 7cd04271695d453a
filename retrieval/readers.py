import csv
import html
import io
import logging
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from contend.graph.errors import BadInput
from contend.models.text import clean_piece
from contend.retrieval.digits import LOWERED, RAISED

KINDS = (".txt", ".md", ".markdown", ".pdf", ".html", ".htm", ".csv")

# Control characters that never occur in text; old logs contain the other ones.
_BINARY = re.compile(r"[\x00-\x06\x0e-\x19\x1c-\x1f]")
_LINE_END = re.compile(r"\r\n?")
_ODD_SPACE = re.compile(r"[\x0b\x0c\x85]")
_NUMBER = re.compile(r"[-+$€£]?\d[\d.,]*%?")
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "head", "header", "hr", "html", "li", "main", "nav", "ol", "option", "p", "pre",
    "section", "summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul",
})  # fmt: skip
_MARKUP = re.compile("<(?:(!--)|[!?]|/?([a-zA-Z][^\\s/<>]*))")
# Possessive and atomic, so that an unclosed tag does not cause backtracking.
_TAG_REST = re.compile(r"(?>=\s*(?:\"[^\"]*\"|'[^']*')|[^>])*+>")
_MOST_WASTED_CHARS = 30_000_000
_SCRIPTS = {
    "sup": (re.compile(r"[\d+−=()n-]+"), RAISED),
    "sub": (re.compile(r"[\d+−=()-]+"), LOWERED),
}

# Hints of another encoding: many accented letters in a row, or symbols inside words.
_CROWDED = re.compile("[¡-ÿ]{4,}")
_SIGN_IN_WORD = re.compile("[A-Za-zÀ-ÿ][¡-©ª¬®-³µ¶¸-º¼-¿×÷][A-Za-zÀ-ÿ]")
_WESTERN = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúüçªº", "ãáàâçéêíóôõúüªº", "àèéìíîòóùú", "åäöæøéü",
        "áðéíóúýþæö", "éëïóöüáèê", "äöõüåšž", "àçéèíïóòúü",
    )
)  # fmt: skip
_FEW_LETTERS = 0.02
_MOST_PAGES = 2000
_MOST_LETTERS = 0.95


@dataclass(frozen=True)
class Source:
    length: int  # number of pages or lines, including those without text
    parts: tuple[tuple[int, str], ...]
    paged: bool = False
    raw: tuple[tuple[int, str], ...] = ()  # the rows of a table as written, to find quotes


def shown(path: Path) -> str:
    return clean_piece(str(path))


def read(path: Path, data: bytes) -> Source:
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return _read_pdf(shown(path), data)
    text = _decode(shown(path), data)
    length = text.count("\n") + (not text.endswith("\n"))
    raw: list[tuple[int, str]] = []
    if suffix in {".html", ".htm"}:
        parts = _html_lines(shown(path), text)
    elif suffix == ".csv":
        parts, raw = _csv_rows(shown(path), text)
    else:
        parts = list(enumerate(text.split("\n"), start=1))
    if not any(part.strip() for _, part in parts):
        raise BadInput(f"{shown(path)} has no text.")
    return Source(length, tuple(parts), raw=tuple(raw))


def _tidy(text: str) -> str:
    return clean_piece(_ODD_SPACE.sub(" ", _LINE_END.sub("\n", text)))


def _decode(name: str, data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = _try_decode(data, "utf-16")
    else:
        text = _try_decode(data, "utf-8-sig")
        if text is None and not _BINARY.search(data.decode("latin-1")):
            text = _try_decode(data, "cp1252")
            if text is None or not _is_western(text):
                raise BadInput(f"{name} is not UTF-8: save it as UTF-8.")
    if text is None or _BINARY.search(text):
        raise BadInput(f"{name} is a binary file: give it as UTF-8 text or as a PDF.")
    return _tidy(text)


def _try_decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _is_western(text: str) -> bool:
    crowded = any(len(set(run)) > 2 for run in _CROWDED.findall(text))
    if crowded or _SIGN_IN_WORD.search(text):
        return False
    letters = sum(map(str.isalpha, text))
    accented = [letter for letter in text if letter > "\x7f" and letter.isalpha()]
    if len(accented) <= _FEW_LETTERS * letters:
        return True
    known = max(sum(letter in language for letter in accented) for language in _WESTERN)
    return known >= _MOST_LETTERS * len(accented)


def _read_pdf(name: str, data: bytes) -> Source:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it would print warnings
    damaged = f"{name} is not a readable PDF: export or download it again."
    if b"%%EOF" not in data[-2048:]:  # truncated; pypdf would read an older revision
        raise BadInput(damaged)
    try:
        found = PdfReader(io.BytesIO(data)).pages
        count = len(found)
        readable = found if count <= _MOST_PAGES else []
        pages = [_tidy(page.extract_text()).strip() for page in readable]
    except (DependencyError, FileNotDecryptedError) as error:
        raise BadInput(f"{name} is encrypted: save a copy without a password first.") from error
    except Exception as error:  # pypdf may raise anything
        raise BadInput(damaged) from error
    if count > _MOST_PAGES:
        limit = f"{count:,} pages, more than {_MOST_PAGES:,}"
        raise BadInput(f"{name} has {limit}: give only the relevant part.")
    parts = tuple((number, text) for number, text in enumerate(pages, start=1) if text)
    if not parts:
        raise BadInput(
            f"{name} is a PDF without text and may be scanned; run text recognition (OCR) first."
        )
    return Source(len(pages), parts, paged=True)


def _html_lines(name: str, text: str) -> list[tuple[int, str]]:
    page = _Html(text)
    if not page.read():
        raise BadInput(f"{name} is not readable HTML: save it as text or PDF.")
    lines = ((number, " ".join("".join(pieces).split())) for number, pieces in page.lines)
    return [(number, line) for number, line in lines if line]


class _Html:
    """Collects visible text from HTML. Unlike html.parser, stays fast on unclosed tags."""

    def __init__(self, text: str) -> None:
        self.lines: list[tuple[int, list[str]]] = []
        self._text = text
        self._at = 0
        self._number = 1
        self._broken = True
        self._script = ""
        self._wasted = 0

    def read(self) -> bool:
        look = 0
        while found := _MARKUP.search(self._text, look):
            end = self._end(found)
            if end < 0:
                self._wasted += len(self._text) - found.end()
                if not found[2] or self._wasted > _MOST_WASTED_CHARS:
                    return False
                look = found.end()
                continue
            self._data(found.start())
            look = self._skip(end) if not found[2] else self._tag(found, end)
        self._data(len(self._text))
        return True

    def _end(self, found: re.Match[str]) -> int:
        if found[2]:
            rest = _TAG_REST.match(self._text, found.end())
            return rest.end() if rest else -1
        sign = "-->" if found[1] else ">"
        at = self._text.find(sign, found.end() - 2 * bool(found[1]))
        return at + len(sign) if at >= 0 else -1

    def _tag(self, found: re.Match[str], end: int) -> int:
        name = found[2].lower()
        opens = not found.group().startswith("</")
        if opens and name in {"script", "style"}:
            closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._text, end)
            return self._skip(closing.start() if closing else len(self._text))
        if opens and name in {"td", "th"}:
            self._add(" ", 0)
        if name in _SCRIPTS:
            self._script = name if opens else ""
        self._broken = self._broken or name in _BLOCKS
        return self._skip(end)

    def _skip(self, end: int) -> int:
        self._number += self._text.count("\n", self._at, end)
        self._at = end
        return end

    def _data(self, end: int) -> None:
        if self._at == end:
            return
        first = self._number
        for number, line in enumerate(self._text[self._at : end].split("\n"), start=first):
            self._broken = self._broken or number > first
            self._add(self._visible_text(line), number)
        self._skip(end)

    def _visible_text(self, line: str) -> str:
        """Return a line's visible text, with superscripts and subscripts as Unicode characters."""
        text = html.unescape(line) if "&" in line else line
        pattern, signs = _SCRIPTS.get(self._script, (None, {}))
        return text.translate(signs) if pattern and pattern.fullmatch(text.strip()) else text

    def _add(self, piece: str, number: int) -> None:
        if not self._broken:
            self.lines[-1][1].append(piece)
        elif piece.strip():
            self.lines.append((number, [piece]))
            self._broken = False


def _csv_rows(name: str, text: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return the rows as `header: value; header: value`, and separately the rows as written."""
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text), skipinitialspace=True)
    lines = text.split("\n")
    rows: list[tuple[int, list[str]]] = []
    raw: list[tuple[int, str]] = []
    line = 1
    try:
        for row in reader:
            cells = [" ".join(cell.split()) for cell in row]
            if any(cells):
                rows.append((line, cells))
                raw.append((line, "\n".join(lines[line - 1 : reader.line_num])))
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadInput(f"{name} is not readable CSV ({error}): export it again.") from error
    header: list[str] = []
    if len(rows) > 1 and not any(_NUMBER.fullmatch(cell) for cell in rows[0][1]):
        header = rows.pop(0)[1]
    parts = []
    for line, cells in rows:
        pairs = zip_longest(header[: len(cells)], cells, fillvalue="")
        values = (f"{name}: {cell}" if name else cell for name, cell in pairs if cell)
        parts.append((line, "; ".join(values)))
    return parts, raw


def _delimiter(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text[:8192], delimiters=",;\t|").delimiter
    except csv.Error:
        return ","
