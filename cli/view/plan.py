"""What a debate would take: its seats, the prices of their models, and the estimate."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from contend.cli.view.console import Output, print_hanging, stdout, write_json
from contend.cli.view.format import estimate_words, plain
from contend.debates.estimate import estimate
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
    """Print the plan of a debate that is not started."""
    settings, seats = prepared.settings, prepared.plan.seats
    line = estimate_line(prepared.question, settings, seats)
    if output.json:
        write_json(_as_json(prepared))
        return
    shown = [line] if output.quiet else [*_plan_lines(prepared), line, _NOTHING_STARTED]
    for each in shown:
        print_hanging(stdout(), plain(each), hang=2)


_NOTHING_STARTED = "Nothing was started: no model was called and nothing is recorded."


def _plan_lines(prepared: PreparedDebate) -> list[str]:
    seats = prepared.plan.seats
    widest = max(len(seat.name) for seat in seats)
    roles = [f"{seat.name.ljust(widest)}  {', then '.join(models_of([seat]))}" for seat in seats]
    prices = [
        f"{model}: {_price_words(price_of(parse_spec(model), prepared.settings.prices))}"
        for model in dict.fromkeys(models_of(seats))
    ]
    return [prepared.settings.protocol, *roles, prepared.plan.notice, *prices]


def _price_words(price: Price | None) -> str:
    if price is None:
        return "price unknown; set it with `prices`"
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
    found = asdict(estimate(prepared.question, settings, seats))
    found["prices_read"] = str(found["prices_read"]) if found["prices_read"] else None
    return {
        "question": prepared.question,
        "protocol": settings.protocol,
        "notice": prepared.plan.notice,
        "seats": [seat.model_dump(mode="json") for seat in seats],
        "estimate": found,
    }
