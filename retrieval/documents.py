import hashlib
import json
import os
import re
import stat
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import Any

from contend.graph.errors import BadInput
from contend.graph.values import Document
from contend.models.files import regular_size, write_private_file
from contend.models.text import clean_piece
from contend.retrieval.readers import KINDS, Source, read, shown

MAX_FILE_BYTES = 50_000_000
MAX_TOTAL_BYTES = 200_000_000
MAX_FILES = 1000
PASSAGE_CHARS = 900
SPLITTER = "2"  # increase it whenever the same files would give different pages or passages

_ID_CHARS = 24
# Words so long that the splitter would split them character by character.
_OVERLONG = re.compile(rf"([^\s。]{{{PASSAGE_CHARS - 1},{PASSAGE_CHARS}}})")


@dataclass(frozen=True)
class DocumentPage:
    """A PDF page, or a passage of any other file; `number` is the page or first line number."""

    number: int
    text: str
    raw: str = ""  # the rows as written in the file, if it is a table; used only to find quotes


@dataclass(frozen=True)
class Passage:
    document: str
    page: int
    text: str

    @property
    def label(self) -> str:
        return f"{self.document}:{self.page}"

    @property
    def labelled(self) -> str:
        return f"[{self.label}]\n{self.text}"


@dataclass(frozen=True)
class Loaded:
    document: Document
    pages: tuple[DocumentPage, ...]
    passages: tuple[Passage, ...]
    given_paths: frozenset[Path] = frozenset()  # what the user gave: its path or folders above it


# Compared by identity, so that results for it can be cached.
@dataclass(frozen=True, eq=False)
class Corpus:
    pages: dict[str, tuple[DocumentPage, ...]]
    passages: tuple[Passage, ...]
    # The number of pages or lines in each document, including those without text.
    lengths: Mapping[str, int] = field(default_factory=dict)


def load_documents(paths: Sequence[Path]) -> tuple[list[Loaded], list[str]]:
    """Load files and folders; raise BadInput if any file is unreadable. Also return notices."""
    problems: list[str] = []
    skipped: Counter[str] = Counter()
    notices: list[str] = []
    loaded: dict[str, Loaded] = {}
    total = 0
    for file in _list_files(paths, problems, skipped):
        try:
            data = _read_content(file.path, MAX_TOTAL_BYTES - total)
            total += len(data)
            digest = hashlib.sha256(data).hexdigest()
            if twin := loaded.get(digest):
                notices.append(f"{file.name} has the same content as {twin.document.name}.")
                loaded[digest] = replace(twin, given_paths=twin.given_paths | file.given_paths)
            else:
                source = read(file.path, data)
                taken = {each.document.id for each in loaded.values()}
                loaded[digest] = _load(file, digest, source, taken)
                if source.paged and (empty := source.length - len(source.parts)):
                    notices.append(
                        f"{file.name}: {empty} of {source.length} pages have no text; if they are "
                        "scanned, run text recognition (OCR) first."
                    )
        except BadInput as error:
            problems.append(str(error))
    if problems:
        raise BadInput("\n".join(dict.fromkeys(problems)))
    notices[:0] = _skip_notices(skipped)
    return list(loaded.values()), notices


def _skip_notices(skipped: Counter[str]) -> list[str]:
    links = {kind: skipped.pop(kind, 0) for kind in (_LINKS_OUT, _BROKEN_LINKS)}
    notices = [f"Skipped {kind}: {count}." for kind, count in links.items() if count]
    if total := skipped.total():
        files = "1 file" if total == 1 else f"{total} files"
        notices.append(f"Skipped {files} of unsupported types: {', '.join(sorted(skipped))}.")
    return notices


@dataclass(frozen=True)
class _File:
    path: Path
    name: str
    given_paths: set[Path]


