"""What a user brings to a debate besides the question: documents as evidence, and pictures."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from contend.debates.exports.labels import sentence
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

# The paths that were given, by seat; those of None are for all.
Given = Mapping[str | None, Sequence[Path]]
Brought = TypeVar("Brought", Document, Image)


@dataclass(frozen=True)
class Attachments:
    """Files that were read and found good; nothing is kept of them yet."""

    loaded: tuple[Loaded, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def documents(self) -> list[Document]:
        """The documents as the debate's state knows them."""
        return [each.document for each in self.loaded]

    @property
    def images(self) -> list[Image]:
        """The pictures as the debate's state knows them."""
        return [each.image for each in self.pictures]


NO_ATTACHMENTS = Attachments()


def read_attachments(
    documents: Sequence[Path],
    images: Sequence[Path],
    of_seats: Mapping[str, SeatFiles] | None = None,
) -> Attachments:
    """Read all files, or refuse them all; every one that is bad is named.

    A file that several bring is read and kept once; what one brings for all is for all.
    """
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
        tuple(replace(each, document=_of(each.document, docs, each.given)) for each in loaded),
        tuple(replace(each, image=_of(each.image, pictures, each.given)) for each in seen),
        tuple(notices),
    )


def _paths(given: Sequence[str]) -> list[Path]:
    """Paths of a settings file: as on the command line, from where the command runs."""
    return [Path(path).expanduser() for path in given]


def _all(given: Given) -> list[Path]:
    return [path for paths in given.values() for path in paths]


def _refuse_too_many(pictures: Given) -> None:
    own = max((len(paths) for seat, paths in pictures.items() if seat), default=0)
    most = len(pictures[None]) + own
    if most > MAX_IMAGES:
        raise BadInput(f"{most} images were given; the most is {MAX_IMAGES} for each seat.")


def _of(brought: Brought, given: Given, by: frozenset[Path]) -> Brought:
    """The same with the seats that brought it; with none when it was brought for all."""
    seats = [seat for seat, paths in given.items() if not by.isdisjoint(paths)]
    whose = tuple(seat for seat in seats if seat is not None) if None not in seats else ()
    return brought.model_copy(update={"seats": whose})


async def keep_attachments(
    attachments: Attachments,
    settings: DebateSettings,
    embedding_model: str,
    on_progress: Progress,
) -> str:
    """Keep the files by content and index the documents; gives what is to be said of the index.

    Without an index the documents are refused, and nothing new is kept of them.
    """
    notice = await _keep_documents(attachments, settings, embedding_model, on_progress)
    save_images(attachments.pictures, data_home())
    return notice


async def _keep_documents(
    attachments: Attachments,
    settings: DebateSettings,
    embedding_model: str,
    on_progress: Progress,
) -> str:
    if not attachments.loaded:
        return ""
    folder = data_home() / "documents" / corpus_id(attachments.documents)
    known = folder.exists()
    try:
        save_corpus(attachments.loaded, data_home())
        async with open_models():
            embedder = Embedder(embedding_model, settings)
            _, index = await open_passages(attachments.documents, embedder, on_progress)
    except BaseException as error:
        if not known:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, EmbeddingFailed):
            raise BadInput(
                f"The documents cannot be searched: {sentence(str(error))} Name another model with "
                "--set embedding_model=PROVIDER:NAME, or leave the documents out."
            ) from error
        raise
    return index.notice


def check_kept(documents: Sequence[Document], images: Sequence[Image]) -> None:
    """Refuse to go on with a debate whose evidence is gone."""
    if documents:
        load_corpus(tuple(documents), data_home())
    load_images(images, data_home())
