"""Phase 0: the reasoning templates nearest to a question, or the honest news that none is."""

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
from contend.retrieval.index import VectorIndex, index_name, open_index
from contend.retrieval.open_once import Opened
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
# A longer text only resembles one in its words.
_MOST_PLAIN_WORDS = 15


@dataclass(frozen=True)
class Found:
    """The templates for a question, one sentence for whoever watches, and what went wrong."""

    templates: tuple[TemplateUse, ...]
    notice: str
    trouble: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ranked:
    """A template and how near the question is to it."""

    template: Template
    score: float


@dataclass(frozen=True)
class Rule:
    """Which templates are given."""

    least: float
    """The least score of a template that fits."""
    spread: float | None = None
    """How far behind the best one another may be."""
    none_if_plain: bool = True


@dataclass(frozen=True)
class Ranking:
    """Every template by its score, and whether the question is rather a plain request."""

    ranked: list[Ranked]
    plain: bool

    def chosen(self, most: int, rule: Rule) -> list[Ranked]:
        """Those to be given: near enough, and not far behind the best one."""
        if self.plain and rule.none_if_plain:
            return []
        behind = self.ranked[0].score - rule.spread if rule.spread is not None else rule.least
        return [each for each in self.ranked[:most] if each.score >= max(rule.least, behind)]


class Searcher:
    """The library with its index, for one embedding model."""

    def __init__(self, library: Library, index: VectorIndex, embedder: Embedder) -> None:
        self.library, self.index, self.embedder = library, index, embedder
        self._groups = [len(template.lines()) for template in library.templates]
        self._news = index.notice

    async def rank(self, question: str) -> Ranking:
        """Hold the question against every line of every template."""
        vector = (await self.embedder.queries([question]))[0]
        if self.index.fits(vector):
            return self._ranking(question, vector)
        fresh = await rebuild(self.embedder)
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

    def news(self) -> list[str]:
        """What a person should know of the index, once."""
        news, self._news = self._news, ""
        return [news] if news else []


def group_scores(similarities: Vectors, groups: Sequence[int]) -> list[float]:
    """The mean of each group's two nearest lines: one that is near by chance counts half."""
    import numpy as np

    sizes = np.array(groups)[:, None]
    places = np.arange(max(groups))
    lines = np.full((len(groups), len(places)), -np.inf, dtype=np.float32)
    lines[places < sizes] = similarities  # row by row, as the groups follow one another
    second, best = np.partition(lines, -2, axis=1)[:, -2:].T
    scores: list[float] = np.where(np.isinf(second), best, (best + second) / 2).tolist()
    return scores


_open: Opened[Searcher] = Opened(most=4)


def index_folder(home: Path, spec: str) -> Path:
    """Where the index of the templates lies for an embedding model."""
    return home / "index" / "templates" / index_name(spec)


async def open_searcher(
    embedder: Embedder, on_progress: Progress = lambda _done, _total: None
) -> Searcher:
    """The searcher of this process; made anew when a user's template has changed."""
    home = data_home()
    current = await asyncio.to_thread(fingerprint, home)

    async def make() -> Searcher:
        library, texts = await asyncio.to_thread(_texts, home)
        folder = index_folder(home, embedder.spec)
        index = await open_index(folder, embedder, texts, "templates", on_progress)
        return Searcher(library, index, embedder)

    return await _open.get((home, embedder.spec, current), make)


def _texts(home: Path) -> tuple[Library, dict[str, str]]:
    """The library, and its lines by key; plain requests stand behind all of them."""
    library = load_library(home)
    plain = {f"{_PLAIN}#{number}": line for number, line in enumerate(plain_requests())}
    return library, template_texts(library.templates) | plain


async def rebuild(
    embedder: Embedder, on_progress: Progress = lambda _done, _total: None
) -> Searcher:
    """Forget the index, on disk and in this process, and make it anew."""
    _open.clear()
    folder = index_folder(data_home(), embedder.spec)
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return await open_searcher(embedder, on_progress)


async def find_templates(question: str, settings: DebateSettings, embedding_model: str) -> Found:
    """The best templates for a question; a failing embedding model costs them, not the debate."""
    if not settings.templates:
        # Where a protocol uses none by itself, nobody has switched anything.
        usual = type(settings).model_fields["templates"].default
        return Found((), "Templates are switched off." if usual else "")
    embedder = Embedder(embedding_model, settings)
    try:
        searcher = await open_searcher(embedder)
        ranking = await searcher.rank(question)
    except EmbeddingFailed as failed:
        return Found((), "No reasoning templates: the embedding model failed.", (str(failed),))
    rule, notes = rule_of(embedder, settings)
    notes += searcher.news()
    if searcher.library.problems:
        notes.append("Some of your templates cannot be used: see `contend templates lint`.")
    uses = tuple(
        TemplateUse(
            id=each.template.id,
            title=each.template.title,
            text=each.template.body,
            score=round(each.score, 4),
        )
        for each in ranking.chosen(settings.top_k, rule)
    )
    return Found(uses, " ".join([_sentence(uses), *notes]))


async def alike(templates: Sequence[Template], embedder: Embedder) -> list[tuple[str, str, float]]:
    """Pairs of templates that are made for the same questions, with their similarity."""
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
    """The user's rule, which nothing else narrows, or the model's; and what to say of it."""
    if settings.min_similarity is not None:
        return Rule(settings.min_similarity, none_if_plain=False), []
    traits = embedder.traits
    if traits.min_similarity is None:
        return Rule(PUBLISHED_SIMILARITY), [
            f"{embedder.spec} has not been calibrated: {PUBLISHED_SIMILARITY} may select too much "
            "or nothing; set min_similarity to what fits it."
        ]
    told = f"The threshold of {embedder.spec}, {traits.min_similarity}, was not measured here."
    return Rule(traits.min_similarity, traits.spread), [] if traits.measured else [told]


def _sentence(uses: tuple[TemplateUse, ...]) -> str:
    if not uses:
        return "No reasoning template fits the question."
    names = ", ".join(f"{use.title} ({use.score:.2f})" for use in uses)
    return f"Reasoning templates: {names}."
