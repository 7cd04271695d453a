"""Prints the plan for a debate: its seats, the prices of their models, and the estimate."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime

from contend.cli.view.console import Output, print_hanging, stdout, write_json
from contend.cli.view.format import estimate_words, plain
from contend.debates.estimate import Estimate, estimate
from contend.debates.prepare import PreparedDebate
from contend.graph.settings import DebateSettings
from contend.graph.values import Seat
from contend.models.prices import Price, price_of
from contend.models.providers.registry import parse_spec
from contend.models.seats import models_of


def estimate_line(question: str, settings: DebateSettings, seats: Sequence[Seat]) -> str:
    words = estimate_words(estimate(question, settings, seats), datetime.now(UTC).date())
    return f"Estimate: {words}."


def print_plan(prepared: PreparedDebate, output: Output) -> None:
    """Print the plan for a debate without starting it."""
    settings, seats = prepared.settings, prepared.plan.seats
    if output.json:
        write_json(_as_json(prepared))
        return
    screen, line = stdout(), estimate_line(prepared.question, settings, seats)
    if output.quiet:
        print_hanging(screen, plain(line))
        return
    print_hanging(screen, settings.protocol)
    width = max(len(seat.name) for seat in seats) + 2
    for seat in seats:
        models = ", then ".join(models_of([seat]))
        print_hanging(screen, plain(seat.name.ljust(width) + models), hang=width)
    for each in (prepared.plan.notice, *_price_lines(prepared), line, _NOTHING_STARTED):
        print_hanging(screen, plain(each))


_NOTHING_STARTED = "Nothing was started: no model was called and nothing is recorded."


def _prices(prepared: PreparedDebate) -> dict[str, Price | None]:
    own = prepared.settings.prices
    return {model: price_of(parse_spec(model), own) for model in models_of(prepared.plan.seats)}


def _price_lines(prepared: PreparedDebate) -> list[str]:
    return [f"{model}: {_price_words(model, price)}" for model, price in _prices(prepared).items()]


def _price_words(model: str, price: Price | None) -> str:
    if price is None:
        return f"price unknown; set it with --set 'prices={{\"{model}\": [INPUT, OUTPUT]}}'"
    if not price.input and not price.output:
        return f"free ({price.source})"
    cached = "" if price.cached is None else f"${price.cached:g} cached, "
    read = f", read {price.read}" if price.read else ""
    return (
        f"${price.input:g} in, {cached}${price.output:g} out per million tokens "
        f"({price.source}{read})"
    )


def _as_json(prepared: PreparedDebate) -> dict[str, object]:
    seats, settings = prepared.plan.seats, prepared.settings
    return {
        "question": prepared.question,
        "protocol": settings.protocol,
        "notice": prepared.plan.notice,
        "seats": [seat.model_dump(mode="json") for seat in seats],
        "prices": {model: price and _plain(price) for model, price in _prices(prepared).items()},
        "estimate": _plain(estimate(prepared.question, settings, seats)),
    }


def _plain(facts: Price | Estimate) -> dict[str, object]:
    return {
        name: str(value) if isinstance(value, date) else value
        for name, value in asdict(facts).items()
    }
