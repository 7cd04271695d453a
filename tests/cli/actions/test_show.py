import re
from pathlib import Path

from contend.debates.repository import Repository
from contend.graph.settings import AdversarialSettings
from contend.graph.state import DebateState
from tests.cli.support import QUESTION, Command, debaters
from tests.support.model_server import ModelServer, Reply


def test_stored_debate_can_be_listed_shown_rated_and_exported(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    def thinks(role: str, number: int, reply: Reply) -> Reply:
        return Reply(f"<think>A private thought.</think>{reply.text}")

    models.script = debaters(thinks)
    record = contend.ask_here("--json", "--quiet").json
    debate, short = record["id"], record["id"][:8]

    wide = contend.here("list", COLUMNS="160").out
    head = "ID Started Status Protocol Rounds Stopped by Score Tokens Time Question"
    assert " ".join(wide.splitlines()[0].split()) == head
    assert all(text in wide for text in (short, "done", "max_rounds", "7.65", QUESTION[:10]))
    narrow = contend.here("list", COLUMNS="60").out
    assert max(map(len, narrow.splitlines())) <= 60
    (listed,) = contend.here("list", "--json", "--limit", "3").json
    assert (listed["id"], listed["stop_reason"]) == (debate, "max_rounds")

    shown = contend.here("show", short)
    assert (shown.code, shown.err) == (0, "")
    assert "This is proposal 1" in shown.out
    assert "✅ S1" in shown.out
    assert "✅ S1 The cost is never estimated. (critical, round 1, Skeptic)" in shown.out
    assert "Keep the monolith" in shown.out
    assert "private" not in shown.out
    assert "A private thought." in contend.here("show", short, "--thinking").out

    rated = contend.here("rate", short, "9")
    assert (rated.code, rated.err) == (0, f"Rated debate {short} 9 of 10.\n")
    facts = contend.here("show", short).out.partition("Done")[2].replace("\u00a0", " ")
    assert re.search(r"^Score +\d", facts, re.MULTILINE)
    assert re.search(r"^Your rating +9 of 10$", facts, re.MULTILINE)

    markdown = contend.here("export", short).out
    assert markdown.startswith(f"# {QUESTION}\n")
    file = tmp_path / "debate.json"
    written = contend.here("export", short, "--format", "json", "--output", str(file))
    assert written.out == ""
    assert contend.here("show", short, "--json").out.strip()
    assert '"user_rating": 9' in file.read_text("utf-8")
    refused = contend.here("export", short, "--output", str(tmp_path))
    assert refused.code == 2
    unknown = contend.here("export", short, "--format", "pdf")
    assert unknown.code == 2
    assert "Known: md, html, json, cassette, folder" in unknown.err


def test_ambiguous_id_is_refused(contend: Command) -> None:
    contend.home.mkdir()
    records = Repository(contend.home / "contend.db")
    for end in "12":
        seats = AdversarialSettings(judge_model="openai:m").build_seats()
        debate = f"aaaaaaaa-0000-4000-8000-00000000000{end}"
        state: DebateState = {"question": f"Question {end}?", "seats": seats}
        records.start(debate, "adversarial", state, {}, demonstration=False)
    records.close()
    for prefix in ("", "aaaaaaaa"):
        ended = contend.here("show", prefix)
        assert ended.code == 2
        assert "contend list" in ended.err
    found = contend.here("show", "aaaaaaaa-0000-4000-8000-000000000001")
    assert "Interrupted, started" in found.out
    assert "Continue with: contend resume aaaaaaaa" in found.out


def test_show_and_export_start_with_a_summary(contend: Command) -> None:
    record = contend.ask_here("--json", "--quiet").json
    shown = contend.here("show", record["id"], COLUMNS="100").out
    expected = [
        "─ In short ─",
        "⚠ The judge uses the same model as Proposer and Skeptic",
        "│ Keep the monolith 🧱, and draw the boundaries inside it first.",
        "Open       no objection",
        "Score      7.65 of 10 by openai:m",
        "Took part  Proposer, Skeptic, Synthesizer and Judge (openai:m)",
        "Cost       unknown price; tokens ",
        "─ Objections ─",
        "─ What changed ─",
        "• New: Keep the monolith 🧱, and draw the boundaries inside it first.",
        "─ Round 1 of at most 2 ─",
        "─ Answer ─",
    ]
    places = [shown.find(text) for text in expected]
    assert -1 not in places, expected[places.index(-1)]
    assert places == sorted(places)
    document = contend.here("export", record["id"]).out
    places = [document.find(f"## {title}\n") for title in ("In short", "Answer", "Objections")]
    assert -1 < places[0] < places[1] < places[2]


def test_a_round_or_a_turn_can_be_shown_alone(contend: Command) -> None:
    debate = contend.ask_here("--json", "--quiet").json["id"]
    second = contend.here("show", debate, "--round", "2").out
    assert "This is proposal 2" in second
    assert "This is proposal 1" not in second
    turn = contend.here("show", debate, "--turn", "r1.critique").out
    assert "This is critique 1" in turn
    assert "proposal" not in turn
    assert "Rated." not in contend.here("show", debate).out
    assert "Rated." in contend.here("show", debate, "--full").out
    missing = contend.here("show", debate, "--round", "7")
    assert (missing.code, missing.err) == (
        2,
        f"Error: Debate {debate[:8]} has no round 7; its last is 2.\n",
    )
    several = contend.here("show", debate, "--turn", "r1")
    assert several.code == 2
    assert f"'r1' names several turns of debate {debate[:8]}. Turns: r1.propose." in several.err
