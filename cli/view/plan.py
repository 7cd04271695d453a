from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime

from contend.cli.view.console import Output, print_hanging, stdout, write_json
from contend.cli.view.format import counted, estimate_table, estimate_words, plain
from contend.debates.estimate import Estimate, estimate
from contend.debates.past import PastDebate
from contend.debates.prepare import PreparedDebate
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState
from contend.graph.values import Seat
from contend.models.budget import NOTHING, Amount, cap_of, cap_words
from contend.models.prices import Price, price_of
from contend.models.providers.registry import parse_spec
from contend.models.seats import models_of


def estimate_line(
    question: str,
    settings: DebateSettings,
    seats: Sequence[Seat],
    past: Sequence[PastDebate] = (),
) -> str:
    found = estimate(question, settings, seats, past)
    return f"Estimate: {_estimate_words(found, settings)}"


def rest_line(
    state: DebateState, settings: DebateSettings, past: Sequence[PastDebate], spent: Amount
) -> str:
    found = estimate(state["question"], settings, state["seats"], past, state)
    return f"Estimate of the rest: {_estimate_words(found, settings, spent)}"


def _estimate_words(found: Estimate, settings: DebateSettings, spent: Amount = NOTHING) -> str:
    words = estimate_words(found, datetime.now(UTC).date())
    return " ".join([f"{words}.", *_budget_words(found, settings, spent)])


def _budget_words(found: Estimate, settings: DebateSettings, spent: Amount = NOTHING) -> list[str]:
    cap = cap_of(settings)
    if cap is None:
        return []
    most = spent + Amount(found.tokens[1], found.cost_usd[1] if found.cost_usd else 0)
    may_end = ", which may end it earlier" if most.share_of(cap) > 1 else ""
    return [f"Its budget is {cap_words(cap)}{may_end}."]


def print_plan(prepared: PreparedDebate, past: Sequence[PastDebate], output: Output) -> None:
    settings, seats = prepared.settings, prepared.plan.seats
    if output.json:
        write_json(_as_json(prepared, past))
        return
    screen, line = stdout(), estimate_line(prepared.question, settings, seats, past)
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


def print_estimate(prepared: PreparedDebate, past: Sequence[PastDebate], output: Output) -> None:
    if output.json:
        write_json(_as_json(prepared, past))
        return
    settings, seats = prepared.settings, prepared.plan.seats
    found, screen = estimate(prepared.question, settings, seats, past), stdout()
    for row in estimate_table(found):
        print_hanging(screen, row)
    if output.quiet:
        return
    for each in (_basis(found), *_budget_words(found, settings), prepared.plan.notice):
        print_hanging(screen, plain(each))


def _basis(found: Estimate) -> str:
    debates = found.likely.debates if found.likely else 0
    if not debates:
        return "No past debate is similar, so `likely` is the midpoint."
    return f"`likely` is the median of {counted(debates, 'past debate')}."


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
    read = f", as of {price.read}" if price.read else ""
    return (
        f"${price.input:g} in, {cached}${price.output:g} out per million tokens "
        f"({price.source}{read})"
    )


def _as_json(prepared: PreparedDebate, past: Sequence[PastDebate]) -> dict[str, object]:
    seats, settings = prepared.plan.seats, prepared.settings
    return {
        "question": prepared.question,
        "protocol": settings.protocol,
        "notice": prepared.plan.notice,
        "seats": [seat.model_dump(mode="json") for seat in seats],
        "prices": {model: price and _plain(price) for model, price in _prices(prepared).items()},
        "estimate": _plain(estimate(prepared.question, settings, seats, past)),
    }


def _plain(facts: Price | Estimate) -> dict[str, object]:
    return {
        name: str(value) if isinstance(value, date) else value
        for name, value in asdict(facts).items()
    }
