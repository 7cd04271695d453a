"""Compares search with bare FAISS, and measures the retrieve step and opening the library."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import (
    REPOSITORY,
    Result,
    data_home,
    environment,
    link_embedding_weights,
)

if TYPE_CHECKING:
    from contend.models.embeddings import Vectors
    from contend.retrieval.index import VectorIndex
    from contend.retrieval.templates import Template

STEP_LIMIT = 5.0
OPEN_LIMIT = 0.3
_DIMENSIONS = 768
_CENTRES = 4_000
# Length of the noise around a center of length one; vectors in a cluster have a cosine of 0.67.
_SPREAD = 0.7
_CHUNK = 50_000
_QUERIES = 200
_ROUNDS = 3
_NEAREST = 10
# With 9 lines per template and the plain requests, the first makes a thousand vectors.
_SMALL, _LARGE = 112, 1_000
_RUNS = 5
_MILLION = 1_000_000


def results() -> list[Result]:
    steps = [_step(_SMALL, STEP_LIMIT), _step(_LARGE)]
    return [*_searching(1_000)[0], *_searching(100_000)[0], *steps, *_opening()]


def million() -> list[Result]:
    import faiss

    vectors, queries = _clustered(_MILLION)
    _say("searching them exactly")
    search = partial(faiss.knn, xb=vectors, k=_NEAREST, metric=faiss.METRIC_INNER_PRODUCT)
    _, exact = search(queries)
    took = median(_timed(partial(search, query[None])) for query in queries[:5])
    rows, index = _searching(_MILLION, (vectors, queries))
    found = [{int(hit.key) for hit in index.search(query, _NEAREST)} for query in queries]
    kept = [len(got & set(best.tolist())) for got, best in zip(found, exact, strict=True)]
    recall = 100 * sum(kept) / (_NEAREST * len(queries))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    note = (
        f"{kept.count(0)} of {_QUERIES} queries find none of them; "
        f"exact search takes {took * 1000:.0f} ms; peak memory {peak:.1f} GB"
    )
    return [
        *rows,
        Result(f"recall@{_NEAREST} of {_MILLION:,} vectors", recall, unit="%", note=note),
    ]


def _clustered(count: int) -> tuple[Vectors, Vectors]:
    """Generate unit vectors around random centers, and queries near the centers."""
    _say(f"making {count:,} vectors")
    random = np.random.default_rng(count)
    centres = _unit(random.standard_normal((_CENTRES, _DIMENSIONS), dtype=np.float32))
    made = np.empty((count + _QUERIES, _DIMENSIONS), dtype=np.float32)
    for start in range(0, len(made), _CHUNK):
        rows = made[start : start + _CHUNK]
        random.standard_normal(dtype=np.float32, out=rows)
        rows *= _SPREAD / _DIMENSIONS**0.5
        rows += centres[random.integers(_CENTRES, size=len(rows))]
        _unit(rows)
    return made[:count], made[count:]


def _unit(rows: Vectors) -> Vectors:
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _searching(
    count: int, made: tuple[Vectors, Vectors] | None = None
) -> tuple[list[Result], VectorIndex]:
    from contend.retrieval import index as adapter

    vectors, queries = made or _clustered(count)
    _say(f"building an index of {count:,}")
    began = time.perf_counter()
    built = adapter.build(vectors)
    took = time.perf_counter() - began
    kind = type(built).__name__
    texts = {str(number): f"text {number}" for number in range(count)}
    _say(f"saving an index of {count:,}")
    with data_home() as folder:
        digests = {key: hashlib.sha256(text.encode()).hexdigest() for key, text in texts.items()}
        saved = _timed(lambda: adapter._save(folder, built, "bench:vectors", digests))
        size = sum(file.stat().st_size for file in folder.iterdir())
    index = adapter.VectorIndex(adapter._store(built, texts), 0, "")
    _say(f"searching an index of {count:,}")
    # Warm up both, and alternate the rounds, so that machine load affects both equally.
    ours, bare = [], []
    for _ in range(_ROUNDS):
        ours.append(_p50(queries, lambda query: index.search(query, _NEAREST)))
        bare.append(_p50(queries, lambda query: built.search(query[None], _NEAREST)))
    ratio = median(mine / yardstick for mine, yardstick in zip(ours, bare, strict=True))
    asked = f"the nearest {_NEAREST}; bare FAISS {median(bare):.2f} ms"
    name = f"{count:,} vectors"
    rows = [
        Result(f"search of {name}, p50", median(ours), unit="ms", note=asked),
        Result(f"search of {name} over bare FAISS", ratio, unit="x"),
        Result(f"build of {name}", took, unit="s", note=kind),
        Result(f"{name} on disk", size / 2**20, unit="MB", note=f"saved in {saved:.2f} s"),
    ]
    return rows, index


def _p50(queries: Vectors, search: Callable[[Vectors], object]) -> float:
    search(queries[0])
    return median(_timed(partial(search, query)) for query in queries) * 1000


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _step(templates: int, limit: float = math.inf) -> Result:
    with data_home() as home, environment(CONTEND_HOME=str(home)):
        _say(f"making a library of {templates:,} templates")
        lines = _write_templates(home, templates)
        took, vectors = asyncio.run(_find_all(templates))
    what = f"retrieve step beside the embedding call, {vectors:,} vectors, p50"
    return Result(what, took, limit, "ms", f"{templates:,} templates of {lines} lines")


def _write_templates(home: Path, count: int) -> int:
    from contend.retrieval.templates import shipped_templates, user_folder

    shipped = shipped_templates()
    lines = round(sum(len(each.use_when) for each in shipped) / len(shipped))
    folder = user_folder(home)
    folder.mkdir(parents=True)
    for number in range(count - len(shipped)):
        template = _template(number, lines, shipped[number % len(shipped)])
        (folder / f"{template.id}.md").write_text(template.as_file(), encoding="utf-8")
    return lines


def _template(number: int, lines: int, like: Template) -> Template:
    ways = tuple(
        f"Way {line} to ask for what template {number} is made for" for line in range(lines)
    )
    changed = {"id": f"bench-{number}", "title": f"Template {number}", "use_when": ways}
    return like.model_copy(update=changed)


async def _find_all(templates: int) -> tuple[float, int]:
    from contend.graph.settings import AdversarialSettings
    from contend.models.embeddings import Embedder
    from contend.retrieval.template_search import find_templates, open_searcher

    model = _register_vectors()
    settings = AdversarialSettings(min_similarity=-1)
    took: list[float] = []
    searcher = await open_searcher(Embedder("bench-vectors:any", settings))
    for number in range(_QUERIES + 1):
        before, began = model.spent, time.perf_counter()
        found = await find_templates(f"Question {number}?", settings, "bench-vectors:any")
        took.append(time.perf_counter() - began - (model.spent - before))
        if found.trouble:
            raise RuntimeError(f"the library could not be searched: {found.trouble[0]}")
    if len(searcher.library.templates) != templates:
        raise RuntimeError(f"the library has {len(searcher.library.templates)} templates")
    return median(took[1:]) * 1000, len(searcher.index.store.index_to_docstore_id)


def _register_vectors() -> Any:
    """Register an embedding model with precomputed vectors that measures its own time."""
    from langchain_core.embeddings import Embeddings

    from contend.models.providers.registry import Opened, Provider, register

    class Ready(Embeddings):
        def __init__(self) -> None:
            self.spent = 0.0
            self._rows, _ = _clustered(20_000)
            self._at = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self._at += len(texts)
            rows: list[list[float]] = self._rows[self._at - len(texts) : self._at].tolist()
            return rows

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            began = time.perf_counter()
            rows = self.embed_documents(texts)
            self.spent += time.perf_counter() - began
            return rows

    def closed(*_: Any) -> Any:
        raise RuntimeError("it only embeds")

    model = Ready()
    opened: Opened[Embeddings] = Opened(model)
    register("bench-vectors", Provider(closed, closed, open_embeddings=lambda *_: opened))
    return model


# Runs in a separate process. With an argument, all imports are done first.
_OPEN = """
import sys, time
began = time.perf_counter()
import asyncio, json
from contend.graph.settings import AdversarialSettings
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder
from contend.retrieval import index
from contend.retrieval import template_search
if sys.argv[1:]:
    index._store(index.build([[1.0]]), {})
