import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from langgraph.runtime import RunControl

from contend.cli import database
from contend.cli.actions import forecast_request
from contend.cli.actions.models import progress, show_download
from contend.cli.ending import end_soon
from contend.cli.exit_codes import MODEL_FAILED, OK, PAUSED
from contend.cli.garbage import start_collecting
from contend.cli.person import print_request, read_answer
from contend.cli.signals import on_stop_signal
from contend.cli.view.console import Output, print_message, silence, stderr, stdout, write_json
from contend.cli.view.forecast import print_forecast_of, quiet_lines, round_words
from contend.cli.view.format import counted, larger_budget, plain, resume_command
from contend.cli.view.plan import estimate_line, print_plan, rest_line
from contend.cli.view.renderer import Renderer
from contend.debates import prepare
from contend.debates.events import Event, Watch
from contend.debates.exports.wording import sentence
from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.presets import Preset
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import run_debate
from contend.debates.server_debates import begin_on_server, move_to_server
from contend.debates.servers import ServerAddress
from contend.debates.settings_sources import Given, configure
from contend.debates.spending import spent_by, with_budget
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings import DebateSettings
from contend.graph.settings.forecast import settings_of
from contend.graph.state import Remark
from contend.models.budget import NOTHING
from contend.models.providers.weights import Progress, Weights
from contend.nodes.retrieve import checked_question

# After waiting this long, the user is probably doing something else.
_LONG = 60.0


@dataclass(frozen=True)
class Request:
    question: str | None
    protocol: str
    flags: dict[str, Any]
    model: str | None
    config: Path | None
    preset: Preset | None
    documents: list[Path]
    images: list[Path]
    forecast: forecast_request.ForecastOptions
    dry_run: bool = False
    server: str | None = None


class TerminalReporter(prepare.Reporter):
    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, text: str) -> None:
        print_message(f"Note: {text}", style="warning")

    def fetching(self, weights: Weights) -> AbstractContextManager[Progress]:
        return show_download(weights, quiet=self._quiet)

    def indexing(self, what: str) -> AbstractContextManager[Progress]:
        return progress(f"Indexing the {what}", quiet=self._quiet)


@dataclass(frozen=True)
class _Draft:
    debate: prepare.DebateDraft
    forecast: DebateRequest | None
    reporter: TerminalReporter


def ask_question(request: Request, output: Output) -> int:
    draft = draft_of(request, output)
    if request.dry_run:
        checked = asyncio.run(prepare.check_debate(draft.debate, draft.reporter))
        print_plan(checked, database.past(request.protocol), output)
        return OK
    if request.server is not None:
        return _ask_server(ServerAddress(request.server), draft, output)
    forecast, settings = draft.forecast, draft.debate.settings
    prepared = asyncio.run(prepare.prepare_debate(draft.debate, draft.reporter))
    plan = prepared.plan
    if (notice := forecast_request.time_notice(plan.seats, settings)) and not output.quiet:
        draft.reporter.note(notice)
    with database.records() as records:  # opened here, to find an outage before any paid call
        past, spent = records.past(request.protocol), NOTHING
        expected = estimate_line(prepared.question, prepared.settings, plan.seats, past)
        if forecast is None and request.protocol == FORECAST:
            if not output.quiet:  # a model call is needed to propose outcomes
                print_message(expected)
            question = prepared.question
            forecast, spent = forecast_request.proposed_request(
                question, request.forecast, plan.seats, settings, output
            )
        debate = prepare.write_debate(records, prepared, forecast)
        if spent != NOTHING:
            records.spending.put(debate.id, "outcomes", spent)
        return _Session(records, debate, output, plan.notice, expected).run(Remark())


def _ask_server(address: ServerAddress, draft: _Draft, output: Output) -> int:
    settings = draft.debate.settings
    if settings.protocol == FORECAST and draft.forecast is None:
        raise BadInput("A forecast on a server needs outcomes. Give each with --outcome.")
    with database.records() as records:
        given = records, address, draft.debate, draft.forecast, str(uuid4())
        debate = asyncio.run(begin_on_server(*given))
        return _Session(records, debate, output, f"Runs on {debate.ran_on}.").run(Remark())


