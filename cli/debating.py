"""Runs a debate for the terminal: what to check, whom to show it to, how it may be stopped."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.runtime import RunControl

from cli import data
from cli.consoles import Output, silence, stderr, stdout, tell, write_json
from cli.exits import MODEL_FAILED, OK, PAUSED
from cli.pulling import pull_missing
from cli.render import Renderer
from cli.words import counted, resume_command
from debates.configuration import configure, parse_assignments
from debates.events import Event, Watch
from debates.exports.words import sentence
from debates.records import Debate, Records
from debates.runner import run_debate, write_debate
from graph.errors import BadInput
from graph.settings import SETTINGS, DebateSettings
from graph.state import Remark, Seat
from models.seating import choose_seats, preflight
from nodes.retrieve import checked_question

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@dataclass(frozen=True)
class Request:
    """What `contend ask` was given."""

    question: str
    protocol: str
    model: str | None
    assignments: list[str]
    config: Path | None


def ask_question(request: Request, output: Output) -> int:
    """Check, seat and run a new debate; nothing is kept of one that is refused."""
    question = _read_question(request.question)
    if not question.strip():
        raise BadInput('The question is empty. Give one in quotes: contend ask "...".')
    question = checked_question(question)
    flags = parse_assignments(request.assignments)
    configured = configure(request.protocol, flags, request.model, request.config, dict(os.environ))
    for notice in [] if output.quiet else configured.notices:
        tell(f"Note: {notice}", style="yellow")
    seating = asyncio.run(choose_seats(configured.settings))
    _make_ready(seating.seats, configured.settings, question, output)
    with data.records() as records:
        debate = write_debate(records, question, configured.settings, seating)
        return _Session(records, debate, output, seating.notice).run(Remark())


def resume_debate(reference: str, say: str, output: Output, *, finish: bool) -> int:
    """Go on with a stopped debate."""
    with data.existing(reference) as (records, debate):
        if debate.status != "done":
            settings = SETTINGS[debate.protocol].model_validate(debate.settings)
            _make_ready(debate.as_state()["seats"], settings, debate.question, output)
        notice = f"Resumed with {counted(len(debate.turns), 'turn')} so far."
        return _Session(records, debate, output, notice).run(Remark(say=say, finish=finish))


def _read_question(given: str) -> str:
    if given != "-":
        return given
    if sys.stdin.isatty():
        tell("Type the question; end it with Ctrl-D.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape").rstrip("\r\n")


def _make_ready(seats: list[Seat], settings: DebateSettings, question: str, output: Output) -> None:
    """Fetch embedded weights that are missing, then find whatever would fail later."""
    pull_missing(seats, quiet=output.quiet)
    try:
        asyncio.run(preflight(seats, settings, question))
    except BadInput as refused:
        raise BadInput(f"{refused}{_askers(str(refused), seats)}") from refused


def _askers(refusal: str, seats: list[Seat]) -> str:
    """Which seats want the key that is missing, unless all of them do."""
    key, missing, _ = refusal.partition("_API_KEY is not set")
    if not missing:
        return ""
    wanted = f"{key.lower()}:"
    asking = [s.name for s in seats if any(m.startswith(wanted) for m in _models_of(s))]
    return f" Asked for by: {', '.join(asking)}." if 0 < len(asking) < len(seats) else ""


def _models_of(seat: Seat) -> list[str]:
    return [seat.model, *seat.fallback_models]


class _Session:
    """One run of one debate, watched from this terminal."""

    def __init__(self, records: Records, debate: Debate, output: Output, notice: str) -> None:
        self._records, self._debate, self._output = records, debate, output
        self._control = RunControl()
        self._renderer = _renderer(output)
        self._notice, self._said = notice, ""

    def run(self, remark: Remark) -> int:
        """Run it and say how it ended; the exit code says the same."""
        self._said = remark.say
        gc.enable()
        try:
            ended = asyncio.run(self._run(remark))
        except BadInput:
            raise
        except Exception:
            tell(f"Go on with: {resume_command(self._debate.id)}")
            raise
        finally:
            if self._renderer:
                self._renderer.stop_waiting()
        return self._close(ended)

    async def _run(self, remark: Remark) -> Debate:
        running = asyncio.create_task(
            run_debate(self._records, self._debate, self._watch(), self._control, remark)
        )
        stopper = _Stopper(self._control, running, self._say)
        with stopper.listening():
            try:
                return await running
            except asyncio.CancelledError:
                if not stopper.cancelled:
                    raise RuntimeError("another process took this debate over") from None
                return self._records.find(self._debate.id)

    def _watch(self) -> Watch:
        if self._output.events:
            return self._guarded(_print_event)
        if self._renderer:
            return self._guarded(partial(self._show, self._renderer))
        return lambda _: None

    def _show(self, renderer: Renderer, event: Event) -> None:
        """Render an event; the header waits for the first, since a run may yet be refused."""
        if event["event"] in ("debate_start", "resumed"):
            renderer.header(self._debate, self._notice)
            if self._said.strip():
                renderer.remark(self._said)
        renderer.show(event)

    def _guarded(self, show: Callable[..., None]) -> Callable[..., None]:
        """A reader that has gone must not fail the debate: without one on stdout it is paused."""
        on_stdout = not self._output.json
        gone = False

        def guarded(*given: Any) -> None:
            nonlocal gone
            if gone:
                return
            try:
                show(*given)
            except OSError:
                gone = True
                silence(sys.stdout if on_stdout else sys.stderr)
                if on_stdout:
                    self._control.request_drain("the reader has gone")

        return guarded

    def _say(self, message: str) -> None:
        """A word in between, on a line of its own."""
        if self._renderer:
            self._guarded(self._renderer.break_line)()
        if not self._output.quiet:
            tell(message, style="yellow")

    def _close(self, ended: Debate) -> int:
        if self._renderer:
            self._guarded(self._renderer.footer)(ended)
        self._guarded(self._print_result)(ended)
        again = resume_command(ended.id)
        if ended.status == "done":
            return OK
        if ended.status == "failed":
            why = sentence(ended.error or "the debate failed")
            tell(f"Error: {why} Everything so far is kept; go on with: {again}", "red")
            return MODEL_FAILED
        tell(f"Paused. Go on with: {again}", "yellow")
        return PAUSED

    def _print_result(self, ended: Debate) -> None:
        if self._output.json:
            write_json(ended.as_json())
        elif self._output.quiet and not self._output.events and ended.status == "done":
            sys.stdout.write(f"{ended.as_state().get('final_answer', '')}\n")
            sys.stdout.flush()


class _Stopper:
    """The first signal pauses after the current turn, the second stops at once."""

    def __init__(
        self, control: RunControl, running: asyncio.Task[Debate], say: Callable[[str], None]
    ) -> None:
        self._control, self._running, self._say = control, running, say
        self._asked = False
        self.cancelled = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals over while the debate runs."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            try:
                loop.add_signal_handler(number, self._stop)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._stop))
        yield

    def _stop(self) -> None:
        if not self._asked:
            self._asked = True
            self._control.request_drain("signal")
            self._say("Finishing the current turn; press Ctrl-C again to stop at once.")
        elif not self.cancelled:
            self.cancelled = True
            self._running.cancel()


def _renderer(output: Output) -> Renderer | None:
    if output.quiet or output.events:
        return None
    return Renderer(stderr() if output.json else stdout())


def _print_event(event: Event) -> None:
    write_json(event, one_line=True)
