from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contend.graph.settings import DebateSettings, data_home
from contend.graph.values import TemplateUse
from contend.models.embeddings import PUBLISHED_SIMILARITY, Embedder, EmbeddingFailed, Progress
from contend.retrieval.index import SharedCache, VectorIndex, index_name, open_index
from contend.retrieval.templates import (
    MAX_SIMILARITY,
    Library,
    Template,
    fingerprint,
    load_library,
    plain_requests,
    template_texts,
)

if TYPE_CHECKING:
    from contend.models.embeddings import Vectors

_PLAIN = "plain request"
# Longer questions are never plain requests.
_MOST_PLAIN_WORDS = 15


@dataclass(frozen=True)
class TemplateSearch:
    templates: tuple[TemplateUse, ...]
    notice: str
    trouble: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ranked:
    template: Template
    score: float


@dataclass(frozen=True)
class Rule:
    least: float
    spread: float | None = None  # how far below the best score another template may be
    none_if_plain: bool = True


@dataclass(frozen=True)
class Ranking:
    ranked: list[Ranked]
    plain: bool

    def chosen(self, most: int, rule: Rule) -> list[Ranked]:
        if self.plain and rule.none_if_plain:
            return []
        near = self.ranked[0].score - rule.spread if rule.spread is not None else rule.least
        return [each for each in self.ranked[:most] if each.score >= max(rule.least, near)]


class Searcher:
    def __init__(self, library: Library, index: VectorIndex, embedder: Embedder) -> None:
        self.library, self.index, self.embedder = library, index, embedder
        self._groups = [len(template.lines()) for template in library.templates]
        self._notice = index.notice

    async def rank(self, question: str) -> Ranking:
        vector = (await self.embedder.queries([question]))[0]
        if self.index.fits(vector):
            return self._ranking(question, vector)
        fresh = await rebuild_index(self.embedder)
        fresh.index.check_fits(vector, self.embedder.spec)
        return fresh._ranking(question, vector)

    def _ranking(self, question: str, vector: Vectors) -> Ranking:
        similarities = self.index.similarities(vector)
        plain = len(similarities) - sum(self._groups)
        *scores, of_plain = group_scores(similarities, [*self._groups, plain])
        ranked = list(map(Ranked, self.library.templates, scores))
        ranked.sort(key=lambda each: each.score, reverse=True)
        short = len(question.split()) <= _MOST_PLAIN_WORDS
        return Ranking(ranked, plain=short and of_plain > ranked[0].score)

    def take_notices(self) -> list[str]:
        notice, self._notice = self._notice, ""
        return [notice] if notice else []


def group_scores(similarities: Vectors, groups: Sequence[int]) -> list[float]:
    """Score each group by the mean similarity of its two best lines, or of its only line."""
    import numpy as np

    sizes = np.array(groups)[:, None]
    places = np.arange(max(groups))
    lines = np.full((len(groups), len(places)), -np.inf, dtype=np.float32)
    lines[places < sizes] = similarities
    second, best = np.partition(lines, -2, axis=1)[:, -2:].T
    scores: list[float] = np.where(np.isinf(second), best, (best + second) / 2).tolist()
    return scores


_open: SharedCache[Searcher] = SharedCache()


def index_folder(home: Path, spec: str) -> Path:
    return home / "index" / "templates" / index_name(spec)


async def open_searcher(
    embedder: Embedder, on_progress: Progress = lambda _done, _total: None
) -> Searcher:
    home = data_home()
    current = await asyncio.to_thread(fingerprint, home)

    async def make() -> Searcher:
        library = await asyncio.to_thread(load_library, home)
        plain = {f"{_PLAIN}#{number}": line for number, line in enumerate(plain_requests())}
        texts = template_texts(library.templates) | plain
        folder = index_folder(home, embedder.spec)
        index = await open_index(folder, embedder, texts, "templates", on_progress)
        return Searcher(library, index, embedder)

    return await _open.get((home, embedder.spec, current), make)


async def rebuild_index(
    embedder: Embedder, on_progress: Progress = lambda _done, _total: None
) -> Searcher:
    _open.clear()
    folder = index_folder(data_home(), embedder.spec)
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return await open_searcher(embedder, on_progress)


async def find_templates(
    question: str, settings: DebateSettings, embedding_model: str
) -> TemplateSearch:
    if not settings.templates:
        # Give no notice if templates are off by default.
        usual = type(settings).model_fields["templates"].default
        return TemplateSearch((), "Templates are off." if usual else "")
    embedder = Embedder(embedding_model, settings)
    try:
        searcher = await open_searcher(embedder)
        ranking = await searcher.rank(question)
    except EmbeddingFailed as failed:
        return TemplateSearch(
            (), "The embedding model failed; the debate runs without templates.", (str(failed),)
        )
    rule, notes = rule_of(embedder, settings)
    notes += searcher.take_notices()
    if searcher.library.problems:
        notes.append("Some of your templates are invalid: run `contend templates lint`.")
    uses = tuple(
        TemplateUse(
            id=each.template.id,
            title=each.template.title,
            text=each.template.body,
            score=round(each.score, 4),
        )
        for each in ranking.chosen(settings.top_k, rule)
    )
    names = ", ".join(f"{use.title} ({use.score:.2f})" for use in uses)
    found = (
        f"Reasoning templates: {names}." if uses else "No reasoning template matches the question."
    )
    return TemplateSearch(uses, " ".join([found, *notes]))


async def find_duplicates(
    templates: Sequence[Template], embedder: Embedder
) -> list[tuple[str, str, float]]:
    texts = [" ".join((template.title, *template.use_when)) for template in templates]
    vectors = await embedder.documents(texts)
    found = []
    for number, template in enumerate(templates):
        for other in range(number):
            score = float(vectors[number] @ vectors[other])
            if score > MAX_SIMILARITY:
                found.append((template.id, templates[other].id, score))
    return found


def rule_of(embedder: Embedder, settings: DebateSettings) -> tuple[Rule, list[str]]:
    if settings.min_similarity is not None:
        return Rule(settings.min_similarity, none_if_plain=False), []
    traits = embedder.traits
    if traits.min_similarity is None:
        return Rule(PUBLISHED_SIMILARITY), [
            f"{embedder.spec} is not calibrated: a threshold of {PUBLISHED_SIMILARITY} may select "
            "too many templates or none; set min_similarity."
        ]
    note = f"The threshold of {embedder.spec}, {traits.min_similarity}, was not measured."
    return Rule(traits.min_similarity, traits.spread), [] if traits.measured else [note]
