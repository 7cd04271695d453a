"""Measures template search and its threshold: `python -m contend.evals.templates [SPEC]`."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from contend.evals.items import read_own_lines
from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder, EmbeddingFailed
from contend.models.providers.registry import open_models
from contend.retrieval.template_search import Ranking, Rule, open_searcher

# Written without looking at the templates. One half is for choosing the threshold and may be used
# to improve templates and plain requests; the other half is for the result.
QUESTIONS = "template_questions"
_TOP = 3
LEAST_RECALL, LEAST_NOTHING = 0.85, 0.9
_RECALL_TO_SPARE, _MARGIN = 0.02, 0.05
_THRESHOLDS = [step / 100 for step in range(90)]


@dataclass(frozen=True)
class Asked:
    question: str
    wanted: tuple[str, ...]
    ranking: Ranking
    spread: float | None = None

    @property
    def is_for_tuning(self) -> bool:
        return hashlib.sha256(self.question.encode()).digest()[0] % 2 == 0

    def given(self, threshold: float) -> list[str]:
        chosen = self.ranking.chosen(_TOP, Rule(threshold, self.spread))
        return [each.template.id for each in chosen]


@dataclass(frozen=True)
class Measured:
    threshold: float
    recall: float  # share of questions with a fitting template that get it, as one of three
    share_without_templates: float  # share of questions without a fitting template that get none
    precision: float  # share of the templates given that fit


def measure(asked: Sequence[Asked], threshold: float) -> Measured:
    fitting = [each for each in asked if each.wanted]
    plain = [each for each in asked if not each.wanted]
    given = [(each, name) for each in fitting for name in each.given(threshold)]
    right = sum(name in each.wanted for each, name in given)
    hit = sum(any(name in each.wanted for name in each.given(threshold)) for each in fitting)
    empty = sum(not each.given(threshold) for each in plain)
    return Measured(
        threshold, hit / len(fitting), empty / len(plain), right / len(given) if given else 0.0
    )


def best_threshold(asked: Sequence[Asked]) -> float:
    """Return the highest threshold with near-maximum recall, minus a safety margin."""
    half = [each for each in asked if each.is_for_tuning]
    measured = [measure(half, threshold) for threshold in _THRESHOLDS]
    most = max(each.recall for each in measured)
    strictest = max(each.threshold for each in measured if each.recall >= most - _RECALL_TO_SPARE)
    silent = min(
        each.threshold for each in measured if each.share_without_templates >= LEAST_NOTHING
    )
    return round(max(strictest - _MARGIN, silent), 2)


async def search_all(spec: str) -> list[Asked]:
    settings = AdversarialSettings(embedding_model=spec)
    async with open_models():
        searcher = await open_searcher(Embedder(spec, settings))
        spread = searcher.embedder.traits.spread
        asked = []
        for row in map(json.loads, read_own_lines(QUESTIONS)):
            ranking = await searcher.rank(row["question"])
            asked.append(Asked(row["question"], tuple(row["templates"]), ranking, spread))
        return asked


def table(spec: str, asked: Sequence[Asked]) -> str:
    chosen = best_threshold(asked)
    parts = {
        "half that chose": [each for each in asked if each.is_for_tuning],
        "other half": [each for each in asked if not each.is_for_tuning],
        "all": list(asked),
    }
    lines = [
        f"`{spec}`, threshold {chosen:.2f}:",
        "",
        "| questions | number | recall@3 | nothing for plain requests | precision |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, part in parts.items():
        found = measure(part, chosen)
        lines.append(
            f"| {name} | {len(part)} | {found.recall:.2f} | {found.share_without_templates:.2f} "
            f"| {found.precision:.2f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    spec = arguments[0] if arguments else EMBEDDED_EMBEDDING
    try:
        asked = asyncio.run(search_all(spec))
    except (BadInput, EmbeddingFailed) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{table(spec, asked)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
