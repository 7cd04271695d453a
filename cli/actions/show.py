"""Prints a stored debate."""

from contend.cli import database
from contend.cli.view.console import stdout, write_json
from contend.cli.view.forecast import print_forecast_of, print_rounds_of
from contend.cli.view.format import resume_command
from contend.cli.view.renderer import Renderer
from contend.debates.exports.wording import closings_begin, local_time, sentence
from contend.debates.record import StoredDebate


def print_debate(reference: str, *, thinking: bool, as_json: bool, is_raw: bool) -> None:
    with database.existing(reference) as (_, debate):
        if as_json:
            write_json(debate.as_json())
        else:
            _print_text(debate, thinking=thinking, is_raw=is_raw)


def _print_text(debate: StoredDebate, *, thinking: bool, is_raw: bool) -> None:
    screen = Renderer(stdout(widest=None), is_raw=is_raw)
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
    screen.objections(record)
    if record["stop"] and debate.status != "done":
        screen.sections.note(f"The rounds ended: {sentence(record['stop']['evidence'])}")
    if debate.error:
        screen.sections.note(f"Failed: {debate.error}")
    if debate.status == "done":
        print_rounds_of(debate)
        print_forecast_of(debate)
        screen.footer(debate)
    else:
        screen.notices(record["degraded"])
    if debate.status in ("paused", "interrupted", "failed"):
        screen.sections.note(f"Continue with: {resume_command(debate.id)}")
