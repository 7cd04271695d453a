"""`contend templates`, with the real embedded model where needed."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import ASK, Command, debaters
from tests.retrieval.test_templates import GOOD
from tests.support.model_server import ModelServer, Reply, Request, always

pytestmark = pytest.mark.usefixtures("embedding_model")

LEARNT: dict[str, Any] = {
    "title": "Split or keep a shared system",
    "kind": "System Design",
    "use_when": ["A team asks whether to divide what it shares.", "One kitchen or two?", "Why?"],
    "tags": ["boundaries", "teams"],
    "steps": [f"Step {number} with what it yields." for number in range(1, 5)],
    "checks": ["Is the cost estimated?", "Can it be undone?"],
    "typical_errors": ["Copying a larger team.", "Forgetting who is on call."],
}


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    path = tmp_path / "tea.md"
    path.write_text(GOOD)
    return path


@pytest.mark.embedded
def test_search_returns_scores_from_the_embedded_model(contend: Command) -> None:
    shutil.rmtree(contend.home / "index")
    ended = contend("templates", "search", "why did revenue drop after the redesign")
    assert ended.code == 0
    head, first, *_ = ended.out.splitlines()
    assert head.split() == ["Score", "Used", "ID", "Title"]
    score, used, name, *_ = first.split()
    assert (used, name) == ("yes", "root-cause")
    assert float(score) > 0.24
    assert "would be used (at most 3, scoring 0.24 or more and close to the best)" in ended.err
    # The runtime of the embedding model would report home, and keep an id for that, if let.
    assert not (contend.home.parent / ".cache").exists()
    found = contend.here("templates", "search", "Good morning!", "--json").json
    assert found["plain"]
    assert not any(each["used"] for each in found["templates"])


@pytest.mark.embedded
def test_user_template_can_be_added_found_and_removed(contend: Command, tea: Path) -> None:
    added = contend.here("templates", "add", str(tea))
    assert added.code == 0
    assert "Added tea-choice" in added.err
    found = contend.here("templates", "search", "green tea with cake?", "--json").json
    assert found["templates"][0] | {"score": 0} == {
        "id": "tea-choice",
        "title": "Choose a tea",
        "score": 0,
        "used": True,
    }
    listed = contend.here("templates", "list", "--json").json
    assert {each["id"]: each["origin"] for each in listed}["tea-choice"] == "user"
    assert contend.here("templates", "show", "tea-choice").out.startswith("---\nid: tea-choice\n")
    assert contend.here("templates", "remove", "tea-choice").code == 0
    assert contend.here("templates", "show", "tea-choice").code == 2


def test_adding_a_near_duplicate_prints_a_warning(
    contend: Command, tea: Path, tmp_path: Path
) -> None:
    assert "covers the same questions" not in contend.here("templates", "add", str(tea)).err
    shipped = contend.here("templates", "show", "root-cause").out
    copy = tmp_path / "copy.md"
    copy.write_text(shipped.replace("id: root-cause", "id: my-copy"))
    added = contend.here("templates", "add", str(copy))
    assert added.code == 0
    assert "Advice: it covers the same questions as 'root-cause'" in added.err


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_the_list_names_files_that_cannot_be_used(contend: Command, form: list[str]) -> None:
    waiting = contend.home / "templates" / "candidates"
    waiting.mkdir(parents=True)
    for folder in (waiting.parent, waiting):
        (folder / f"bad-{folder.name}.md").write_text("no front matter")
    listed = contend.here("templates", "list", *form)
    assert listed.code == 0
    assert listed.err.count("Skipped: ") == 2
    assert all(f"bad-{name}.md" in listed.err for name in ("templates", "candidates"))


def test_nothing_is_added_when_one_file_is_bad(contend: Command, tea: Path) -> None:
    bad = tea.with_name("bad.md")
    bad.write_text("no front matter")
    for files in ([tea, bad], [tea, tea], [tea, tea.with_name("gone.md")]):
        ended = contend.here("templates", "add", *map(str, files))
        assert ended.code == 2
        assert files[-1].name in ended.err
        assert ended.err.count("\n") == 1
    assert not (contend.home / "templates").exists()


@pytest.mark.embedded
def test_lint_names_every_problem_and_fails(contend: Command, tea: Path) -> None:
    clean = contend.here("templates", "lint")
    assert (clean.code, clean.out) == (0, "")
    assert "48 templates checked, 0 problems" in clean.err
    contend.here("templates", "add", str(tea))
    (contend.home / "templates" / "twin.md").write_text(GOOD)
    ended = contend.here("templates", "lint")
    assert ended.code == 2
    assert "tea-choice: the body has" in ended.out
    assert "twin.md has the id 'tea-choice'" in ended.out
    near = tea.with_name("near.md")
    shipped = contend.here("templates", "show", "root-cause").out
    near.write_text(shipped.replace("id: root-cause", "id: near"))
    told = contend.here("templates", "lint", str(near))
    assert (told.code, told.err) == (2, "1 template checked, 1 problem.\n")
    assert "near: it covers the same questions as 'root-cause' (1.00" in told.out
    alone = contend.here("templates", "lint", str(tea), str(tea.with_name("gone.md")), "--json")
    assert alone.code == 2
    assert {each["template"] for each in alone.json["problems"]} == {
        "tea-choice",
        str(tea.with_name("gone.md")),
    }


@pytest.mark.embedded
def test_damaged_or_missing_index_is_rebuilt(contend: Command) -> None:
    (manifest,) = contend.home.glob("index/templates/*/manifest.json")
    manifest.write_text("{")
    told = contend("templates", "search", "why?")
    assert "index of the templates was damaged and has been rebuilt" in told.err
    manifest.unlink()
    rebuilt = contend.here("templates", "rebuild")
    assert "Indexed 48 templates with embedded:minilm-l6" in rebuilt.err
    assert manifest.exists()


def test_failing_embedding_model_is_reported(contend: Command, models: ModelServer) -> None:
    models.embedding_error = 400
    ended = contend.here("templates", "search", "why?", "-e", "openai:m")
    assert ended.code == 2
    assert ended.err.startswith("Error: openai:m returned no vectors")


# --- learning ---


def librarian(request: Request) -> Reply | str:
    if "Distil from it a reasoning template" in request.text:
        return json.dumps(LEARNT)
    reply: Reply | str = debaters()(request)
    return reply


def finished(contend: Command, models: ModelServer) -> str:
    models.script = librarian
    return str(contend.here(*ASK, "--json", "-q").json["id"])


def test_learning_from_a_well_rated_debate_creates_a_candidate(
    contend: Command, models: ModelServer
) -> None:
    debate = finished(contend, models)
    contend.here("rate", debate, "9")
    ended = contend("templates", "learn", debate[:8])
    assert ended.code == 0
    assert "id: split-or-keep-a-shared-system" in ended.out
    assert "kind: system-design" in ended.out
    assert "contend templates accept split-or-keep-a-shared-system" in ended.err
    origins = {
        each["id"]: each["origin"] for each in contend.here("templates", "list", "--json").json
    }
    assert origins["split-or-keep-a-shared-system"] == "candidate"
    sent = models.calls[-1].request.text
    assert "The cost is never estimated." in sent
    assert "Keep the monolith" in sent
    assert contend.here("templates", "accept", "split-or-keep-a-shared-system").code == 0
    listed = contend.here("templates", "list", "--json").json
    assert {each["id"]: each["origin"] for each in listed} == origins | {
        "split-or-keep-a-shared-system": "user"
    }


def test_learn_with_yes_accepts_the_template(contend: Command, models: ModelServer) -> None:
    debate = finished(contend, models)
    contend.here("rate", debate, "8")
    ended = contend.here("templates", "learn", debate, "--yes", "-m", "openai:other")
    assert "Accepted:" in ended.err
    assert models.calls[-1].request.model == "other"


def test_template_can_be_learned_from_an_earlier_release(
    contend: Command, models: ModelServer
) -> None:
    debate = finished(contend, models)
    contend.here("rate", debate, "9")
    with closing(sqlite3.connect(contend.home / "contend.db")) as database, database:
        database.execute("UPDATE debates SET settings = json_set(settings, '$.retired', 1)")
    assert contend.here("templates", "learn", debate).code == 0


@pytest.mark.parametrize(
    ("rating", "said"), [(None, "rated 7.65 of 10"), ("5", "rated 5 of 10")], ids=["judge", "user"]
)
def test_learning_from_a_poorly_rated_debate_is_refused(
    rating: str | None, said: str, contend: Command, models: ModelServer
) -> None:
    debate = finished(contend, models)
    if rating:
        contend.here("rate", debate, rating)
    before = len(models.calls)
    ended = contend.here("templates", "learn", debate)
    assert ended.code == 2
    assert said in ended.err
    assert len(models.calls) == before


@pytest.mark.parametrize(
    ("title", "cut"),
    [("Split or keep " * 9, "Split or keep " * 5 + "Split or…"), ("字" * 90, "字" * 79 + "…")],
)
def test_learned_template_is_cut_to_the_allowed_lengths(
    title: str, cut: str, contend: Command, models: ModelServer
) -> None:
    debate = finished(contend, models)
    contend.here("rate", debate, "9")
    much = {
        "title": title,
        "kind": "kind " * 20,
        "tags": ["AI", "", *"abcdefghijkl"],
    }
    much["use_when"] = [f"Is this question {number}?" for number in range(30)]
    models.script = always(json.dumps(LEARNT | much))
    assert contend.here("templates", "learn", debate, "--yes").code == 0
    learnt = next(
        each
        for each in contend.here("templates", "list", "--json").json
        if each["origin"] == "user"
    )
    assert learnt["title"] == cut
    assert (len(learnt["kind"]), len(learnt["use_when"])) == (39, 20)
    assert learnt["tags"] == ["AI", *"abcdefghijk"]


def test_unreadable_learned_template_is_not_stored(contend: Command, models: ModelServer) -> None:
    debate = finished(contend, models)
    contend.here("rate", debate, "9")
    for useless in ("No idea.", json.dumps(LEARNT | {"use_when": []})):
        models.script = always(useless)
        ended = contend.here("templates", "learn", debate)
        assert ended.code == 4
        assert "Librarian" in ended.err
    assert not (contend.home / "templates").exists()
