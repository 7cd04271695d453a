"""Exporting a debate as a folder of pages."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from contend.debates.exports.folder import Folder, FolderState, write_folder
from contend.debates.exports.page import ExportPage, Facts, Rows, Title, Words
from contend.debates.record import StoredDebate
from contend.graph.readings import Point
from contend.graph.settings import FolderPlan, OutputFormat
from contend.graph.state import Turn
from contend.graph.stop_reasons import StopDecision
from tests.nodes.test_record import RATED
from tests.support.floor import (
    debate,
    floor_cast,
    marks_for,
    moderated_settings,
    with_block,
)
from tests.support.scripted import Sent, as_state
from tests.support.states import assessed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = moderated_settings()
DEBATE = StoredDebate(
    id="11111111-0000-4000-8000-000000000000",
    protocol="moderated",
    question="Is it | so?",
    status="running",
    created_at=NOON.isoformat(),
    updated_at=NOON.isoformat(),
    settings=SETTINGS.model_dump(mode="json"),
    state={},
    error=None,
    demonstration=False,
    user_rating=None,
    last_seq=0,
)


def turn(number: int, text: str = "A word.", role: str = "position_advocate") -> Turn:
    return Turn(
        id=f"r{number}.argument.ann",
        round=number,
        phase="argument",
        seat="ann",
        role=role,
        model="openai:m",
        text=text,
        started_at=NOON,
        ended_at=NOON,
    )


def standing(turns: list[Turn], status: str = "running", **more: Any) -> FolderState:
    state = {
        "question": "Is it?",
        "seats": SETTINGS.build_seats(),
        "round": 1,
        "turns": turns,
        **more,
    }
    return FolderState(status, None, as_state(state))


def folder(path: Path, form: OutputFormat = "markdown") -> Folder:
    made = Folder(DEBATE, FolderPlan(path, form, transcript=False))
    made.path = path
    return made


def names(path: Path) -> list[str]:
    return sorted(each.name for each in (path / "messages").iterdir())


def test_file_names_contain_no_text_from_a_speaker(tmp_path: Path) -> None:
    folder(tmp_path).update(standing([turn(1, role="../../etc"), turn(2, role="MODERATOR/x")]))
    assert [name[:12] for name in names(tmp_path)] == ["001_speaker_", "002_speaker_"]


def test_an_update_adds_new_messages_and_keeps_existing_files(tmp_path: Path) -> None:
    kept = folder(tmp_path)
    kept.update(standing([turn(1)]))
    (first,) = names(tmp_path)
    (tmp_path / "messages" / first).write_text("as it was")
    kept.update(standing([turn(1), turn(2)]))
    assert len(names(tmp_path)) == 2
    assert (tmp_path / "messages" / first).read_text() == "as it was"
    # Another run, after a crash, writes the same names again.
    folder(tmp_path).update(standing([turn(1), turn(2)]))
    assert len(names(tmp_path)) == 2
    assert "A word." in (tmp_path / "messages" / first).read_text()


def test_escapes_pipes_and_backslashes_in_table_cells() -> None:
    cells = ["a | b", r"\| c", r"\\|"]
    drawn = (
        MarkdownIt()
        .enable("table")
        .render(ExportPage([Rows(["1", "2", "3"], [cells])], {}).as_markdown())
    )
    assert re.findall("<td>(.*)</td>", drawn) == ["a | b", r"\| c", r"\\|"]


def test_exporting_a_running_debate_does_not_disturb_its_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, stands = FolderPlan(tmp_path, "markdown", transcript=False), standing([turn(1)])
    running = Folder(DEBATE, plan).begin(stands)
    write, amid = ExportPage.as_markdown, list[ExportPage]()

    def interrupted(page: ExportPage) -> str:
        if not amid:
            amid.append(page)
            running.update(stands)
            amid.pop()
        return write(page)

    monkeypatch.setattr(ExportPage, "as_markdown", interrupted)
    assert write_folder(DEBATE, plan) == running.path
    assert not list(tmp_path.rglob("*.new"))


def test_updates_the_summary_and_metadata_as_the_debate_proceeds(tmp_path: Path) -> None:
    kept = folder(tmp_path)
    kept.update(standing([turn(1)]))
    assert "There is no summary yet." in (tmp_path / "summary.md").read_text()
    assert "not finished" in (tmp_path / "metadata.md").read_text()
    kept.update(standing([turn(1), turn(2)], final_answer="It is so."))
    assert "It is so." in (tmp_path / "summary.md").read_text()
    kept.update(standing([turn(1), turn(2)], "done", final_answer="It is so."))
    assert "**Status:** done" in (tmp_path / "metadata.md").read_text()


def test_summary_shows_stop_reason_score_and_objections(tmp_path: Path) -> None:
    critique = turn(2, "A hole.").model_copy(
        update={
            "assessment": assessed(Point(id="S1", severity="major", status="open", text="Why?"))
        }
    )
    stop = StopDecision(reason="max_rounds", round=2, evidence="all 2 rounds were used")
    done = standing([critique], "done", final_answer="So.", stop=stop, auto_score=RATED)
    folder(tmp_path).update(done)
    summary = (tmp_path / "summary.md").read_text()
    assert "**Stopped:** all 2 rounds were used." in summary
    assert f"**Score:** {RATED.score:g} of 10 by {RATED.judge_model}: correctness" in summary
    assert "| S1 Why? | 🟡 major | round 2, Ann |  | Open. |" in summary


def test_index_shows_one_shortened_line_per_message(tmp_path: Path) -> None:
    text = "First | line.\n\nSecond line, " + "which goes on and on " * 20
    folder(tmp_path).update(standing([turn(1, text)]))
    index = (tmp_path / "index.md").read_text()
    assert index.startswith("# Is it | so?\n")
    (row,) = [line for line in index.splitlines() if "messages/" in line]
    assert "| First \\| line. Second line, which goes on" in row
    assert row.endswith("… |")
    assert len(row) < 240


def swayed(sent: Sent) -> str:
    """Return scores from a judge that always prefers the first text."""
    marks = marks_for(sent, lambda _text, _name: 3)
    marks[0] |= {name: 9 for name in marks[0] if name != "statement"}
    return with_block("The first is best.", scores=marks)(sent)


def written(path: Path, stands: FolderState, *, transcript: bool = False) -> dict[str, str]:
    path.mkdir(exist_ok=True)
    Folder(DEBATE, FolderPlan(path, "markdown", transcript=transcript)).update(stands)
    return {str(each.relative_to(path)): each.read_text() for each in path.rglob("*.md")}


async def scored(path: Path, **changes: Any) -> dict[str, str]:
    """Return the pages of a scored competitive debate, by name."""
    cast = floor_cast(judge={"stage": swayed}, ann={"closing": "word " * 400})
    played = await debate(cast, round_count=1, **changes)
    return written(path, FolderState("done", None, played.state))


async def test_summary_shows_the_winner_or_why_there_is_none(tmp_path: Path) -> None:
    pages = await scored(tmp_path, debate_format="competitive")
    assert "- **Winner:** nobody, a draw: contested: who leads depends on" in pages["summary.md"]
    assert "6 contested: two readings differ by more than" in pages["summary.md"]
    (row,) = [line for line in pages["summary.md"].splitlines() if "Ann: closing" in line]
    assert row.endswith("| contested, overlong -2 |")
    pages = await scored(tmp_path / "formal", debate_format="formal", judge_model="scripted:ann")
    assert "the judge shares its model with Ann" in pages["summary.md"]


async def test_judge_messages_show_scores_and_what_they_apply_to(
    tmp_path: Path,
) -> None:
    pages = await scored(tmp_path, debate_format="competitive")
    judged = [line for line in pages["index.md"].splitlines() if "| Judge |" in line]
    assert [[cell.strip() for cell in line.split("|")[4:6]] for line in judged] == [
        ["scores of the openings", "0"],
        ["scores of the openings, in the other order", "0"],
        ["scores of round 1", "1"],
        ["scores of round 1, in the other order", "1"],
        ["scores of the closings", "1"],
        ["scores of the closings, in the other order", "1"],
    ]
    first = next(text for name, text in sorted(pages.items()) if "_judge_" in name)
    assert "| Ann: opening statement | 9 | 9 | 9 | 9 | 9 |" in first
    assert "| Ben: opening statement | 3 | 3 | 3 | 3 | 3 |" in first


PAGE = ExportPage(
    [
        Title("A\ntitle"),
        Facts([("Name", "Ann\nand Ben")]),
        Rows(("One", "Two"), [["a|b", "c\nd"], ["", "e"]]),
        Words("Text\n\nas it is"),
    ],
    {"title": "A title"},
)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            PAGE.as_markdown(),
            "# A title\n\n- **Name:** Ann and Ben\n\n| One | Two |\n|---|---|\n| a\\|b | c d |\n"
            "|  | e |\n\nText\n\nas it is\n",
        ),
        (
            PAGE.as_text(),
            "A title\n=======\n\nName: Ann and Ben\n\nOne a|b; Two c d\nTwo e\n\n"
            "Text\n\nas it is\n",
        ),
        (PAGE.as_json(), '{\n  "title": "A title"\n}\n'),
    ],
)
def test_renders_a_page_as_markdown_text_and_json(made: str, text: str) -> None:
    assert made == text


async def test_each_page_is_readable_on_its_own(tmp_path: Path) -> None:
    said = "# Mine\n\n```\n# code\n```"
    played = await debate(floor_cast(ann={"argument": said}), round_count=1)
    pages = written(tmp_path, FolderState("done", None, played.state), transcript=True)
    for name in ("metadata.md", "summary.md"):
        assert f"- **Question:** {DEBATE.question}" in pages[name]
    index = pages["index.md"]
    assert "- **Ann argues:** It makes it safer." in index
    assert "[summary.md](summary.md)" in index
    linked = re.findall(r"\]\((messages/[^)]+)\)", index)
    assert linked
    assert set(linked) <= set(pages)
    assert "- **Answers:** Ann: argument, round 1 (r1.argument.ann)" in "".join(pages.values())
    assert "- **Id:** r1.argument.ann" in "".join(pages.values())
    headings = [line for line in pages["transcript.md"].splitlines() if line.startswith("## ")]
    assert headings == [
        *("## Opening statements", "## Round 1", "## Closing statements", "## Result"),
    ]
    assert "\n#### Mine\n\n```\n# code\n```" in pages["transcript.md"]
