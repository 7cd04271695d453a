from __future__ import annotations

import contextlib
import os
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.providers.weights import EMBEDDINGS, is_pulled, weights_path

if TYPE_CHECKING:
    import numpy as np

# Texts of similar length share a batch, because padding also takes time.
_BATCH = 16
# About 2,000 words; the rest of a longer text is ignored.
_MOST_WINDOWS = 8


def open_minilm(name: str) -> Embeddings:
    files = EMBEDDINGS.get(name)
    if files is None:
        known = ", ".join(f"embedded:{each}" for each in EMBEDDINGS)
        raise BadInput(f"embedded:{name} is not an embedding model: use {known}.")
    if not all(is_pulled(file, data_home()) for file in files):
        raise BadInput(f"embedded:{name} is not downloaded yet: run `contend models pull {name}`.")
    model, vocabulary = (weights_path(file, data_home()) for file in files)
    return _load_once(model, vocabulary, files[0].context_tokens)


def preload(name: str) -> None:
    """Load the model early. Any error is raised later, when the model is used."""
    with contextlib.suppress(Exception):
        open_minilm(name).embed_query("warm")


class MiniLM(Embeddings):
    def __init__(self, model: Path, vocabulary: Path, longest: int) -> None:
        self._model, self._vocabulary, self._longest = model, vocabulary, longest
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None

    def _load(self) -> None:
        # Disables all telemetry; must be set before the import.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        # Slow to import, and most commands do not need it.
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # hide warnings about the machine
        self._tokenizer = Tokenizer.from_file(str(self._vocabulary))
        self._tokenizer.enable_truncation(self._longest)
        self._tokenizer.no_padding()
        self._session = onnxruntime.InferenceSession(
            self._model, options, providers=["CPUExecutionProvider"]
        )

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        windows = [(at, ids) for at, parts in enumerate(self._windows(texts)) for ids in parts]
        windows.sort(key=lambda window: len(window[1]))
        sums: list[Any] = [0.0] * len(texts)
        counts = [0] * len(texts)
        for start in range(0, len(windows), _BATCH):
            batch = windows[start : start + _BATCH]
            for (at, ids), summed in zip(batch, self._sums([ids for _, ids in batch]), strict=True):
                sums[at] = sums[at] + summed
                counts[at] += len(ids)
        return [(summed / count).tolist() for summed, count in zip(sums, counts, strict=True)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def _windows(self, texts: list[str]) -> list[list[list[int]]]:
        with self._lock:
            if self._session is None:
                self._load()
            encoded = self._tokenizer.encode_batch(texts)
        return [
            [part.ids for part in (each, *each.overflowing[: _MOST_WINDOWS - 1])]
            for each in encoded
        ]

    def _sums(self, windows: list[list[int]]) -> np.ndarray[Any, Any]:
        import numpy as np

        lengths = np.array([len(ids) for ids in windows])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids = np.zeros_like(mask)
        ids[mask == 1] = np.concatenate(windows)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, given)[0]
        summed: np.ndarray[Any, Any] = (states * mask[..., None]).sum(axis=1)
        return summed


_load_once = cache(MiniLM)