def draft_of(request: Request, output: Output) -> _Draft:
    question = None if request.question is None else read_question(request.question)
    forecast = forecast_request.early_request(request.forecast, request.protocol, question)
    if question is None:
        if forecast is None:
            raise BadInput("--request works only with --protocol forecast.")
        question = forecast.prediction_context.task.question
    asked = settings_of(forecast) if request.forecast.request and forecast else {}
    flags = asked | request.flags
    configured = configure(
        request.protocol,
        flags,
        request.model,
        request.config,
        dict(os.environ),
        request.preset,
    )
    draft = prepare.draft_debate(question, configured.settings, request.documents, request.images)
    reporter = TerminalReporter(quiet=output.quiet)
    notices = [
        *configured.notices,
        *draft.attachments.notices,
        forecast_request.due_notice(request.forecast),
    ]
    for notice in [] if output.quiet else filter(None, notices):
        reporter.note(notice)
    return _Draft(draft, forecast, reporter)


def resume_debate(
    reference: str,
    remark: Remark,
    changes: Mapping[str, Given],
    output: Output,
    server: str | None = None,
) -> int:
    with database.existing(reference) as (records, found):
        debate = found
        if server is not None:
            debate = asyncio.run(move_to_server(records, found, ServerAddress(server)))
        settings: DebateSettings | None = None
        if debate.status != "done":
            if changes:
                settings = with_budget(records, debate, changes)
            reporter = TerminalReporter(quiet=output.quiet)
            asyncio.run(prepare.prepare_resume(debate, reporter, settings))
        notice = f"Resumed with {counted(len(debate.turns), 'turn')} so far."
        past, current = records.past(debate.protocol), settings or debate.as_settings()
        state = debate.as_state()
        spent = spent_by(records, debate.id, current, state)
        expected = rest_line(state, current, past, spent)
        return _Session(records, debate, output, notice, expected, settings=settings).run(remark)


def run_stored(
    records: Repository, debate: StoredDebate, output: Output, notice: str, say: str = ""
) -> int:
    return _Session(records, debate, output, notice).run(Remark(say=say))


def read_question(given: str) -> str:
    question = _read_stdin() if given == "-" else given
    if not question.strip():
        raise BadInput('The question is empty. Give one in quotes: contend ask "...".')
    return checked_question(question)