def _list_files(
    paths: Sequence[Path], problems: list[str], skipped: Counter[str]
) -> Iterable[_File]:
    files: dict[Path, _File] = {}
    for path in dict.fromkeys(paths):
        is_folder = stat.S_ISDIR(_mode(path))
        file = None
        for file in _walk_folder(path, problems, skipped) if is_folder else (path,):
            # Inside a folder use the relative path, because names may repeat.
            name = Path(path.absolute().name, file.relative_to(path)) if is_folder else file.name
            entry = _File(file, clean_piece(Path(name).as_posix()), set())
            files.setdefault(Path(os.path.realpath(file)), entry).given_paths.add(path)
            if len(files) > MAX_FILES:
                raise BadInput(
                    f"{shown(path)} exceeds the limit of {MAX_FILES} files: "
                    "give fewer files or a smaller folder."
                )
        if file is None:
            problems.append(f"{shown(path)} has no supported files: {_OFFER}.")
    return files.values()


_LINKS_OUT, _BROKEN_LINKS = "links that lead out of the folder", "broken links"
_OFFER = f"give files that end in {', '.join(KINDS[:-1])} or {KINDS[-1]}"


def _walk_folder(folder: Path, problems: list[str], skipped: Counter[str]) -> Iterator[Path]:
    inside = Path(os.path.realpath(folder))

    def unreadable(error: OSError) -> None:
        problems.append(_explain_unreadable(Path(error.filename), error))

    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(parent, name)
            suffix = path.suffix.lower()
            if not Path(os.path.realpath(path)).is_relative_to(inside):
                skipped[_LINKS_OUT] += 1
            elif suffix in KINDS and stat.S_ISREG(_mode(path)):
                yield path
            else:
                kind = _BROKEN_LINKS if suffix in KINDS else clean_piece(suffix)
                skipped[kind or "no suffix"] += 1


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except PermissionError:
        return stat.S_IFREG  # reading it then reports the error
    except OSError:
        return 0


def _read_content(path: Path, room: int) -> bytes:
    name = shown(path)
    try:
        size = regular_size(path)
        if path.suffix.lower() not in KINDS:
            raise BadInput(f"{name} is not a supported type: {_OFFER}.")
        if size > MAX_FILE_BYTES:
            limit = MAX_FILE_BYTES // 1_000_000
            raise BadInput(f"{name} is larger than {limit} MB: give only the relevant part.")
        if size > room:
            limit = MAX_TOTAL_BYTES // 1_000_000
            raise BadInput(
                f"{name} exceeds the limit of {limit} MB for all files together: give fewer files."
            )
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput(f"File not found: {name}.") from error
    except OSError as error:
        raise BadInput(_explain_unreadable(path, error)) from error
    if not data:
        raise BadInput(f"{name} is empty: give a file with text in it.")
    return data


def _explain_unreadable(path: Path, error: OSError) -> str:
    return f"Cannot read {shown(path)} ({error.strerror}): check its permissions."


def _load(file: _File, digest: str, source: Source, taken: set[str]) -> Loaded:
    short = _short_name(file.path.stem, taken)
    pages, passages = _split(short, source)
    document = Document(
        id=short, name=file.name, sha256=digest, pages=source.length, passages=len(passages)
    )
    return Loaded(document, pages, passages, frozenset(file.given_paths))


def _short_name(stem: str, taken: set[str]) -> str:
    letters = unicodedata.normalize("NFKD", stem.casefold()).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", letters).strip("-") or "doc"
    endings = ("" if number == 1 else f"-{number}" for number in count(1))
    names = (slug[: _ID_CHARS - len(ending)].strip("-") + ending for ending in endings)
    return next(name for name in names if name not in taken)


def _split(name: str, source: Source) -> tuple[tuple[DocumentPage, ...], tuple[Passage, ...]]:
    if source.paged:
        pages = [DocumentPage(number, text) for number, text in source.parts]
        chunks = [(page.number, text) for page in pages for _, text in _split_text(page.text)]
    else:
        whole = "\n".join(text for _, text in source.parts)
        begins = list(accumulate((len(text) + 1 for _, text in source.parts), initial=0))
        pieces = [
            (source.parts[bisect_right(begins, at) - 1][0], at, text)
            for at, text in _split_text(whole)
        ]
        chunks = [(line, text) for line, _, text in pieces]
        # A long line may begin several passages, but is listed as one place.
        places = {line: at for line, at, _ in reversed(pieces)}
        borders = sorted(places.items(), key=lambda place: place[1])
        spans = pairwise([*borders, (0, len(whole))])
        pages = [DocumentPage(line, whole[at:end].rstrip()) for (line, at), (_, end) in spans]
        pages = _add_rows(pages, source.raw)
    return tuple(pages), tuple(Passage(name, number, text) for number, text in chunks)


