"""Builds FAISS vector indexes, saves them without pickle, and verifies them when loading."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict

from contend.models.embeddings import Embedder, EmbeddingFailed, Progress
from contend.models.files import write_private_file

if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS

    from contend.models.embeddings import Vectors

Opened = TypeVar("Opened")

FORMAT = 2
MANIFEST = "manifest.json"
# With more vectors than this, exact search is too slow.
EXACT_UP_TO = 100_000
# In seconds: other processes may still use younger files.
_OLD = 3600.0
_LINKS, _BUILD_EFFORT, _SEARCH_EFFORT = 32, 80, 128
# Not 1, because servers round differently in each batch; another model's value is far lower.
_SAME_MODEL = 0.99
_MOST_OPEN = 4


class Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int
    model: str
    dimensions: int
    count: int
    vectors_sha256: str
    entries_sha256: str

    @property
    def vectors_name(self) -> str:
        return f"vectors-{self.vectors_sha256[:16]}.faiss"

    @property
    def entries_name(self) -> str:
        return f"entries-{self.entries_sha256[:16]}.jsonl"


@dataclass(frozen=True)
class Hit:
    key: str
    score: float  # similarity of topic, not agreement


@dataclass(frozen=True)
class VectorIndex:
    store: FAISS
    embedded: int  # number of texts newly embedded; the others were already known
    notice: str  # for the user; empty if there is no problem

    def fits(self, vector: Vectors) -> bool:
        return bool(self.store.index.d == len(vector))

    def check_fits(self, vector: Vectors, spec: str) -> None:
        if not self.fits(vector):
            raise EmbeddingFailed(f"{spec} returns vectors of different sizes")

    def search(
        self, vector: Vectors, limit: int, indexes: Sequence[int] | None = None
    ) -> list[Hit]:
        import faiss
        import numpy as np

        if indexes is None:
            limit = min(limit, len(self.store.index_to_docstore_id))
            near = self.store.similarity_search_with_score_by_vector(vector.tolist(), k=limit)
            return [Hit(str(document.id), float(score)) for document, score in near]
        if not indexes:
            return []
        index = self.store.index
        if isinstance(index, faiss.IndexHNSW):
            # Search exactly, because an approximate search may miss the few texts that are wanted.
            index = faiss.downcast_index(index.storage)
        wanted = faiss.IDSelectorBatch(np.asarray(indexes, dtype=np.int64))
        chosen = faiss.SearchParameters(sel=wanted)  # type: ignore[call-arg]
        limit = min(limit, len(indexes))
        (scores,), (found,) = index.search(vector[None], limit, params=chosen)
        keys = self.store.index_to_docstore_id
        return [Hit(keys[at], float(score)) for at, score in zip(found, scores, strict=True)]

    def similarities(self, vector: Vectors) -> Vectors:
        """Return each text's similarity to the vector, in index order. Requires an exact index."""
        import numpy as np

        count = len(self.store.index_to_docstore_id)
        scores, places = self.store.index.search(vector[None], count)
        in_order: Vectors = np.full(count, -1.0, dtype=np.float32)
        in_order[places[0]] = scores[0]
        return in_order


class SharedCache(Generic[Opened]):
    def __init__(self) -> None:
        self._opened: dict[Hashable, Opened] = {}
        # Kept per event loop, because a lock belongs to one loop.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Opened]]) -> Opened:
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(key, asyncio.Lock()):
            opened = self._opened.pop(key) if key in self._opened else await make()
            self._opened[key] = opened
            for oldest in [*self._opened][:-_MOST_OPEN]:
                self._opened.pop(oldest, None)
            return opened

    def forget(self, key: Hashable) -> None:
        self._opened.pop(key, None)

    def clear(self) -> None:
        self._opened.clear()


def index_name(spec: str) -> str:
    readable = "".join(char if char.isalnum() or char in "-." else "_" for char in spec)
    return f"{readable}-{hashlib.sha256(spec.encode()).hexdigest()[:8]}"