imported = time.perf_counter()
embedder = Embedder(EMBEDDED_EMBEDDING, AdversarialSettings())
opened = asyncio.run(template_search.open_searcher(embedder))
ended = time.perf_counter()
print(json.dumps([ended - imported, ended - began, opened.index.embedded]))
"""


def _opening() -> list[Result]:
    """Measure opening the built-in library with a stored index, in a new process each time."""
    with data_home() as home, environment(CONTEND_HOME=str(home)):
        link_embedding_weights(home)
        _say("indexing the shipped library")
        _open_library()
        ready = [_open_library("imported") for _ in range(_RUNS)]
        whole = [_open_library() for _ in range(_RUNS)]
    if any(embedded for *_, embedded in (*ready, *whole)):
        raise RuntimeError("the index on disk was not used")
    lazy = median(first for first, *_ in whole)
    note = f"{lazy:.2f} s of it once the project's modules are there, not yet FAISS and its store"
    return [
        Result(
            "opening the shipped library",
            median(first for first, *_ in ready),
            OPEN_LIMIT,
            "s",
            "new process, index on disk, everything imported before",
        ),
        Result(
            "the same with its imports", median(all_ for _, all_, _ in whole), unit="s", note=note
        ),
    ]


def _open_library(*arguments: str) -> tuple[float, float, int]:
    """Return the seconds without and with imports, and the number of embedded texts."""
    command = [sys.executable, "-W", "ignore", "-c", _OPEN, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the library could not be opened: {done.stderr}")
    opening, whole, embedded = json.loads(done.stdout)
    return opening, whole, embedded


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what} ...", file=sys.stderr, flush=True)