def _add_rows(pages: list[DocumentPage], rows: Sequence[tuple[int, str]]) -> list[DocumentPage]:
    if not rows:
        return pages
    numbers = [page.number for page in pages]
    raw: list[list[str]] = [[] for _ in pages]
    for line, row in rows:
        raw[max(bisect_right(numbers, line) - 1, 0)].append(row)
    return [replace(page, raw="\n".join(own)) for page, own in zip(pages, raw, strict=True)]


def _split_text(text: str) -> list[tuple[int, str]]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        separators=["\n\n", "\n", ". ", "。", " ", ""],
        keep_separator="end",
        chunk_size=PASSAGE_CHARS,
        chunk_overlap=0,
        add_start_index=True,
    )
    chunks: list[tuple[int, str]] = []
    begin = 0
    # Overlong words are at the odd indexes.
    for nth, stretch in enumerate(_OVERLONG.split(text)):
        if nth % 2:
            chunks.append((begin, stretch))
        else:
            chunks += [
                (begin + piece.metadata["start_index"], piece.page_content)
                for piece in splitter.create_documents([stretch])
                if piece.page_content.strip()
            ]
        begin += len(stretch)
    return chunks


def corpus_id(documents: Sequence[Document]) -> str:
    parts = sorted([document.sha256, document.id] for document in documents)
    return hashlib.sha256(json.dumps([SPLITTER, parts]).encode()).hexdigest()


def save_corpus(loaded: Sequence[Loaded], home: Path) -> None:
    if not loaded:
        return
    file = _corpus_file(corpus_id([one.document for one in loaded]), home)
    try:
        if _verified_body(file) is not None:
            return
        body = "".join(json.dumps(_as_record(one), ensure_ascii=False) + "\n" for one in loaded)
        digest = hashlib.sha256(body.encode()).hexdigest()
        write_private_file(file, f"{digest}\n{body}".encode())
    except OSError as error:
        raise BadInput(
            f"Cannot store the documents in {file.parent} ({error.strerror}): "
            "free some space, or set CONTEND_HOME to another folder."
        ) from error


def _corpus_file(name: str, home: Path) -> Path:
    return home / "documents" / name / "corpus.jsonl"


def _as_record(one: Loaded) -> dict[str, Any]:
    return {
        "id": one.document.id,
        "length": one.document.pages,
        "pages": [[page.number, page.text, page.raw] for page in one.pages],
        "passages": [[passage.page, passage.text] for passage in one.passages],
    }


def _verified_body(file: Path) -> bytes | None:
    with suppress(OSError):
        digest, _, body = file.read_bytes().partition(b"\n")
        if digest == hashlib.sha256(body).hexdigest().encode():
            return body
    return None


def load_corpus(documents: Sequence[Document], home: Path) -> Corpus:
    return _load_corpus(corpus_id(documents), home) if documents else Corpus({}, ())


@lru_cache(maxsize=4)
def _load_corpus(name: str, home: Path) -> Corpus:
    file = _corpus_file(name, home)
    body = _verified_body(file)
    if body is None:
        raise BadInput(
            f"The documents of this debate are missing or damaged ({file}): "
            "start a new debate with the files."
        )
    records = [json.loads(line) for line in body.decode().split("\n") if line]
    return Corpus(
        pages={one["id"]: tuple(DocumentPage(*page) for page in one["pages"]) for one in records},
        passages=tuple(Passage(one["id"], *cut) for one in records for cut in one["passages"]),
        lengths={one["id"]: one["length"] for one in records},
    )
