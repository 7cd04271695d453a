from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contend.graph.errors import BadInput
from contend.graph.settings import DebateSettings
from contend.models.failures import first_line
from contend.models.providers.registry import Options, open_embeddings, parse_spec
from contend.models.providers.weights import DEFAULT_EMBEDDING

if TYPE_CHECKING:
    import numpy as np

    Vectors = np.ndarray[Any, np.dtype[np.float32]]

EMBEDDED_EMBEDDING = f"embedded:{DEFAULT_EMBEDDING}"
# The similarity threshold published for the model that the protocol was designed with.
PUBLISHED_SIMILARITY = 0.65
# Servers accept large batches; for local models, small batches allow progress reports and stopping.
_BATCH, _SMALL_BATCH = 64, 16
# Bytes per text: OpenAI refuses more than 8,191 tokens, Ollama truncates silently.
_LONGEST = 8000

Progress = Callable[[int, int], None]


class EmbeddingFailed(RuntimeError):
    pass


@dataclass(frozen=True)
class Traits:
    query_prefix: str = ""
    document_prefix: str = ""
    min_similarity: float | None = None  # the lowest score of a fitting template; None if unknown
    measured: bool = True  # whether we measured that score
    spread: float | None = None  # how far below the best score another template may be


# Scores are not comparable between models; measured by `python -m contend.evals.templates`.
_TRAITS = {
    EMBEDDED_EMBEDDING: Traits(min_similarity=0.24, spread=0.08),
    "ollama:nomic-embed-text": Traits(
        "search_query: ", "search_document: ", min_similarity=PUBLISHED_SIMILARITY, measured=False
    ),
}


def traits_of(spec: str) -> Traits:
    provider, _, name = str(parse_spec(spec)).partition(":")
    return _TRAITS.get(f"{provider}:{name.partition(':')[0]}", Traits())


def warm_up(spec: str) -> None:
    """Load a built-in embedding model in the background, because loading takes a second."""
    parsed = parse_spec(spec)
    if parsed.provider == "embedded":
        from contend.models.providers import minilm

        threading.Thread(target=minilm.preload, args=(parsed.name,), daemon=True).start()


class Embedder:
    """An embedding model that returns unit vectors."""

    def __init__(self, spec: str, settings: DebateSettings) -> None:
        self.spec = str(parse_spec(spec))
        self.traits = traits_of(self.spec)
        self.pinned = self.spec.startswith("embedded:")
        """Whether the model's name always stands for the same weights."""
        self._batch = _SMALL_BATCH if self.pinned else _BATCH
        self._options = Options(
            connect_timeout=settings.connect_timeout, total_timeout=settings.idle_timeout
        )

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(self.traits.query_prefix, texts)

    async def documents(
        self, texts: Sequence[str], on_progress: Progress = lambda _done, _total: None
    ) -> Vectors:
        return await self._embed(self.traits.document_prefix, texts, on_progress)

    async def _embed(
        self, prefix: str, texts: Sequence[str], on_progress: Progress = lambda _done, _total: None
    ) -> Vectors:
        # The built-in model itself splits long texts into windows.
        parts = [[text] if self.pinned else _split_text(text) for text in texts]
        pieces = [prefix + piece for each in parts for piece in each]
        vectors: list[Vectors] = []
        try:
            model = open_embeddings(parse_spec(self.spec), self._options)
            on_progress(0, len(pieces))
            for start in range(0, len(pieces), self._batch):
                batch = pieces[start : start + self._batch]
                vectors.append(_normalize(await model.aembed_documents(batch), len(batch)))
                on_progress(start + len(batch), len(pieces))
            return _average_pieces(vectors, parts)
        except BadInput as error:
            raise EmbeddingFailed(str(error)) from error
        except Exception as error:
            why = first_line(error) or type(error).__name__
            raise EmbeddingFailed(f"{self.spec} returned no vectors: {why}") from error


def _split_text(text: str) -> list[str]:
    if len(text.encode()) <= _LONGEST:
        return [text]
    middle = len(text) // 2
    cut = max(text.rfind(" ", 0, middle), 0) or middle
    return [*_split_text(text[:cut]), *_split_text(text[cut:])]


def _average_pieces(batches: list[Vectors], parts: Sequence[Sequence[str]]) -> Vectors:
    import numpy as np

    vectors: Vectors = np.concatenate(batches)
    if len(vectors) == len(parts):
        return vectors
    starts = np.cumsum([0, *(len(each) for each in parts[:-1])])
    return _normalize(np.add.reduceat(vectors, starts), len(parts))


def _normalize(found: Any, expected: int) -> Vectors:
    import numpy as np

    vectors = np.asarray(found, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != expected or not np.isfinite(vectors).all():
        raise ValueError("its vectors are incomplete or not numbers")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise ValueError("it returned a zero vector")
    unit: Vectors = vectors / lengths
    return unit
