"""The quality of the template search on labelled questions."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

import pytest

from contend.evals.items import read_own_lines
from contend.evals.templates import (
    LEAST_NOTHING,
    LEAST_RECALL,
    QUESTIONS,
    Asked,
    best_threshold,
    main,
    measure,
    search_all,
    table,
)
from contend.models.embeddings import traits_of
from contend.retrieval.template_search import Ranked, Ranking
from contend.retrieval.templates import plain_requests, shipped_templates
from tests.cli.support import ROOT

ROWS = [json.loads(line) for line in read_own_lines(QUESTIONS)]


def test_labels_name_known_templates_and_cover_all() -> None:
    known = {each.id for each in shipped_templates()}
    labels = [row["templates"] for row in ROWS]
    assert {name for names in labels for name in names} == known
    assert min(Counter(names[0] for names in labels if names).values()) >= 2
    assert sum(bool(names) for names in labels) >= 60
    assert sum(not names for names in labels) >= 120


def copied(lines: Iterable[str], questions: Iterable[str], cutoff: float) -> list[str]:
    low = [line.lower() for line in lines]
    return [each for each in questions if get_close_matches(each.lower(), low, 1, cutoff)]


def test_no_labelled_question_repeats_the_search_texts() -> None:
    lines = [line for each in shipped_templates() for line in each.use_when]
    asked_for = [row["question"] for row in ROWS if row["templates"]]
    plain = [row["question"] for row in ROWS if not row["templates"]]
    assert copied(lines, asked_for, 0.75) == []
    assert copied(plain_requests(), plain, 0.6) == []


def asked(question: str, wanted: str, *found: tuple[str, float]) -> Asked:
    any_one = shipped_templates()[0]
    ranked = [Ranked(any_one.model_copy(update={"id": name}), score) for name, score in found]
    ranking = Ranking(ranked, plain=not ranked)
    return Asked(question, (wanted,) if wanted else (), ranking)


def test_measures_recall_and_precision() -> None:
    questions = [
        asked("one", "a", ("a", 0.9), ("b", 0.8)),
        asked("two", "b", ("c", 0.9), ("d", 0.8), ("e", 0.7), ("b", 0.6)),
        asked("three", "", ("a", 0.3)),
        asked("four", ""),
    ]
    low, high = measure(questions, 0.2), measure(questions, 0.85)
    assert (low.recall, low.share_without_templates, low.precision) == (0.5, 0.5, 0.2)
    assert (high.recall, high.share_without_templates, high.precision) == (0.5, 1.0, 0.5)


@pytest.mark.embedded
async def test_search_quality_meets_the_minimum(embedding_model: str) -> None:
    threshold = traits_of(embedding_model).min_similarity
    assert threshold is not None
    found = await search_all(embedding_model)
    everything = measure(found, threshold)
    assert everything.recall >= LEAST_RECALL
    assert everything.share_without_templates >= LEAST_NOTHING
    # Give or take one question, as another processor rounds otherwise; so with the threshold.
    unseen = measure([each for each in found if not each.is_for_tuning], threshold)
    assert unseen.recall >= LEAST_RECALL - 1 / 80
    assert unseen.share_without_templates >= LEAST_NOTHING - 1 / 70
    assert abs(best_threshold(found) - threshold) <= 0.02
    page = (ROOT / "docs" / "retrieval.md").read_text("utf-8")
    assert _figures(page) == pytest.approx(_figures(table(embedding_model, found)), abs=0.03)


def _figures(page: str) -> list[float]:
    """Return the threshold and the numbers of the table below it."""
    found = re.search(r"`embedded:minilm-l6`, threshold (\S+):\n\n((?:\|.*\n?)+)", page)
    assert found is not None
    return [float(figure) for figure in re.findall(r"\b0\.\d\d\b", found[1] + found[2])]


def test_reports_a_missing_embedding_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "contend models pull minilm-l6" in capsys.readouterr().err
