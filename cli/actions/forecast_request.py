"""What `contend ask` needs for a forecast: its request, by outcomes, by file or by a model."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import typer

from contend.cli.view.console import Output, print_message
from contend.cli.view.format import number, one_line
from contend.debates.forecasts import (
    PROTOCOL,
    Proposal,
    check_question,
    parse_outcomes,
    plain_request,
    propose_outcomes,
    read_request,
    with_due,
)
from contend.graph.contract.request import DebateRequest
from contend.graph.contract.terms import MAX_REQUEST_BYTES
from contend.graph.errors import BadInput
from contend.graph.settings import DebateSettings
from contend.graph.values import Seat
from contend.models.seats import is_demonstration

# Calls of some seconds, some thirty of them, on two cores; a guess on the safe side.
_DEMONSTRATION_SECONDS = 600


@dataclass(frozen=True)
class ForecastOptions:
    """The options of a forecast, as they were given."""

    outcomes: Sequence[str] = ()
    request: Path | None = None
    due: str | None = None
    yes: bool = False

    @property
    def given(self) -> list[str]:
        """The names of those that were given."""
        used = {
            "--outcome": self.outcomes,
            "--request": self.request,
            "--due": self.due,
            "--yes": self.yes,
        }
        return [name for name, value in used.items() if value]


def early_request(
    options: ForecastOptions, protocol: str, question: str | None
) -> DebateRequest | None:
    """The request, if it is known without asking a model; refused where it makes no sense."""
    if protocol != PROTOCOL:
        if options.given:
            raise BadInput(f"{options.given[0]} belongs to forecasts: add --protocol forecast.")
        return None
    due = _day(options.due)
    if options.request:
        request = _from_file(options, question)
        return with_due(request, due) if due else request
    outcomes = parse_outcomes(options.outcomes)
    if outcomes and question is not None:
        return plain_request(question, outcomes, due)
    if question is not None:
        check_question(question)
    if not (options.yes or sys.stdin.isatty()):
        raise BadInput(
            "A forecast needs outcomes: give each with --outcome ID: LABEL, or add --yes to take "
            "those that a model proposes."
        )
    return None


def proposed_request(
    question: str,
    options: ForecastOptions,
    seats: Sequence[Seat],
    settings: DebateSettings,
    output: Output,
) -> DebateRequest:
    """The request with the outcomes a model proposes, once somebody has agreed to them."""
    proposal = asyncio.run(propose_outcomes(question, seats, settings))
    due = _day(options.due) or proposal.due
    request = plain_request(question, proposal.outcomes, due)
    if not (output.quiet and options.yes):
        _show(request, proposal)
    if not options.yes and not _agreed():
        raise BadInput(
            'These outcomes were not taken. Give your own, each with --outcome "ID: LABEL".'
        )
    return request


def _agreed() -> bool:
    while True:
        asked = "Take these outcomes? [Y/n]"
        reply = str(typer.prompt(asked, default="y", show_default=False, err=True))
        if reply.strip().casefold() in ("y", "yes", "n", "no"):
            return reply.strip().casefold().startswith("y")
        print_message("Answer y to take them, or n.")


def due_notice(options: ForecastOptions) -> str:
    """That the day given is past, if it is; else nothing."""
    due = _day(options.due)
    if due is None or due >= datetime.now(UTC).date():
        return ""
    return f"--due {due.isoformat()} is in the past: the forecast waits for its outcome at once."


def time_notice(seats: Sequence[Seat], settings: DebateSettings) -> str:
    """That the demonstration model is too slow for the time it has, if it is; else nothing."""
    given = getattr(settings, "overall_timeout", _DEMONSTRATION_SECONDS)
    if given >= _DEMONSTRATION_SECONDS or not is_demonstration(list(seats)):
        return ""
    return (
        f"The demonstration model is slow, and the forecast ends after {given:g} seconds with "
        f"gaps; give it more with --set overall_timeout={_DEMONSTRATION_SECONDS}."
    )


def _from_file(options: ForecastOptions, question: str | None) -> DebateRequest:
    others = [name for name in options.given if name not in ("--request", "--due")]
    if others or question is not None:
        raise BadInput(
            f"--request holds the question and its outcomes: leave {(others or ['QUESTION'])[0]} "
            "out."
        )
    return read_request(_bytes(options.request or Path()))


def _bytes(path: Path) -> bytes:
    try:
        with path.expanduser().open("rb") as file:
            return file.read(MAX_REQUEST_BYTES + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(f"The request {path} cannot be read: {why}.") from error


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"--due must be a day such as 2027-05-01, not '{text}'.") from error


def _show(request: DebateRequest, proposal: Proposal) -> None:
    print_message(
        f"Outcomes proposed by {proposal.model} ({number(proposal.usage.output_tokens)} tokens):"
    )
    context = request.prediction_context
    for outcome in context.outcomes:
        print_message(f"  {outcome.id}: {one_line(f'{outcome.label}. {outcome.description}', 200)}")
    if context.data_summary.timeframe.end:
        print_message(f"  due {context.data_summary.timeframe.end.isoformat()}")
