import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contend.graph.settings import data_home
from contend.graph.values import Document
from contend.models.embeddings import Embedder, Progress
from contend.retrieval.documents import Corpus, Passage, corpus_id, load_corpus
from contend.retrieval.index import SharedCache, VectorIndex, index_name, open_index

_open: SharedCache[VectorIndex] = SharedCache()


def _folder(documents: Sequence[Document], spec: str) -> Path:
    return data_home() / "index" / "documents" / corpus_id(documents) / index_name(spec)


async def open_passages(
    documents: Sequence[Document],
    embedder: Embedder,
    on_progress: Progress = lambda _done, _total: None,
) -> tuple[Corpus, VectorIndex]:
    corpus = await asyncio.to_thread(load_corpus, tuple(documents), data_home())
    folder = _folder(documents, embedder.spec)

    async def make() -> VectorIndex:
        texts = {str(number): each.text for number, each in enumerate(corpus.passages)}
        return await open_index(folder, embedder, texts, "documents", on_progress)

    return corpus, await _open.get(folder, make)


@dataclass(frozen=True)
class DocumentAccess:
    documents: tuple[Document, ...]
    shown: tuple[Document, ...]

    def passage_indexes(self, corpus: Corpus) -> list[int] | None:
        """Return the indexes of the passages that may be shown; None means all."""
        if len(self.shown) == len(self.documents):
            return None
        ids = {document.id for document in self.shown}
        return [at for at, passage in enumerate(corpus.passages) if passage.document in ids]


async def find_passages(
    access: DocumentAccess, about: Sequence[str], embedder: Embedder, limit: int
) -> tuple[Passage, ...]:
    """Return the nearest passages: first each text's best match, then each text's second best."""
    if not access.shown:
        return ()
    documents = access.documents
    vectors = await embedder.queries(about)
    corpus, index = await open_passages(documents, embedder)
    if not index.fits(vectors[0]):
        _open.forget(_folder(documents, embedder.spec))
        corpus, index = await open_passages(documents, embedder)
        index.check_fits(vectors[0], embedder.spec)
    indexes = access.passage_indexes(corpus)
    best: dict[str, tuple[int, float]] = {}
    for vector in vectors:
        hits = await asyncio.to_thread(index.search, vector, limit, indexes)
        for rank, hit in enumerate(hits):
            place = (rank, -hit.score)
            best[hit.key] = min(place, best.get(hit.key, place))
    nearest = sorted(best, key=lambda key: best[key])[:limit]
    return tuple(corpus.passages[int(key)] for key in nearest)
