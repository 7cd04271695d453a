from dataclasses import dataclass

from contend.cli import database
from contend.cli.view.console import stdout, write_json
from contend.cli.view.forecast import print_forecast_of, words_of_rounds
from contend.cli.view.format import resume_command
from contend.cli.view.pager import paged
from contend.cli.view.renderer import Renderer
from contend.debates.exports.wording import closings_begin, local_time, sentence
from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.graph.phases import PHASES
from contend.graph.state import Turn


@dataclass(frozen=True)
class ShownPart:
    round: int | None = None
    turn: str = ""
    thinking: bool = False
    full: bool = False

    @property
    def is_part(self) -> bool:
        return self.round is not None or bool(self.turn)


def print_debate(reference: str, wanted: ShownPart, *, as_json: bool, is_raw: bool) -> None:
    with database.existing(reference) as (_, debate):
        if as_json:
            write_json(debate.as_json())
            return
        turns = _selected(debate, wanted)
        with paged():
            screen = Renderer(stdout(widest=None), is_raw=is_raw)
            if wanted.is_part:
                _print_part(screen, debate, turns, wanted)
            else:
                _print_all(screen, debate, wanted)


def _selected(debate: StoredDebate, wanted: ShownPart) -> list[Turn]:
    found = [turn for turn in debate.turns if wanted.round in (None, turn.round)]
    if wanted.turn:
        found = [turn for turn in found if turn.id == wanted.turn] or [
            turn for turn in found if turn.id.startswith(wanted.turn)
        ]
        if len(found) != 1:
            known = ", ".join(turn.id for turn in debate.turns) or "none"
            which = "several turns" if found else "no turn"
            raise BadInput(
                f"'{wanted.turn}' names {which} of debate {debate.id[:8]}. Turns: {known}."
            )
    elif wanted.is_part and not found:
        last = max((turn.round for turn in debate.turns), default=0)
        raise BadInput(f"Debate {debate.id[:8]} has no round {wanted.round}; its last is {last}.")
    return found


def _print_part(
    screen: Renderer, debate: StoredDebate, turns: list[Turn], wanted: ShownPart
) -> None:
    screen.prepare(debate)
    for turn in turns:
        whole = bool(wanted.turn) or wanted.full
        if whole or turn.phase != "score":
            screen.turn(turn, thinking=wanted.thinking, whole=whole)


def _print_all(screen: Renderer, debate: StoredDebate, wanted: ShownPart) -> None:
    place = f" on {debate.ran_on}" if debate.ran_on else ""
    about = f"{debate.status}, started {local_time(debate.created_at)}{place}."
    screen.header(debate, about.capitalize())
    record = debate.as_json()
    screen.overview(record)
    closings, results = closings_begin(debate.turns), words_of_rounds(debate)
    last = {turn.round: turn.id for turn in debate.turns if not PHASES[turn.phase].after_rounds}
    for at, turn in enumerate(debate.turns):
        if at == closings:
            screen.sections.end_rounds()
        if turn.phase != "score" or wanted.full:
            screen.turn(turn, thinking=wanted.thinking, whole=wanted.full)
        if turn.id == last.get(turn.round) and turn.round in results:
            screen.sections.note(results[turn.round])
    screen.eliminations()
    if record["stop"] and debate.status != "done":
        screen.sections.note(f"The rounds ended: {sentence(record['stop']['evidence'])}")
    if debate.error:
        how = "Paused" if debate.is_out_of_budget else "Failed"
        screen.sections.note(f"{how}: {debate.error}")
    if debate.status == "done":
        print_forecast_of(debate)
        screen.footer(debate)
    else:
        screen.notices(record["degraded"])
    if debate.status in ("paused", "interrupted", "failed"):
        screen.sections.note(f"Continue with: {resume_command(debate.id)}")