def _read_stdin() -> str:
    if sys.stdin.isatty():
        print_message("Type the question, then press Ctrl-D.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadInput("The question on stdin is not UTF-8 text.") from error


class _Session:
    def __init__(
        self,
        records: Repository,
        debate: StoredDebate,
        output: Output,
        *notices: str,
        settings: DebateSettings | None = None,
    ) -> None:
        self._records, self._debate, self._output = records, debate, output
        self._settings = settings  # overrides the debate's own settings
        self._control = RunControl()
        self._renderer: Renderer | None = None
        if not (output.quiet or output.events):
            console = stderr(widest=None) if output.json else stdout(widest=None)
            self._renderer = Renderer(console, is_raw=output.plain)
        self._notices, self._said, self._signals = notices, "", 0
        self._has_header = False

    def run(self, remark: Remark) -> int:
        is_answer = self._turn_of_person() is not None
        self._said = "" if is_answer else remark.say
        start_collecting()
        try:
            ended = asyncio.run(self._run(remark))
            while ended.status == "paused" and (asked := self._turn_of_person()):
                print_request(asked)
                if not (text := read_answer()):
                    break
                ended = asyncio.run(self._run(Remark(say=text)))
        except BadInput:
            raise
        except Exception:
            print_message(f"Continue with: {resume_command(self._debate.id)}")
            raise
        finally:
            if self._renderer:
                self._guarded(self._renderer.sections.end)()
        return self._close(ended)

    def _turn_of_person(self) -> dict[str, Any] | None:
        asked = None
        if any(seat.is_human for seat in self._debate.as_state().get("seats", [])):
            with suppress(DatabaseUnavailable):  # paused by an outage, which is reported elsewhere
                asked = self._records.journal.pending_request(self._debate.id)
        return asked if asked and "seat" in asked else None

    async def _run(self, remark: Remark) -> StoredDebate:
        given = self._records, self._debate, self._watch(), self._control, remark
        running = asyncio.create_task(run_debate(*given, settings=self._settings))
        on_stop_signal(partial(self._stop, running))
        try:
            return await running
        except asyncio.CancelledError:
            if self._signals < 2:
                raise RuntimeError("another process took over this debate") from None
            return self._records.find(self._debate.id)

    def _stop(self, running: asyncio.Task[StoredDebate]) -> None:
        self._signals += 1
        if self._signals == 1:
            self._control.request_drain("signal")
            self._say("Finishing the current turn; press Ctrl-C again to stop immediately.")
        elif self._signals == 2:
            end_soon(f"Stopped. Continue with: {resume_command(self._debate.id)}")
            running.cancel()

    def _watch(self) -> Watch:
        if self._output.events:
            return self._guarded(partial(write_json, one_line=True))
        if self._renderer:
            return self._guarded(partial(self._show, self._renderer))
        return lambda _: None

    def _show(self, renderer: Renderer, event: Event) -> None:
        if event["event"] in ("debate_start", "resumed") and not self._has_header:
            self._has_header = True
            renderer.header(self._debate, *self._notices)
            if self._debate.as_state().get("stop"):
                renderer.sections.end_rounds()
            if self._said.strip():
                renderer.remark(self._said)
        renderer.show(event)
        if event["event"] == "round_complete" and "summary" in event["metadata"]:
            renderer.sections.note(round_words(event["metadata"]))

    def _guarded(self, show: Callable[..., None]) -> Callable[..., None]:
        """Wrap `show` to pause the debate if stdout is closed, and to ignore a closed stderr."""
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
                    self._control.request_drain("stdout was closed")

        return guarded

    def _say(self, message: str) -> None:
        if self._renderer:
            self._guarded(self._renderer.sections.break_line)()
        if not self._output.quiet:
            print_message(message, style="warning")
        if self._renderer:
            self._guarded(self._renderer.sections.resume_waiting)()

    def _close(self, ended: StoredDebate) -> int:
        if self._renderer:
            self._renderer.ring_after(_LONG)
            self._guarded(partial(print_forecast_of, to_stderr=self._output.json))(ended)
            self._guarded(self._renderer.footer)(ended)
        self._guarded(self._print_result)(ended)
        again = resume_command(ended.id)
        if ended.status == "done":
            return OK
        if ended.status == "failed":
            why = sentence(ended.error or "the debate failed")
            print_message(f"Error: {why} Progress is saved. Continue with: {again}", "error")
            return MODEL_FAILED
        if ended.is_out_of_budget:
            print_message(
                f"Paused: {sentence(ended.error or '')} Progress is saved. Continue with a larger "
                f"budget: {again} {larger_budget(ended.as_settings())}",
                "warning",
            )
        elif ended.error:
            print_message(
                f"Paused: {sentence(ended.error)} Progress is saved. When the database is "
                f"available again, continue with: {again}",
                "error",
            )
        elif self._turn_of_person():
            print_message(f'Paused. Answer with: {again} --say "..."', "warning")
        else:
            print_message(f"Paused. Continue with: {again}", "warning")
        return PAUSED

    def _print_result(self, ended: StoredDebate) -> None:
        if self._output.json:
            write_json(ended.as_json())
        elif self._output.quiet and not self._output.events and ended.status == "done":
            answer, forecast = ended.as_state().get("final_answer", ""), ended.state.get("forecast")
            lines = [answer, *(quiet_lines(forecast) if forecast else [])]
            for caution in ended.as_record().warnings:
                print_message(f"Caution: {caution}", style="warning")
            sys.stdout.write(plain("\n".join(lines)) + "\n")
            sys.stdout.flush()
