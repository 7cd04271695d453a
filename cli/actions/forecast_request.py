"""Builds the request for a forecast from options, from a file, or with a model's help."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import typer

from contend.cli.view.console import Output, print_message
from contend.cli.view.format import one_line
from contend.debates import forecasts
from contend.debates.exports.wording import number
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.forecast_contract.terms import MAX_REQUEST_BYTES
from contend.graph.settings import DebateSettings
from contend.graph.values import Seat
from contend.models.budget import Amount
from contend.models.seats import is_small

# A generous estimate for about thirty calls on two cores.
_DEMONSTRATION_SECONDS = 600


@dataclass(frozen=True)
class ForecastOptions:
    outcomes: Sequence[str] = ()
    request: Path | None = None
    due: str | None = None
    yes: bool = False

    @property
    def given(self) -> list[str]:
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
    """Return the forecast request, or None if there is none or a model must propose outcomes."""
    if protocol != forecasts.PROTOCOL:
        if options.given:
            raise BadInput(f"{options.given[0]} works only with --protocol forecast.")
        return None
    due = _day(options.due)
    if options.request:
        request = _from_file(options, question)
        return forecasts.with_due(request, due) if due else request
    outcomes = forecasts.parse_outcomes(options.outcomes)
    if outcomes and question is not None:
        return forecasts.plain_request(question, outcomes, due)
    if question is not None:
        forecasts.check_question(question)
    if not (options.yes or sys.stdin.isatty()):
        raise BadInput(
            'A forecast needs outcomes. Give each with --outcome "ID: LABEL", or add --yes to '
            "accept outcomes proposed by a model."
        )
    return None


def proposed_request(
    question: str,
    options: ForecastOptions,
    seats: Sequence[Seat],
    settings: DebateSettings,
    output: Output,
) -> tuple[DebateRequest, Amount]:
    """Return a request with outcomes that a model proposed and the user accepted, and the cost."""
    proposal = asyncio.run(forecasts.propose_outcomes(question, seats, settings))
    due = _day(options.due) or proposal.due
    request = forecasts.plain_request(question, proposal.outcomes, due)
    if not (output.quiet and options.yes):
        _show(request, proposal)
    if not options.yes and not _agreed():
        raise BadInput(
            'You rejected these outcomes. Give your own, each with --outcome "ID: LABEL".'
        )
    return request, proposal.spent


def _agreed() -> bool:
    while True:
        asked = "Accept these outcomes? [Y/n]"
        reply = str(typer.prompt(asked, default="y", show_default=False, err=True))
        if reply.strip().casefold() in ("y", "yes", "n", "no"):
            return reply.strip().casefold().startswith("y")
        print_message("Answer y or n.")


def due_notice(options: ForecastOptions) -> str:
    due = _day(options.due)
    if due is None or due >= datetime.now(UTC).date():
        return ""
    return f"--due {due.isoformat()} is in the past, so the forecast can be resolved immediately."


def time_notice(seats: Sequence[Seat], settings: DebateSettings) -> str:
    given = getattr(settings, "overall_timeout", _DEMONSTRATION_SECONDS)
    if given >= _DEMONSTRATION_SECONDS or not is_small(list(seats)):
        return ""
    return (
        f"The demonstration model is slow: the forecast stops after {given:g} seconds and will be "
        f"incomplete. Allow more time with --set overall_timeout={_DEMONSTRATION_SECONDS}."
    )


def _from_file(options: ForecastOptions, question: str | None) -> DebateRequest:
    others = [name for name in options.given if name not in ("--request", "--due")]
    if others or question is not None:
        raise BadInput(
            f"--request already contains the question and its outcomes; leave out "
            f"{(others or ['QUESTION'])[0]}."
        )
    path = options.request or Path()
    try:
        with path.expanduser().open("rb") as file:
            return forecasts.read_request(file.read(MAX_REQUEST_BYTES + 1))
    except BadInput as refused:
        raise BadInput(f"{refused} `contend schema` prints the format of a request.") from refused
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(f"The request {path} cannot be read: {why}.") from error


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"--due must be a date such as 2027-05-01, not '{text}'.") from error


def _show(request: DebateRequest, proposal: forecasts.Proposal) -> None:
    print_message(
        f"Outcomes proposed by {proposal.model} ({number(proposal.usage.output_tokens)} tokens):"
    )
    context = request.prediction_context
    for outcome in context.outcomes:
        print_message(f"  {outcome.id}: {one_line(f'{outcome.label}. {outcome.description}', 200)}")
    if context.data_summary.timeframe.end:
        print_message(f"  due {context.data_summary.timeframe.end.isoformat()}")
