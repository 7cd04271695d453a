"""Prints and exports debates."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from contend.cli import database
from contend.cli.view.console import print_message, stdout
from contend.cli.view.forecast import print_forecast_of
from contend.cli.view.format import one_line, resume_command
from contend.cli.view.renderer import Renderer
from contend.debates.exports.folder import write_folder
from contend.debates.exports.labels import closings_begin, local_time, sentence
from contend.debates.exports.markdown import to_markdown
from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.graph.settings import FolderPlan, OutputFormat, outputs_home

_NARROWEST_TABLE, _WIDEST_TABLE = 120, 200
_STATUS_STYLES = {"done": "success", "failed": "error", "running": "running"}


def newest(limit: int) -> list[StoredDebate]:
    """Return the newest debates, without creating a database."""
    if database.is_empty():
        return []
    with database.records() as records:
        return records.newest(limit)


def summary(debate: StoredDebate) -> dict[str, Any]:
    """Return what `contend list` shows of a debate."""
    state = debate.as_state()
    rated = state.get("auto_score")
    return {
        "id": debate.id,
        "created_at": debate.created_at,
        "updated_at": debate.updated_at,
        "status": debate.status,
        "protocol": debate.protocol,
        "rounds": state.get("round", 0),
        "stop_reason": debate.stop_reason,
        "auto_score": rated.score if rated else None,
        "user_rating": debate.user_rating,
        "demonstration": debate.demonstration,
        "question": debate.question,
    }


def print_list(debates: list[StoredDebate]) -> None:
    """Print a table, or two lines per debate in a narrow terminal."""
    screen = stdout(widest=_WIDEST_TABLE)
    if screen.width < _NARROWEST_TABLE:
        for debate in debates:
            _print_short(debate)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("ID", "Started", "Status", "Protocol", "Rounds", "Stopped by", "Score"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Question", no_wrap=True, overflow="ellipsis", ratio=1)
    for debate in debates:
        table.add_row(*_cells(debate))
    screen.print(table)


def _cells(debate: StoredDebate) -> list[Text]:
    about = summary(debate)
    texts = [
        debate.id[:8],
        local_time(debate.created_at),
        debate.status,
        debate.protocol,
        str(about["rounds"]),
        about["stop_reason"] or "-",
        _score(about),
        one_line(debate.question, 200),
    ]
    cells = [Text(text) for text in texts]
    cells[2].stylize(_STATUS_STYLES.get(debate.status, "warning"))
    return cells


def _print_short(debate: StoredDebate) -> None:
    screen = stdout()
    about = summary(debate)
    line = Text(debate.id[:8], style="heading")
    line.append(f"  {debate.status}", style=_STATUS_STYLES.get(debate.status, "warning"))
    line.append(
        f"  {local_time(debate.created_at)}  round {about['rounds']}  score {_score(about)}"
    )
    screen.print(line, soft_wrap=True)
    screen.print(Text(f"  {one_line(debate.question, screen.width - 4)}"), soft_wrap=True)


def _score(about: dict[str, Any]) -> str:
    if about["user_rating"] is not None:
        return f"{about['user_rating']} (yours)"
    if about["auto_score"] is None:
        return "-"
    return f"{about['auto_score']:g}{' (demo)' if about['demonstration'] else ''}"


def print_debate(debate: StoredDebate, *, thinking: bool) -> None:
    """Print every turn, then how the debate ended or how to continue it."""
    screen = Renderer(stdout(widest=None))
    about = f"{debate.status}, started {local_time(debate.created_at)}."
    screen.header(debate, about.capitalize())
    closings = closings_begin(debate.turns)
    for at, turn in enumerate(debate.turns):
        if at == closings:
            screen.sections.end_rounds()
        if turn.phase != "score":
            screen.turn(turn, thinking=thinking)
    screen.eliminations()
    record = debate.as_json()
    screen.points(record["points"])
    if record["stop"] and debate.status != "done":
        screen.sections.note(f"The rounds ended: {sentence(record['stop']['evidence'])}")
    if debate.error:
        screen.sections.note(f"Failed: {debate.error}")
    if debate.status == "done":
        print_forecast_of(debate)
        screen.footer(debate)
    else:
        screen.notices(record["degraded"])
    if debate.status in ("paused", "interrupted", "failed"):
        screen.sections.note(f"Continue with: {resume_command(debate.id)}")


def document(debate: StoredDebate, form: str) -> str:
    """Return a debate as Markdown or JSON."""
    if form == "md":
        return to_markdown(debate)
    return json.dumps(debate.as_json(), ensure_ascii=False, indent=2) + "\n"


def write_document(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"Cannot write {output}: {error.strerror or error}.") from error
    print_message(f"Wrote {output}.")


_FOLDER_FORMS: dict[str, OutputFormat] = {
    "folder": "markdown",
    "folder-json": "json",
    "folder-text": "text",
}


def export_folder(debate: StoredDebate, form: str, base: Path | None, *, transcript: bool) -> None:
    """Export a debate as a folder and print its path."""
    place = base.expanduser().absolute() if base else outputs_home()
    plan = FolderPlan(place, _FOLDER_FORMS[form], transcript)
    try:
        written = write_folder(debate, plan)
    except OSError as error:
        raise BadInput(f"Cannot write {place}: {error.strerror or error}.") from error
    sys.stdout.write(f"{written}\n")
    sys.stdout.flush()
