"""Runs a debate for the terminal: what to check, whom to show it to, how it may be stopped."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.runtime import RunControl

from contend.cli import database
from contend.cli.actions.forecast_request import (
    ForecastOptions,
    due_notice,
    early_request,
    proposed_request,
    time_notice,
)
from contend.cli.actions.models import progress, pull_embedding, pull_missing
from contend.cli.exit_codes import MODEL_FAILED, OK, PAUSED
from contend.cli.view.console import Output, print_message, silence, stderr, stdout, write_json
from contend.cli.view.forecast import print_forecast_of, quiet_lines, round_words
from contend.cli.view.format import counted, resume_command
from contend.cli.view.renderer import Renderer
from contend.debates.attachments import (
    Attachments,
    check_kept,
    keep_attachments,
    read_attachments,
)
from contend.debates.events import Event, Watch
from contend.debates.exports.labels import sentence
from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.outputs import check_writable
from contend.debates.repository import Repository, StoredDebate
from contend.debates.run import run_debate, write_debate
from contend.debates.settings_sources import (
    configure,
    parse_assignments,
    parse_positions,
    parse_seats,
)
from contend.graph.errors import BadInput
from contend.graph.settings import DebateSettings
from contend.graph.settings.forecast import settings_of
from contend.graph.state import DebateState, Remark, Seat
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder, EmbeddingFailed, warm_up
from contend.models.seats import check_sight, choose_seats, models_of, preflight
from contend.nodes.retrieve import checked_question
from contend.retrieval.template_search import open_searcher

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@dataclass(frozen=True)
class Files:
    """What was brought along."""

    documents: list[Path]
    images: list[Path]


@dataclass(frozen=True)
class Sides:
    """Who was laid a place by an option of its own."""

    seats: list[str]
    positions: list[str]


@dataclass(frozen=True)
class Request:
    """What `contend ask` was given."""

    question: str | None
    protocol: str
    model: str | None
    sides: Sides
    assignments: list[str]
    config: Path | None
    files: Files
    forecast: ForecastOptions


def ask_question(request: Request, output: Output) -> int:
    """Check, seat and run a new debate; nothing is kept of one that is refused."""
    question = None if request.question is None else _asked(request.question)
    forecast = early_request(request.forecast, request.protocol, question)
    if question is None:
        if forecast is None:
            raise BadInput("--request belongs to forecasts: add --protocol forecast.")
        question = checked_question(forecast.prediction_context.task.question)
    flags = {
        **(settings_of(forecast) if request.forecast.request and forecast else {}),
        **parse_assignments(request.assignments),
        **parse_seats(request.protocol, request.sides.seats),
        **parse_positions(request.protocol, request.sides.positions),
    }
    configured = configure(request.protocol, flags, request.model, request.config, dict(os.environ))
    settings = configured.settings
    files = request.files
    brought = read_attachments(files.documents, files.images, settings.files_of_seats())
    for notice in [] if output.quiet else [*configured.notices, *brought.notices]:
        print_message(f"Note: {notice}", style="yellow")
    seating = asyncio.run(choose_seats(settings))
    odd = (due_notice(request.forecast), time_notice(seating.seats, settings))
    for notice in [] if output.quiet else filter(None, odd):
        print_message(f"Note: {notice}", style="yellow")
    if settings.templates or brought.documents:
        warm_up(seating.embedding_model)
    given: DebateState = {"documents": brought.documents, "images": brought.images}
    _make_ready({**given, "question": question, "seats": seating.seats}, settings, output)
    if settings.folder_plan is not None:
        check_writable(settings.folder_plan.base)
    _make_ready_to_search(seating.embedding_model, settings, brought, output)
    with database.records() as records:  # one that is away is told before a model is asked anything
        if forecast is None and request.protocol == FORECAST:
            forecast = proposed_request(question, request.forecast, seating.seats, settings, output)
        debate = write_debate(records, question, settings, seating, brought, forecast)
        return _Session(records, debate, output, seating.notice).run(Remark())


def resume_debate(reference: str, say: str, output: Output, *, finish: bool) -> int:
    """Go on with a stopped debate."""
    with database.existing(reference) as (records, debate):
        if debate.status != "done":
            settings = debate.as_settings()
            state = debate.as_state()
            check_kept(state.get("documents", []), state.get("images", []))
            _make_ready(state, settings, output)
        notice = f"Resumed with {counted(len(debate.turns), 'turn')} so far."
        return _Session(records, debate, output, notice).run(Remark(say=say, finish=finish))


def _asked(given: str) -> str:
    question = _read_question(given)
    if not question.strip():
        raise BadInput('The question is empty. Give one in quotes: contend ask "...".')
    return checked_question(question)


def _read_question(given: str) -> str:
    if given != "-":
        return given
    if sys.stdin.isatty():
        print_message("Type the question; end it with Ctrl-D.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadInput("What came from stdin is not UTF-8 text.") from error


def _make_ready(state: DebateState, settings: DebateSettings, output: Output) -> None:
    """Fetch embedded weights that are missing, then find whatever would fail later."""
    seats = state["seats"]
    documents, images = state.get("documents", []), state.get("images", [])
    check_sight(seats, settings, images)  # before anything large is fetched in vain
    pull_missing(seats, quiet=output.quiet)
    checks = preflight(seats, settings, state["question"], documents=documents, images=images)
    try:
        asyncio.run(checks)
    except BadInput as refused:
        raise BadInput(f"{refused}{_askers(str(refused), seats)}") from refused


def _make_ready_to_search(
    embedding_model: str, settings: DebateSettings, brought: Attachments, output: Output
) -> None:
    """Fetch the embedding model if it is missing, and index the documents.

    Templates are a help, so that a debate can begin without; documents are what it argues from.
    """
    if settings.templates or brought.documents:
        try:
            pull_embedding(embedding_model, quiet=output.quiet)
        except BadInput as unavailable:
            if brought.documents:
                raise
            print_message(f"Note: {unavailable}", style="yellow")
    if settings.templates and embedding_model == EMBEDDED_EMBEDDING:
        # The first time takes some seconds, which nobody should spend before an empty screen.
        with (
            progress("Indexing the templates", quiet=output.quiet) as on_progress,
            suppress(EmbeddingFailed),  # the debate tells it, and goes on without
        ):
            asyncio.run(open_searcher(Embedder(embedding_model, settings), on_progress))
    with progress("Indexing the documents", quiet=output.quiet) as on_progress:
        notice = asyncio.run(keep_attachments(brought, settings, embedding_model, on_progress))
    if notice:
        print_message(f"Note: {notice}", style="yellow")


def _askers(refusal: str, seats: list[Seat]) -> str:
    """Which seats want the key that is missing, unless all of them do."""
    key, missing, _ = refusal.partition("_API_KEY is not set")
    if not missing:
        return ""
    wanted = f"{key.lower()}:"
    asking = [s.name for s in seats if any(m.startswith(wanted) for m in models_of([s]))]
    return f" Asked for by: {', '.join(asking)}." if 0 < len(asking) < len(seats) else ""


class _Session:
    """One run of one debate, watched from this terminal."""

    def __init__(
        self, records: Repository, debate: StoredDebate, output: Output, notice: str
    ) -> None:
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
            print_message(f"Go on with: {resume_command(self._debate.id)}")
            raise
        finally:
            if self._renderer:
                self._renderer.stop_waiting()
        return self._close(ended)

    async def _run(self, remark: Remark) -> StoredDebate:
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
            if self._debate.as_state().get("stop"):
                renderer.end_rounds()
            if self._said.strip():
                renderer.remark(self._said)
        renderer.show(event)
        if event["event"] == "round_complete" and "summary" in event["metadata"]:
            renderer.note(round_words(event["metadata"]))

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
            print_message(message, style="yellow")
        if self._renderer:
            self._guarded(self._renderer.resume_waiting)()

    def _close(self, ended: StoredDebate) -> int:
        if self._renderer:
            self._guarded(partial(print_forecast_of, to_stderr=self._output.json))(ended)
            self._guarded(self._renderer.footer)(ended)
        self._guarded(self._print_result)(ended)
        again = resume_command(ended.id)
        if ended.status == "done":
            return OK
        if ended.status == "failed":
            why = sentence(ended.error or "the debate failed")
            print_message(f"Error: {why} Everything so far is kept; go on with: {again}", "red")
            return MODEL_FAILED
        if ended.error:
            print_message(
                f"Paused: {sentence(ended.error)} Everything paid for is kept; when it can be "
                f"used again, go on with: {again}",
                "red",
            )
        else:
            print_message(f"Paused. Go on with: {again}", "yellow")
        return PAUSED

    def _print_result(self, ended: StoredDebate) -> None:
        if self._output.json:
            write_json(ended.as_json())
        elif self._output.quiet and not self._output.events and ended.status == "done":
            answer, forecast = ended.as_state().get("final_answer", ""), ended.state.get("forecast")
            sys.stdout.write("\n".join([answer, *(quiet_lines(forecast) if forecast else [])]))
            sys.stdout.write("\n")
            sys.stdout.flush()


class _Stopper:
    """The first signal pauses after the current turn, the second stops at once."""

    def __init__(
        self, control: RunControl, running: asyncio.Task[StoredDebate], say: Callable[[str], None]
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
    return Renderer(stderr(widest=None) if output.json else stdout(widest=None))


def _print_event(event: Event) -> None:
    write_json(event, one_line=True)
