"""Template search: the nearest templates above the threshold, or the reason for none."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contend.graph.settings import AdversarialSettings
from contend.models import embeddings
from contend.retrieval import template_search
from contend.retrieval.template_search import (
    Ranked,
    Ranking,
    Rule,
    TemplateSearch,
    find_duplicates,
    find_templates,
)
from contend.retrieval.templates import (
    MAX_SIMILARITY,
    add_template,
    plain_requests,
    shipped_templates,
    user_folder,
)
from tests.retrieval.test_templates import template
from tests.support import scripted

ROOT_CAUSE = "Why have our delivery times doubled since spring?"


@pytest.fixture(autouse=True)
def _forget() -> None:
    template_search._open.clear()
    scripted.embedded.clear()


async def find(
    question: str = ROOT_CAUSE, spec: str = "scripted:embed", **changes: Any
) -> TemplateSearch:
    return await find_templates(question, AdversarialSettings(**changes), spec)


def ids(found: TemplateSearch) -> list[str]:
    return [use.id for use in found.templates]


async def test_returns_the_best_templates_first_up_to_top_k() -> None:
    found = await find(min_similarity=0.1)
    assert ids(found)[0] == "root-cause"
    assert len(found.templates) == 3
    scores = [use.score for use in found.templates]
    assert scores == sorted(scores, reverse=True)
    assert ids(await find(min_similarity=0.1, top_k=1)) == ["root-cause"]
    assert found.templates[0].text.startswith("## Steps")
    assert f"Find the cause of a change ({scores[0]:.2f})" in found.notice


async def test_threshold_is_the_users_or_else_the_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ids(await find(min_similarity=0.99)) == []
    assert (await find(min_similarity=0.99)).notice == "No reasoning template matches the question."
    traits = {"scripted:embed": embeddings.Traits(min_similarity=0.1)}
    monkeypatch.setattr(embeddings, "_TRAITS", traits)
    calibrated = await find()
    assert len(calibrated.templates) == 3
    assert "calibrated" not in calibrated.notice


async def test_reports_an_uncalibrated_model() -> None:
    found = await find()
    assert "scripted:embed is not calibrated: a threshold of 0.65" in found.notice
    assert found.trouble == ()


async def test_plain_requests_get_no_templates() -> None:
    for request in plain_requests()[:10]:
        assert ids(await find(request)) == []


async def test_a_threshold_set_by_the_user_overrides_all_other_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = {"scripted:embed": embeddings.Traits(min_similarity=0.1, spread=0.0)}
    monkeypatch.setattr(embeddings, "_TRAITS", narrow)
    assert len((await find()).templates) == 1
    for question in (ROOT_CAUSE, plain_requests()[0]):
        assert len((await find(question, min_similarity=-1, top_k=10)).templates) == 10


async def test_reports_an_unmeasured_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not embeddings.traits_of("ollama:nomic-embed-text").measured
    traits = {"scripted:embed": embeddings.Traits(min_similarity=0.6, measured=False)}
    monkeypatch.setattr(embeddings, "_TRAITS", traits)
    told = "The threshold of scripted:embed, 0.6, was not measured."
    assert told in (await find()).notice
    assert told not in (await find(min_similarity=0.6)).notice


def test_a_templates_score_is_the_mean_of_its_two_nearest_lines() -> None:
    lines = np.array([0.1, 0.9, 0.7, 0.0, 0.6, 0.5, 0.2, 0.4], dtype=np.float32)
    assert template_search.group_scores(lines, [2, 3, 1, 2]) == pytest.approx([0.5, 0.65, 0.5, 0.3])


async def test_reports_a_failing_embedding_model_and_returns_no_templates() -> None:
    found = await find(spec="scripted:broken")
    assert found.templates == ()
    assert found.trouble == ("scripted:broken returned no vectors: the embedding server is down",)
    assert "embedding model failed" in found.notice


async def test_makes_no_embedding_call_if_templates_are_off() -> None:
    assert (await find(templates=False)).notice == "Templates are off."
    assert scripted.embedded == []


async def test_the_library_is_embedded_once() -> None:
    await find()
    scripted.embedded.clear()
    await find("Another question?")
    assert scripted.embedded == ["Another question?"]


async def test_a_users_template_is_found_as_soon_as_it_is_there(tmp_path: Path) -> None:
    await find()
    add_template(template(), tmp_path / "home")
    scripted.embedded.clear()
    found = await find("Which tea goes with lemon cake?", min_similarity=0.1)
    assert ids(found)[0] == "tea-choice"
    assert len(scripted.embedded) == len(template().lines()) + 2  # the sample, the query


async def test_reports_a_broken_user_template_and_uses_the_others(tmp_path: Path) -> None:
    folder = user_folder(tmp_path / "home")
    folder.mkdir(parents=True)
    (folder / "broken.md").write_text("no template")
    found = await find(min_similarity=0.1)
    assert ids(found)[0] == "root-cause"
    assert "contend templates lint" in found.notice


@pytest.mark.embedded
async def test_no_two_shipped_templates_are_duplicates(embedding_model: str) -> None:
    embedder = embeddings.Embedder(embedding_model, AdversarialSettings())
    assert await find_duplicates(shipped_templates(), embedder) == []
    first = shipped_templates()[0]
    twin = first.model_copy(update={"id": "twin"})
    ((one, other, score),) = await find_duplicates([first, twin], embedder)
    assert (one, other) == ("twin", first.id)
    assert score > MAX_SIMILARITY


async def test_builds_a_new_index_if_the_model_changed_under_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await find(min_similarity=0.1)
    wide = scripted.bag_of_words
    monkeypatch.setattr(scripted, "bag_of_words", lambda text: wide(text, 256))
    found = await find(min_similarity=0.1)
    assert ids(found)[0] == "root-cause"
    assert found.trouble == ()


async def test_reports_vectors_of_different_sizes_and_returns_no_templates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide, asked = scripted.bag_of_words, "Why did it double?"
    monkeypatch.setattr(
        scripted, "bag_of_words", lambda text: wide(text, 64 if text == asked else 512)
    )
    found = await find(asked)
    assert found.templates == ()
    assert found.trouble == ("scripted:embed returns vectors of different sizes",)


async def test_parallel_debates_embed_the_library_once() -> None:
    await asyncio.gather(*(find() for _ in range(4)))
    lines = [line for each in shipped_templates() for line in each.lines()]
    assert scripted.embedded.count(lines[0]) == 1


async def test_reports_a_rebuilt_index_once(tmp_path: Path) -> None:
    await find()
    (manifest,) = (tmp_path / "home").glob("index/templates/*/manifest.json")
    manifest.write_text("{")
    template_search._open.clear()
    first, second = await find(), await find()
    assert "has been rebuilt" in first.notice
    assert "has been rebuilt" not in second.notice


@pytest.mark.parametrize(
    ("spread", "given"), [(None, [0.5, 0.45, 0.3]), (0.1, [0.5, 0.45]), (0.0, [0.5])]
)
def test_leaves_out_templates_far_below_the_best(spread: float | None, given: list[float]) -> None:
    ranking = Ranking([Ranked(template(), score) for score in (0.5, 0.45, 0.3, 0.2)], plain=False)
    assert [each.score for each in ranking.chosen(4, Rule(0.25, spread))] == given
    assert Ranking(ranking.ranked, plain=True).chosen(4, Rule(0.25, spread)) == []
