"""Embedding models, over HTTP and with the real built-in model."""

import math

import pytest

from contend.graph.settings import AdversarialSettings
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder, EmbeddingFailed, traits_of
from tests.support.model_server import ModelServer

SETTINGS = AdversarialSettings(idle_timeout=2)


@pytest.fixture(autouse=True)
def _models(server: ModelServer) -> None:
    server.models = ["nomic-embed-text", "text-embedding-3-small"]


async def test_nomic_gets_query_and_document_prefixes(server: ModelServer) -> None:
    embedder = Embedder("ollama:nomic-embed-text:latest", SETTINGS)
    server.models = ["nomic-embed-text:latest"]
    await embedder.queries(["why?"])
    await embedder.documents(["because"])
    assert server.embedded == ["search_query: why?", "search_document: because"]


async def test_openai_gets_the_text_unchanged(server: ModelServer) -> None:
    vectors = await Embedder("openai:text-embedding-3-small", SETTINGS).queries(["why?", "how?"])
    assert server.embedded == ["why?", "how?"]
    assert [math.isclose(float(v @ v), 1, rel_tol=1e-5) for v in vectors] == [True, True]


async def test_many_texts_are_sent_in_batches_with_progress(server: ModelServer) -> None:
    told: list[tuple[int, int]] = []
    texts = [f"text {number}" for number in range(150)]
    embedder = Embedder("openai:text-embedding-3-small", SETTINGS)
    vectors = await embedder.documents(texts, lambda done, total: told.append((done, total)))
    assert server.embedded == texts
    assert len(vectors) == 150
    assert told == [(0, 150), (64, 150), (128, 150), (150, 150)]


@pytest.mark.parametrize("text", ["many words " * 3000, "語" * 9000], ids=["words", "signs"])
async def test_a_long_text_is_sent_in_pieces_and_has_one_vector(
    text: str, server: ModelServer
) -> None:
    embedder = Embedder("ollama:nomic-embed-text", SETTINGS)
    vectors = await embedder.queries(["why?", text, "how?"])
    first, *pieces, last = (sent.removeprefix("search_query: ") for sent in server.embedded)
    assert (first, "".join(pieces), last) == ("why?", text, "how?")
    assert all(len(piece.encode()) <= 8000 for piece in pieces)
    assert all(piece.strip().startswith(("many", "words", "語")) for piece in pieces)
    alone = await embedder.queries(["why?", "how?"])
    assert len(vectors) == 3
    assert [float(vectors[0] @ alone[0]), float(vectors[2] @ alone[1])] == pytest.approx([1, 1])
    assert float(vectors[1] @ vectors[1]) == pytest.approx(1)


@pytest.mark.parametrize("spec", ["ollama:nomic-embed-text", "openai:text-embedding-3-small"])
async def test_a_failing_model_is_named_without_a_key(spec: str, server: ModelServer) -> None:
    server.embedding_error = 400
    with pytest.raises(EmbeddingFailed, match=f"{spec} returned no vectors: ") as failed:
        await Embedder(spec, SETTINGS).queries(["why?"])
    assert "sk-canary" not in str(failed.value)


async def test_reports_an_embedding_server_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:1")
    with pytest.raises(EmbeddingFailed, match="ollama:nomic-embed-text returned no vectors"):
        await Embedder("ollama:nomic-embed-text", SETTINGS).queries(["why?"])


async def test_refuses_zero_and_nan_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.support import scripted

    for vector in ([0.0, 0.0], [math.nan, 1.0]):
        monkeypatch.setattr(scripted, "bag_of_words", lambda _, vector=vector: vector)
        with pytest.raises(EmbeddingFailed, match="scripted:embed returned no vectors"):
            await Embedder("scripted:embed", SETTINGS).queries(["why?"])


async def test_reports_a_provider_without_embedding_models() -> None:
    with pytest.raises(EmbeddingFailed, match="'anthropic' has no embedding models"):
        await Embedder("anthropic:claude", SETTINGS).queries(["why?"])


async def test_the_embedded_model_must_be_pulled_first() -> None:
    with pytest.raises(EmbeddingFailed, match="contend models pull minilm-l6"):
        await Embedder(EMBEDDED_EMBEDDING, SETTINGS).queries(["why?"])
    with pytest.raises(EmbeddingFailed, match="not an embedding model: use embedded:minilm-l6"):
        await Embedder("embedded:smollm2-135m", SETTINGS).queries(["why?"])


@pytest.mark.parametrize(
    ("spec", "threshold"),
    [
        ("nomic-embed-text", 0.65),
        ("ollama:nomic-embed-text:v1.5", 0.65),
        ("openai:text-embedding-3-small", None),
        ("openai:nomic-embed-text", None),
    ],
)
def test_only_calibrated_models_have_a_threshold(spec: str, threshold: float | None) -> None:
    assert traits_of(spec).min_similarity == threshold


@pytest.mark.embedded
async def test_embedded_model_distinguishes_topics(embedding_model: str) -> None:
    embedder = Embedder(embedding_model, SETTINGS)
    asked, near, far = await embedder.queries(
        ["Why did sales fall?", "What made revenue drop?", "How do I bake bread?"]
    )
    assert asked.shape == (384,)
    assert float(asked @ near) > 0.5
    assert float(asked @ far) < 0.2


@pytest.mark.embedded
async def test_the_end_of_a_long_text_affects_its_vector(embedding_model: str) -> None:
    embedder = Embedder(embedding_model, SETTINGS)
    figures = "; ".join(f"{number}.{number}" for number in range(100, 200))
    asked, plain, ended = await embedder.documents(
        ["How do I bake bread?", figures, f"{figures}. How to bake bread: knead flour and water."]
    )
    assert float(asked @ ended) > float(asked @ plain) + 0.03


@pytest.mark.embedded
async def test_the_vector_of_a_text_does_not_depend_on_its_batch(embedding_model: str) -> None:
    embedder = Embedder(embedding_model, SETTINGS)
    (alone,) = await embedder.documents(["Why did sales fall?"])
    many = await embedder.documents(["word " * 200, "Why did sales fall?", "", "x"])
    assert float(alone @ many[1]) > 0.99