async def open_index(
    folder: Path,
    embedder: Embedder,
    texts: Mapping[str, str],
    what: str,
    on_progress: Progress = lambda _done, _total: None,
) -> VectorIndex:
    """Open the index for these texts, embedding only the texts that the index lacks."""
    wanted = {key: _digest(text.encode()) for key, text in texts.items()}
    index, entries, why = await asyncio.to_thread(_load, folder, embedder.spec)
    if not await _is_made_by(embedder, index, entries, wanted, texts):
        index, entries, why = None, {}, "made by another model of the same name"
    notice = f"The index of the {what} was {why} and has been rebuilt." if why else ""
    if index is not None and [*entries.items()] == [*wanted.items()]:
        return VectorIndex(await asyncio.to_thread(_store, index, texts), 0, notice)
    rows = index.reconstruct_n(0, index.ntotal) if entries else ()
    known = dict(zip(entries.values(), rows, strict=True))
    missing = [key for key, digest in wanted.items() if digest not in known]
    if missing:
        fresh = await embedder.documents([texts[key] for key in missing], on_progress)
        known |= {wanted[key]: row for key, row in zip(missing, fresh, strict=True)}
    index = await asyncio.to_thread(build, [known[digest] for digest in wanted.values()])
    try:
        await asyncio.to_thread(_save, folder, index, embedder.spec, wanted)
    except OSError as error:
        notice = f"Cannot save the index in {folder} ({error.strerror or error})."
    return VectorIndex(await asyncio.to_thread(_store, index, texts), len(missing), notice)


async def _is_made_by(
    embedder: Embedder,
    index: Any,
    entries: Mapping[str, str],
    wanted: Mapping[str, str],
    texts: Mapping[str, str],
) -> bool:
    """Return whether the model still produces the stored vectors."""
    keys = {digest: key for key, digest in wanted.items()}
    known = [(at, keys[digest]) for at, digest in enumerate(entries.values()) if digest in keys]
    if embedder.pinned or not known:
        return True
    at, key = known[0]
    row = index.reconstruct(at)
    (vector,) = await embedder.documents([texts[key]])
    return len(vector) == len(row) and float(vector @ row) > _SAME_MODEL


def build(rows: Any) -> Any:
    import faiss
    import numpy as np

    vectors = np.asarray(rows, dtype=np.float32)
    count, dimensions = vectors.shape
    if count <= EXACT_UP_TO:
        index: Any = faiss.IndexFlatIP(dimensions)
    else:
        index = faiss.IndexHNSWFlat(dimensions, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = _BUILD_EFFORT, _SEARCH_EFFORT
    index.add(vectors)
    return index


def _load(folder: Path, model: str) -> tuple[Any, dict[str, str], str]:
    import faiss
    import numpy as np

    damaged = None, dict[str, str](), "damaged"
    try:
        if not (folder / MANIFEST).is_file():
            # Ignore hidden files, which another process is still writing.
            stray = folder.is_dir() and any(file.name[0] != "." for file in folder.iterdir())
            return None, {}, "incomplete" if stray else ""
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        if (manifest.format, manifest.model) != (FORMAT, model):
            return None, {}, "made by another model or release"
        vectors = (folder / manifest.vectors_name).read_bytes()
        listed = (folder / manifest.entries_name).read_bytes()
        if (_digest(vectors), _digest(listed)) != (
            manifest.vectors_sha256,
            manifest.entries_sha256,
        ):
            return damaged
        entries = dict(map(json.loads, listed.decode().splitlines()))
        index = faiss.deserialize_index(np.frombuffer(vectors, dtype=np.uint8))
    except (OSError, ValueError, RuntimeError):
        return damaged
    size = index.ntotal, index.d, len(entries)
    if size != (manifest.count, manifest.dimensions, manifest.count):
        return damaged
    return index, entries, ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _store(index: Any, texts: Mapping[str, str]) -> FAISS:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package announces its end of life
        from langchain_community.docstore import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy
    from langchain_core.documents import Document

    documents = {key: Document(id=key, page_content=text) for key, text in texts.items()}
    return FAISS(
        embedding_function=_VectorsOnly(),
        index=index,
        docstore=InMemoryDocstore(documents),
        index_to_docstore_id=dict(enumerate(texts)),
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )


class _VectorsOnly(Embeddings):
    """A placeholder for the embedding object that the store requires but never uses."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


def _save(folder: Path, index: Any, model: str, entries: Mapping[str, str]) -> None:
    """Write the vectors and entries files, then the manifest that names them."""
    import faiss

    vectors = faiss.serialize_index(index).tobytes()
    listed = "".join(f"{json.dumps(pair)}\n" for pair in entries.items()).encode()
    manifest = Manifest(
        format=FORMAT,
        model=model,
        dimensions=index.d,
        count=index.ntotal,
        vectors_sha256=_digest(vectors),
        entries_sha256=_digest(listed),
    )
    write_private_file(folder / manifest.vectors_name, vectors)
    write_private_file(folder / manifest.entries_name, listed)
    write_private_file(folder / MANIFEST, manifest.model_dump_json(indent=2).encode())
    _tidy(folder, {MANIFEST, manifest.vectors_name, manifest.entries_name})


def _tidy(folder: Path, current: set[str]) -> None:
    for left in folder.iterdir():
        with contextlib.suppress(OSError):
            if left.name not in current and time.time() - left.stat().st_mtime > _OLD:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
