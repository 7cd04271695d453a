"""Objections with their replies and outcomes in every output; warnings come before the answer."""

import json
import re
from typing import Any

import pytest

from tests.cli.support import Command, debaters
from tests.support.model_server import ModelServer, Reply, Request

RAISED, REPLIES, NOTES = (
    "The cost is never estimated.",
    ["I add an estimate.", "I add a source for it."],
    ["It has no source.", "It is sourced now."],
)
LATER = ["--set", "min_rounds=3", "--set", "max_rounds=3"]
ASKED = ["--set", "judge_model=openai:judge", *LATER]


def _points(number: int) -> list[dict[str, str]]:
    if number == 1:
        return [{"id": "", "severity": "critical", "status": "open", "text": RAISED}]
    status = ["partial", "resolved"][number - 2]
    return [{"id": "S1", "severity": "critical", "status": status, "text": NOTES[number - 2]}]


def _critique(request: Request, number: int, points: list[dict[str, str]]) -> Reply:
    nonce = re.findall(r'"nonce": "([0-9a-f]+)"', request.text)[-1]
    block = {"nonce": nonce, "ready": False, "score": 5, "points": points}
    return Reply(f"This is critique {number}.\n\n```json\n{json.dumps(block)}\n```")


def _script(request: Request) -> Reply:
    at = re.search(r"Round (\d) of at most", request.user)
    number = int(at[1]) if at else 1
    if "You are the Skeptic" in request.instructions:
        return _critique(request, number, _points(number))
    if "You are the Proposer" in request.instructions and number > 1:
        said = REPLIES[number - 2]
        return Reply(f"## Replies\n**S1** (critical): {said}\n\n## Revised answer\nKeep it.")
    reply: Reply = debaters()(request)
    return reply


@pytest.fixture
def settled(contend: Command, models: ModelServer) -> str:
    models.script, models.models = _script, ["m", "judge"]
    ended = contend.ask_here("--json", "--quiet", *ASKED)
    assert ended.code == 0, ended.err
    return str(ended.json["id"])


def _words(text: str) -> str:
    """Return the words of a table without its borders and line breaks."""
    return " ".join(re.sub(r"[│─|]", " ", text).split())


def test_record_has_the_text_replies_and_outcome(contend: Command, settled: str) -> None:
    record = contend.here("show", settled, "--json").json
    assert record["points"]["open"] == []
    (point,) = record["points"]["resolved"]
    assert (point["text"], point["round_raised"]) == (RAISED, 1)
    assert [(each["round"], each["text"]) for each in point["replies"]] == [
        (2, REPLIES[0]),
        (3, REPLIES[1]),
    ]
    assert [(each["status"], each["note"]) for each in point["reviews"]] == [
        ("partial", NOTES[0]),
        ("resolved", NOTES[1]),
    ]
    assert (point["round_settled"], point["settled_by"]) == (3, "skeptic")
    assert record["warnings"] == []


FATE = [
    f"S1 {RAISED}",
    "critical",
    "round 1, Skeptic",
    f"Round 2, Proposer: {REPLIES[0]}",
    f"Round 3, Proposer: {REPLIES[1]}",
    f"Partly resolved in round 2: {NOTES[0]}",
    f"Resolved in round 3 by Skeptic: {NOTES[1]}",
]


@pytest.mark.parametrize("form", ["md", "html", "folder-text"])
def test_exports_have_the_text_replies_and_outcome(
    contend: Command, settled: str, form: str
) -> None:
    out = contend.here("export", settled, "--format", form).out
    if form == "folder-text":
        [summary] = (contend.home / "outputs").rglob("summary.txt")
        out = summary.read_text("utf-8")
    shown = _words(re.sub(r"<[^>]*>", " ", out))
    assert [words for words in FATE if words not in shown] == []


def test_narrow_terminal_shows_objections_as_blocks(contend: Command, settled: str) -> None:
    shown = contend.here("show", settled, COLUMNS="70").out.rpartition("─ Objections ─")[2]
    block = _words(shown)
    assert [words for words in FATE if words not in block] == []


def test_wide_terminal_shows_objections_in_a_table(contend: Command, settled: str) -> None:
    shown = contend.here("show", settled, COLUMNS="120").out.rpartition("─ Objections ─")[2]
    heads = next(line for line in shown.splitlines() if "Severity" in line)
    assert heads.split() == ["Objection", "Severity", "Raised", "Replies", "Outcome"]
    for cell in ("never", "sourced", "source for", "Partly", "Resolved"):
        assert cell in shown


@pytest.fixture
def unsettled(contend: Command, models: ModelServer) -> tuple[str, Any]:
    open_points = [
        {"id": "", "severity": "critical", "status": "open", "text": "The cost is unknown."},
        {"id": "", "severity": "critical", "status": "open", "text": "There is no plan."},
    ]

    def script(request: Request) -> Reply:
        if "You are the Skeptic" in request.instructions:
            return _critique(request, 1, open_points)
        reply: Reply = debaters()(request)
        return reply

    models.script, models.models = script, ["m", "judge"]
    paused = contend.ask_here("--pause", "each_round", "--json", "--quiet", *ASKED)
    assert paused.code == 3
    debate = str(paused.json["id"])
    return debate, contend.here("resume", debate, "--finish")


WARNING = "2 critical objections are still open: S1 and S2."
ANSWER = "Keep the monolith"


def test_open_critical_objections_are_shown_before_the_answer(
    contend: Command, unsettled: tuple[str, Any]
) -> None:
    debate, live = unsettled
    outputs = [
        live.out,
        contend.here("show", debate).out,
        contend.here("show", debate, "--json").out,
        contend.here("export", debate).out,
        contend.here("export", debate, "--format", "html").out,
    ]
    for out in outputs:
        assert -1 < out.find(WARNING) < out.find(ANSWER), out
    contend.here("export", debate, "--format", "folder")
    [summary] = (contend.home / "outputs").rglob("summary.md")
    assert -1 < summary.read_text("utf-8").find(WARNING) < summary.read_text("utf-8").find(ANSWER)


def test_a_quiet_answer_comes_after_a_warning_on_stderr(contend: Command) -> None:
    ended = contend.ask_here("--quiet")
    assert ended.out.startswith("# Answer")
    assert ended.err == (
        "Caution: The judge uses the same model as Proposer and Skeptic, "
        "so treat its judgment with caution.\n"
    )
