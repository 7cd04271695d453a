import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from contend.cli import database
from contend.cli.actions.ask import TerminalReporter, run_stored
from contend.cli.exit_codes import DIFFERS, OK
from contend.cli.view.console import Output, stdout, write_json
from contend.cli.view.format import counted, plain
from contend.cli.view.renderer import Renderer
from contend.debates import replay
from contend.debates.events import Event, Watch
from contend.debates.fork import ForkPoint, run_again
from contend.debates.record import StoredDebate
from contend.debates.replay import Difference
from contend.graph.errors import BadInput


def play(reference: str, speed: float, *, as_events: bool, is_raw: bool) -> int:
    with database.existing(reference) as (records, debate):
        records.store_missing_events(debate.id)
        stored = [each.as_event() for each in records.journal.read(debate.id, 0)]
    if not stored:
        raise BadInput(f"Debate {debate.id[:8]} has not begun; there is nothing to play back.")
    if as_events:
        events = replay.with_simulated_chunks(stored)
        asyncio.run(replay.play_events(events, partial(write_json, one_line=True), speed))
        return OK
    renderer = Renderer(stdout(widest=None), is_raw=is_raw)
    show_events(stored, renderer, debate, speed)
    renderer.footer(debate)
    return OK


def show_events(
    stored: Sequence[Event], renderer: Renderer, debate: StoredDebate, speed: float
) -> None:
    events = replay.with_simulated_chunks(stored)
    try:
        asyncio.run(replay.play_events(events, _show(renderer, debate), speed))
    finally:
        renderer.sections.end()


def replay_until(
    reference: str, where: str, *, as_json: bool, as_events: bool, is_raw: bool
) -> int:
    """Rerun a debate as a new one, with recorded replies up to a point and model calls after it."""
    point, output = ForkPoint.parse(where), Output(as_json, as_events, plain=is_raw)
    with database.existing(reference) as (records, parent):
        reporter = TerminalReporter(quiet=output.quiet)
        again = asyncio.run(run_again(records, parent, point, reporter))
        notice = f"Replays debate {parent.id[:8]} up to {where}; models speak after that."
        return run_stored(records, again, output, notice)


def _show(renderer: Renderer, debate: StoredDebate) -> Watch:
    def show(event: Event) -> None:
        if event["event"] == "debate_start":
            renderer.header(debate, "Replay of a recorded debate; no model is called.")
        renderer.show(event)

    return show


def check_path(reference: str, *, as_json: bool) -> int:
    with database.existing(reference) as (records, debate):
        replayed = asyncio.run(replay.replay_strictly(records, debate))
    if as_json:
        write_json(asdict(replayed))
    else:
        _print(replayed)
    return DIFFERS if replayed.differences else OK


def _print(replayed: replay.Replayed) -> None:
    screen = stdout()
    done = f"{counted(replayed.steps, 'step')} with {counted(replayed.calls, 'recorded call')}"
    if not replayed.differences:
        screen.print(f"Replayed {done}: everything matches the recording.", style="success")
        return
    found = counted(len(replayed.differences), "difference")
    screen.print(f"Replayed {done}: {found}.", style="error")
    for each in replayed.differences:
        screen.print(_line(each), markup=False, soft_wrap=True)


def _line(difference: Difference) -> str:
    number = "" if difference.round is None else f"Round {difference.round}, "
    return plain(f"- {number}{', '.join(difference.nodes)}: {difference.what}")
