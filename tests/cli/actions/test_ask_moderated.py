"""Moderated debates from the command line: positions, output folder and bad input."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import SHORT, Command, debaters
from tests.conftest import link_weights
from tests.support.floor_server import SUMMARY, floor_script, with_block
from tests.support.model_server import ModelServer, Reply, Request

TOPIC = "Should the library be rewritten?"
SIDES = ["--position", "Ann: It should be rewritten", "--position", "Ben: It should be kept"]
QUICK = ["-m", "openai:m", "--set", "retry_wait=0.01", "--set", "roundCount=1"]
ASK = ["ask", TOPIC, "-p", "moderated", *QUICK]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(floor_script(), models=["m", "other"]) as running:
        yield running


def folder_of(record: dict[str, Any]) -> Path:
    return Path(record["output_dir"])


def test_model_that_the_server_does_not_list_is_used_anyway(contend: Command) -> None:
    ended = contend(*ASK, *SIDES, "-s", "judge_model=openai:hidden")
    assert ended.code == 0, ended.err
    assert "does not list the model 'hidden'" in " ".join(ended.err.split())


def test_terminal_shows_the_whole_moderated_debate(contend: Command) -> None:
    ended = contend(*ASK, *SIDES)
    assert ended.code == 0, ended.err
    assert "moderated · 1 round" in ended.out
    for line in (
        "─ Opening statements ─",
        "Ann: opening statement",
        "Ben: rebuttal",
        "\nModerator: This is the request of ",
        "Moderator: summary of the round",
        "Ann: closing statement",
        SUMMARY,
        "Scores",
        "Ann 7.00, Ben 7.00",
        "logical coherence 7.00",
        "nobody, a draw: the best scores are equal",
        "Folder",
    ):
        assert line in ended.out, line
    assert "My marks" not in ended.out
    assert ended.err == ""


def test_output_folder_has_the_specified_structure(contend: Command) -> None:
    record = contend.here(*ASK, *SIDES, "--json").json
    folder = folder_of(record)
    day, name = folder.parts[-2:]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert re.fullmatch(rf"{day}T\d\d-\d\d-\d\d_debate", name)
    assert folder.parent.parent == contend.home / "outputs"
    assert {path.name for path in folder.iterdir()} == {
        *("index.md", "metadata.md", "summary.md", "messages"),
    }
    messages = sorted(path.name for path in (folder / "messages").iterdir())
    assert len(messages) == len(record["turns"])
    for number, (message, turn) in enumerate(zip(messages, record["turns"], strict=True), 1):
        assert re.fullmatch(rf"{number:03d}_{turn['role']}_[0-9a-f]{{8}}\.md", message)
        assert turn["text"] in (folder / "messages" / message).read_text()
    assert SUMMARY in (folder / "summary.md").read_text()
    assert "| Ann | position_advocate | openai:m |" in (folder / "metadata.md").read_text()


def test_index_lists_every_message_with_its_phase_length_and_preview(contend: Command) -> None:
    record = contend.here(*ASK, *SIDES, "--json").json
    index = (folder_of(record) / "index.md").read_text()
    rows = [line for line in index.splitlines() if "| [messages/" in line]
    assert len(rows) == len(record["turns"])
    opening = next(row for row in rows if "opening statement" in row)
    cells = [cell.strip() for cell in opening.strip("|").split("|")]
    assert cells[2:5] == ["Ann", "opening statement", "0"]
    assert int(cells[5]) > 0
    assert cells[6] == "This is the opening of Ann."
    file = cells[1].removeprefix("[").partition("]")[0]
    assert cells[1] == f"[{file}]({file})"
    assert (folder_of(record) / file).is_file()
    assert "**Status:** done" in index
    assert f"**Messages:** {len(rows)}\n" in index


def test_files_are_private(contend: Command) -> None:
    folder = folder_of(contend.here(*ASK, *SIDES, "--json").json)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in folder.rglob("*") if p.is_file()} == {0o600}


@pytest.mark.parametrize(("form", "ending"), [("json", "json"), ("text", "txt")])
def test_output_folder_can_be_json_or_text_with_a_transcript(
    contend: Command, tmp_path: Path, form: str, ending: str
) -> None:
    wanted = ["--set", f"output_dir={tmp_path / 'mine'}", "--set", f"outputFormat={form}"]
    more = ["--set", "generateFullTranscript=true"]
    record = contend.here(*ASK, *SIDES, *wanted, *more, "--json").json
    folder = folder_of(record)
    assert folder.is_relative_to(tmp_path / "mine")
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {f"{n}.{ending}" for n in ("index", "metadata", "summary", "transcript")}
    transcript = (folder / f"transcript.{ending}").read_text()
    assert all(turn["text"] in transcript for turn in record["turns"])
    if form == "json":
        index = json.loads((folder / "index.json").read_text())
        assert index["id"] == record["id"]
        assert [m["phase"] for m in index["messages"]][:2] == ["request", "opening statement"]
        first = json.loads((folder / index["messages"][1]["file"]).read_text())
        assert first["text"] == "This is the opening of Ann."
        assert first["length"]["limit"] == 300
        assert json.loads((folder / "summary.json").read_text())["summary"] == SUMMARY


def test_without_positions_the_moderator_proposes_them(contend: Command) -> None:
    shown = contend.here(*ASK).out
    assert "- Advocate A: It should be done.\n  - Advocate B: It should not be done." in shown
    short = re.findall(r"debate (\w{8})", shown)[0]
    record = contend.here("show", short, "--json").json
    assert record["turns"][0]["phase"] == "positions"
    held = [s["position"] for s in record["seats"] if s["role"] == "position_advocate"]
    assert held == ["It should be done.", "It should not be done."]
    metadata = (folder_of(record) / "metadata.md").read_text()
    assert "It should not be done." in metadata


def test_advocate_name_with_path_separators_writes_no_file_elsewhere(contend: Command) -> None:
    sides = ["--position", "../../etc: Rewrite it", "--position", "a/../b|c: Keep it: always"]
    record = contend.here(*ASK, *sides, "--json").json
    assert [s["id"] for s in record["seats"]] == ["moderator", "etc", "a-b-c", "judge"]
    assert record["seats"][2]["position"] == "Keep it: always"
    assert set(record["scores"]) == {"../../etc", "a/../b|c"}
    written = list(contend.home.parent.rglob("*_position_advocate_*"))
    assert written
    assert all(p.is_relative_to(folder_of(record)) for p in written)
    index = (folder_of(record) / "index.md").read_text()
    assert "a/../b\\|c" in index


def test_undecodable_bytes_in_arguments_are_removed(contend: Command) -> None:
    """A terminal with another encoding passes such bytes."""
    sides = ["--position", "Ann: Rewrite\udcff it", "--position", "Ben: Keep it"]
    more = ["--set", "moderator_system_prompt=Be\udcff brief."]
    record = contend.here(*ASK, *sides, *more, "--json").json
    assert record["status"] == "done"
    assert record["settings"]["moderator_system_prompt"] == "Be brief."
    assert record["seats"][1]["position"] == "Rewrite it"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--position", "A: One"], "this protocol needs 2 to 8 positions, not 1"),
        (["--position", "A: Same", "--position", "B: same"], "two sides hold the same position"),
        (["--position", "A: One", "--position", "B: "], "The position of 'B' is empty"),
        (["--position", "A: ", "--position", "B: "], "The position of 'A' is empty"),
        (["--position", "A: One", "--position", "a: Two"], "two sides are called 'A'"),
        (["--position", "no colon"], "is not in the form NAME: POSITION"),
        (["--set", "roundCount=-1"], "round_count must be between 0 and 20, not -1"),
        (["--set", "scoringWeights={logical_coherence: 1}"], "must name each of"),
        (
            [
                "--set",
                "scoring_weights={logicalCoherence: 0.15, evidence_quality: 0.25, "
                "responsiveness: 0.2, persuasiveness: 0.15, rule_adherence: 0.15}",
            ],
            "scoring_weights must sum to 1, not 0.9",
        ),
        (["--set", "contestedMargin=inf"], "contested_margin must be a number, not inf"),
        (["--set", f"argumentMaxTokens={10**25}"], "must be between 1 and 100000, not 1000"),
        (["--set", "debateFormat=lively"], "debate_format must be one of formal, casual"),
        (["--set", "output_dir=/proc/nowhere"], "The output folder /proc/nowhere cannot be"),
        (["--seat", "A=openai:m"], "--seat works only with forum and refine"),
    ],
)
def test_bad_input_is_refused_before_the_first_call(
    contend: Command, models: ModelServer, arguments: list[str], said: str
) -> None:
    ended = contend.here(*ASK, *arguments)
    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert models.calls == []
    assert contend.here("list", "--json").json == []


def test_position_option_works_only_with_moderated(contend: Command) -> None:
    ended = contend.here("ask", TOPIC, *SIDES)
    assert ended.code == 2
    assert "--position works only with --protocol moderated" in ended.err


def test_output_folder_that_is_a_file_is_refused(contend: Command, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    ended = contend.here(*ASK, *SIDES, "--set", f"output_dir={tmp_path / 'taken'}")
    assert ended.code == 2
    assert "cannot be written" in ended.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_unwritable_folder_is_refused_before_documents_are_embedded(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "costs.txt").write_text("It cost 40.")
    docs = ["--docs", str(tmp_path / "costs.txt"), "--set", "embedding_model=openai:e1"]
    ended = contend.here(*ASK, *SIDES, *docs, "--set", "output_dir=/proc/nowhere")
    assert ended.code == 2
    assert "/proc/nowhere cannot be written" in ended.err
    assert (models.calls, models.embedded) == ([], [])


def test_the_limits_are_set_on_the_call(contend: Command, models: ModelServer) -> None:
    contend.here(*ASK, *SIDES, "--quiet")
    bodies = {
        "opening" if "opening statement:" in call.request.user else "argument": call.request.body
        for call in models.calls
        if "and you argue for this" in call.request.user
        and ("Give your opening" in call.request.user or "Bring one" in call.request.user)
    }
    assert bodies["opening"]["max_completion_tokens"] == 600
    assert bodies["argument"]["max_completion_tokens"] == 500


def test_turn_truncated_at_its_token_limit_is_retried_with_a_higher_limit(
    contend: Command, models: ModelServer
) -> None:
    """A speech over its limit is kept whole and loses points; it is never shortened."""
    long = "word " * 700

    def script(what: str, request: Request, reply: Reply) -> Reply:
        if what != "opening":
            return reply
        if "half the length" in request.user:
            return Reply("word " * 200)
        ceiling = request.body["max_completion_tokens"]
        return Reply(long[: 5 * ceiling], finish="length") if ceiling < 700 else Reply(long)

    models.script = floor_script(script)
    record = contend.here(*ASK, *SIDES, "--json").json
    opening = next(turn for turn in record["turns"] if turn["phase"] == "opening")
    assert opening["text"] == long.strip()
    assert opening["length"] == {"tokens": 700, "limit": 300, "cut_after": None}
    assert [entry["what"] for entry in record["degraded"]] == ["retried", "retried"]
    deducted = record["scores"]["Ann"]["turns"][0]["deductions"]
    assert [each["rule"] for each in deducted] == ["overlong"]
    message = next((folder_of(record) / "messages").glob("002_*")).read_text()
    assert "700 of 300, overlong" in message


def test_a_planted_false_claim_is_caught_corrected_and_visible(
    contend: Command, models: ModelServer, tmp_path: Path, embedding_weights: list[Path]
) -> None:
    link_weights(embedding_weights, contend.home)
    (tmp_path / "costs.txt").write_text("The library cost 40,000 euros to write in 2019.\n")
    false = "The library cost 400,000 euros to write."

    def script(what: str, request: Request, reply: Reply) -> Reply:
        if what == "argument" and "You are Ann" in request.user:
            return Reply(false)
        if what == "claims" and false in request.user:
            return with_block(reply, request, claims=[false])
        if what == "check" and "cost 40,000 euros" in request.user:
            found = {"verdict": "contradicted", "source": "costs:1", "why": "It says 40,000."}
            return with_block(reply, request, **found)
        return Reply("I correct that: it was 40,000.") if what == "correction" else reply

    models.script = floor_script(script)
    docs = ["--docs", str(tmp_path / "costs.txt"), "--set", "fact_check=true"]
    ended = contend.here(*ASK, *SIDES, *docs, "--json")
    record = ended.json
    (check,) = record["fact_checks"]
    assert (check["verdict"], check["source"]) == ("contradicted", "costs:1")
    assert check["correction"] == "I correct that: it was 40,000."
    summary = (folder_of(record) / "summary.md").read_text()
    assert "| Ann | The library cost 400,000 euros to write. | contradicted | costs:1 |" in summary
    assert "I correct that: it was 40,000." in summary
    index = (folder_of(record) / "index.md").read_text()
    assert "fact check" in index
    assert "correction" in index
    shown = contend.here("show", record["id"])
    assert "Fact checker: fact check" in shown.out
    assert "0 supported, 1 contradicted, 0 unverifiable; 1 corrected" in shown.out


class TestExport:
    def test_export_writes_the_same_folder_again(self, contend: Command, tmp_path: Path) -> None:
        record = contend.here(*ASK, *SIDES, "--json").json
        ended = contend.here("export", record["id"], "--format", "folder", "-o", str(tmp_path))
        again = Path(ended.out.strip())
        assert again.is_relative_to(tmp_path)
        first = folder_of(record)
        files = sorted(p.relative_to(first) for p in first.rglob("*") if p.is_file())
        assert files == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
        for name in files:
            assert (first / name).read_text() == (again / name).read_text()

    def test_export_rewrites_a_missing_folder(self, contend: Command) -> None:
        record = contend.here(*ASK, *SIDES, "--json").json
        shutil.rmtree(folder_of(record))
        assert contend.here("show", record["id"], "--json").json["output_dir"] is None
        ended = contend.here("export", record["id"][:8], "--format", "folder", "--transcript")
        assert Path(ended.out.strip()) == folder_of(record)
        assert (folder_of(record) / "transcript.md").is_file()

    def test_transcript_option_requires_a_folder_format(self, contend: Command) -> None:
        record = contend.here(*ASK, *SIDES, "--json").json
        assert contend.here("export", record["id"], "--transcript").code == 2

    def test_the_document_names_phases_and_scores(self, contend: Command) -> None:
        record = contend.here(*ASK, *SIDES, "--json").json
        text = contend.here("export", record["id"]).out
        assert "## Opening statements\n" in text
        assert "### Ann (openai:m), opening statement" in text
        assert "- Scores: Ann 7.00, Ben 7.00" in text

    @pytest.mark.parametrize("protocol", ["adversarial", "refine"])
    @pytest.mark.parametrize("form", ["folder", "folder-json", "folder-text"])
    def test_debate_of_another_protocol_can_be_exported_as_a_folder(
        self, contend: Command, models: ModelServer, tmp_path: Path, protocol: str, form: str
    ) -> None:
        models.script = debaters()
        short = {"adversarial": SHORT, "refine": ["--set", "max_debate_rounds=1"]}
        asked = contend.here("ask", TOPIC, "-p", protocol, "-m", "openai:m", *short[protocol])
        assert asked.code == 0, asked.err
        (listed,) = contend.here("list", "--json").json
        record = contend.here("show", listed["id"], "--json").json
        assert "output_dir" not in record
        assert not (contend.home / "outputs").exists()
        ended = contend.here("export", listed["id"], "-f", form, "-o", str(tmp_path / "out"))
        folder = Path(ended.out.strip())
        messages = sorted((folder / "messages").iterdir())
        assert len(messages) == len(record["turns"])
        for path, turn in zip(messages, record["turns"], strict=True):
            text = path.read_text()
            if form == "folder-json":
                text = json.loads(text)["text"]
            assert turn["text"] in text
            assert f"_{turn['role']}_" in path.name
        summary = next(folder.glob("summary.*")).read_text()
        assert "Keep the monolith" in summary

    def test_export_reports_an_unwritable_folder(self, contend: Command) -> None:
        record = contend.here(*ASK, *SIDES, "--json").json
        ended = contend.here("export", record["id"], "-f", "folder", "-o", "/proc/nowhere")
        assert ended.code == 2
        assert "Cannot write /proc/nowhere" in ended.err


def put_file_in_place_of(folder: Path) -> None:
    """Replace the folder, even if the debate recreates it at the same moment."""
    mine = folder.with_name("mine")
    mine.write_text("mine")
    while not folder.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(IsADirectoryError):
            mine.rename(folder)


def test_debate_finishes_if_its_output_folder_is_lost(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    """The folder is replaced by a file during the debate."""

    def script(what: str, request: Request, reply: Reply) -> Reply:
        if what == "summary":
            put_file_in_place_of(tmp_path / "out")
        return reply

    models.script = floor_script(script)
    ended = contend.here(*ASK, *SIDES, "--set", f"output_dir={tmp_path / 'out'}", "--json")
    record = ended.json
    assert (ended.code, record["status"]) == (0, "done")
    (entry,) = record["degraded"]
    assert entry["what"] == "folder_incomplete"
    assert "contend export" in entry["why"]
    assert record["output_dir"] is None
    assert (tmp_path / "out").read_text() == "mine"


def test_ruling_and_fact_check_are_each_shown_once_in_full(
    contend: Command, models: ModelServer
) -> None:
    """One moderator call produces two turns; several checker calls produce one."""

    def script(what: str, request: Request, reply: Reply) -> Reply:
        if what == "request" and "review\nThe last statement above: Ann, argument." in request.user:
            struck = {"breach": "personal_attack", "ruling": "Ann, no insults."}
            return replace(with_block(reply, request, **struck), chunk_size=5)
        if what == "claims" and "Ann, argument:" in request.user:
            return with_block(reply, request, claims=["It cost a million."])
        return reply

    models.script = floor_script(script)
    ended = contend.here(*ASK, *SIDES, "--set", "fact_check=true")
    assert ended.code == 0, ended.err
    assert ended.out.count("Moderator: ruling") == 1
    assert ended.out.count("Ann, no insults.") == 1
    requests = re.findall(r"^Moderator: (This is the request|Decided)", ended.out, re.MULTILINE)
    assert (len(requests), requests.count("Decided")) == (8, 1)
    ruling, request = ended.out.index("Ann, no insults."), ended.out.index(": Decided.\n")
    assert ended.out.index("This is the argument of Ann.") < ruling < request
    assert ended.out.count("supported [own knowledge]: It cost a million.") == 1
    assert ended.out.count("Fact checker: fact check") == 8
    assert re.search(r"Rulings\s+Ann \(personal attack\)", ended.out)
    assert "Ann argues: It should be rewritten" in ended.out
