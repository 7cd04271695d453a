import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from contend.debates.exports.wording import sentence
from contend.graph.errors import BadInput
from contend.graph.settings import DebateSettings, SeatFiles, data_home
from contend.graph.values import Document, Image
from contend.models.embeddings import Embedder, EmbeddingFailed, Progress
from contend.models.providers.registry import open_models
from contend.retrieval.documents import (
    Loaded,
    corpus_id,
    load_corpus,
    load_documents,
    save_corpus,
)
from contend.retrieval.images import MAX_IMAGES, Picture, load_images, read_images, save_images
from contend.retrieval.passages import open_passages

# Paths by seat; the key None stands for all seats.
Given = Mapping[str | None, Sequence[Path]]
Attachment = TypeVar("Attachment", Document, Image)


@dataclass(frozen=True)
class Attachments:
    loaded: tuple[Loaded, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def documents(self) -> list[Document]:
        return [each.document for each in self.loaded]

    @property
    def images(self) -> list[Image]:
        return [each.image for each in self.pictures]


def read_attachments(
    documents: Sequence[Path],
    images: Sequence[Path],
    of_seats: Mapping[str, SeatFiles] | None = None,
) -> Attachments:
    """Read all files; raise BadInput listing every invalid file."""
    own = (of_seats or {}).items()
    docs: Given = {None: documents} | {seat: _paths(files.docs) for seat, files in own}
    pictures: Given = {None: images} | {seat: _paths(files.images) for seat, files in own}
    problems: list[str] = []
    loaded: list[Loaded] = []
    notices: list[str] = []
    seen: list[Picture] = []
    try:
        if any(docs.values()):
            loaded, notices = load_documents(_all(docs))
    except BadInput as error:
        problems.append(str(error))
    try:
        _refuse_too_many(pictures)
        seen = read_images(_all(pictures))
    except BadInput as error:
        problems.append(str(error))
    if problems:
        raise BadInput("\n".join(problems))
    return Attachments(
        tuple(
            replace(each, document=_with_seats(each.document, docs, each.given_paths))
            for each in loaded
        ),
        tuple(
            replace(each, image=_with_seats(each.image, pictures, each.given_paths))
            for each in seen
        ),
        tuple(notices),
    )


def _paths(given: Sequence[str]) -> list[Path]:
    return [Path(path).expanduser() for path in given]


def _all(given: Given) -> list[Path]:
    return [path for paths in given.values() for path in paths]


def _refuse_too_many(pictures: Given) -> None:
    own = max((len(paths) for seat, paths in pictures.items() if seat), default=0)
    most = len(pictures[None]) + own
    if most > MAX_IMAGES:
        raise BadInput(f"{most} images were given; the limit is {MAX_IMAGES} per seat.")


def _with_seats(attachment: Attachment, given: Given, by: frozenset[Path]) -> Attachment:
    seats = [seat for seat, paths in given.items() if not by.isdisjoint(paths)]
    whose = tuple(seat for seat in seats if seat is not None) if None not in seats else ()
    return attachment.model_copy(update={"seats": whose})


async def store_attachments(
    attachments: Attachments,
    settings: DebateSettings,
    embedding_model: str,
    on_progress: Progress,
) -> str:
    notice = ""
    if attachments.loaded:
        embedder = Embedder(embedding_model, settings)
        notice = await _store_documents(attachments, embedder, on_progress)
    await asyncio.to_thread(save_images, attachments.pictures, data_home())
    return notice


async def _store_documents(
    attachments: Attachments, embedder: Embedder, on_progress: Progress
) -> str:
    folder = data_home() / "documents" / corpus_id(attachments.documents)
    known = folder.exists()
    try:
        await asyncio.to_thread(save_corpus, attachments.loaded, data_home())
        async with open_models():
            _, index = await open_passages(attachments.documents, embedder, on_progress)
    except BaseException as error:
        if not known:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, EmbeddingFailed):
            raise BadInput(
                f"The documents cannot be searched: {sentence(str(error))} Choose another model "
                "with --set embedding_model=PROVIDER:NAME, or leave the documents out."
            ) from error
        raise
    return index.notice


def check_stored_files(documents: Sequence[Document], images: Sequence[Image]) -> None:
    if documents:
        load_corpus(tuple(documents), data_home())
    load_images(images, data_home())
