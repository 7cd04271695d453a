import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from statistics import fmean
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from contend.debates.loading import Report, skip_silently
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.errors import BadInput, DamagedDebate
from contend.graph.forecast_contract import request as contract
from contend.graph.forecast_contract.request import DebateRequest, PredictionTask
from contend.graph.forecast_contract.result import DebateResult
from contend.graph.forecast_contract.terms import MAX_REQUEST_BYTES
from contend.graph.readings import VerdictReading
from contend.graph.settings import DebateSettings
from contend.graph.state import turns_of
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.budget import Amount, CallBudget, Ledger, using_ledger
from contend.models.calls import extract
from contend.models.providers.registry import open_models
from contend.models.retries import Listener
from contend.nodes.forecast import numbers
from contend.nodes.forecast.arguments import kept_arguments, stated_in
from contend.nodes.forecast.outcomes import ProposedOutcomes, outcome_slug, outcomes_prompt

PROTOCOL = "forecast"
POOLS = ("contract", "linear", "log_odds", "extremised")
# With fewer forecasts, a fitted factor would mostly reflect chance.
ENOUGH_TO_FIT = 20


# --- asking ---


def read_request(text: str | bytes) -> DebateRequest:
    if len(text) > MAX_REQUEST_BYTES:
        raise BadInput(f"The request is larger than {MAX_REQUEST_BYTES:,} bytes.")
    with _validation_in_words():
        return DebateRequest.model_validate_json(text)


def check_question(question: str) -> None:
    with _validation_in_words():
        PredictionTask(question=question)


@contextmanager
def _validation_in_words() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise BadInput(f"The request cannot be used: {'; '.join(problems(error))}.") from error


def problems(error: ValidationError, most: int = 5) -> list[str]:
    """Describe up to `most` invalid fields, without their possibly large values."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = [
        f"{_place(each['loc'])}: {each['msg'].removeprefix('Value error, ')}"
        for each in found[:most]
    ]
    return said + ([f"and {len(found) - most} more"] if len(found) > most else [])


def _place(steps: Sequence[int | str]) -> str:
    names = (str(step) for step in steps if not str(step).startswith("function-"))
    return ".".join(f"{name[:40]}…" if len(name) > 40 else name for name in names) or "request"


def plain_request(
    question: str, outcomes: Sequence[dict[str, str]], due: date | None
) -> DebateRequest:
    plain = contract.request_of_outcomes(question, outcomes, due.isoformat() if due else None)
    return read_request(json.dumps(plain))


def with_due(request: DebateRequest, due: date) -> DebateRequest:
    given = request.model_dump(mode="json", exclude_unset=True)
    data = given["prediction_context"].setdefault("data_summary", {})
    data.setdefault("timeframe", {})["end"] = due.isoformat()
    with _validation_in_words():  # the size has been checked
        return DebateRequest.model_validate_json(json.dumps(given))


def parse_outcomes(given: Iterable[str]) -> list[dict[str, str]]:
    """Parse `ID: LABEL` arguments. Without a colon, derive the id from the label."""
    outcomes = []
    for number, text in enumerate(given, 1):
        name, colon, label = text.partition(":")
        if not name.strip() or (colon and not label.strip()):
            raise BadInput(
                f"The outcome '{text}' is not in the form ID: LABEL, such as yes: It wins."
            )
        outcomes.append({"id": outcome_slug(name, number), "label": (label or name).strip()})
    if len(outcomes) == 1:
        raise BadInput("A forecast needs at least two outcomes; only one was given.")
    return outcomes


@dataclass(frozen=True)
class Proposal:
    outcomes: list[dict[str, str]]
    due: date | None
    model: str
    usage: Usage
    spent: Amount  # counts toward the budget


async def propose_outcomes(
    question: str, seats: Sequence[Seat], settings: DebateSettings
) -> Proposal:
    judge = next(seat for seat in seats if seat.role == "judge")
    mark = str(uuid4())
    messages = outcomes_prompt(question, judge)
    ledger, listener = Ledger(), Listener(budget=CallBudget(debate=mark))
    async with open_models():
        with using_ledger(mark, ledger):
            answered = await extract(judge, messages, ProposedOutcomes, settings, listener)
    block = answered.result.block
    if block is None:
        raise BadInput(_UNUSABLE)
    outcomes = block.named
    try:
        plain_request(question, outcomes, None)
    except BadInput as unusable:
        raise BadInput(_UNUSABLE) from unusable
    usage = answered.result.usage or NO_USAGE
    return Proposal(outcomes, block.day, answered.model, usage, ledger.spent)


_UNUSABLE = 'The model proposed no usable outcomes. Give them with --outcome "ID: LABEL".'


# --- resolving ---


@dataclass(frozen=True)
class Forecast:
    debate: StoredDebate
    request: DebateRequest
    result: DebateResult
    actual_outcome: str | None

    @property
    def due(self) -> date | None:
        return self.request.prediction_context.data_summary.timeframe.end

    @property
    def outcome_ids(self) -> tuple[str, ...]:
        return self.request.prediction_context.outcome_ids


def forecasts(records: Repository, report: Report = skip_silently) -> list[Forecast]:
    outcomes, found = records.resolutions(), []
    for debate in records.done(PROTOCOL, report):
        try:
            found.append(_forecast(debate, outcomes.get(debate.id)))
        except (KeyError, ValidationError):
            report(DamagedDebate(debate.id))
    return found


def _forecast(debate: StoredDebate, actual_outcome: str | None) -> Forecast:
    request = DebateRequest.model_validate_json(json.dumps(debate.state["request"]))
    result = DebateResult.model_validate_json(json.dumps(debate.state["forecast"]))
    return Forecast(debate, request, result, actual_outcome)


def due_forecasts(found: Iterable[Forecast], today: date, *, every: bool) -> list[Forecast]:
    waiting = [each for each in found if each.actual_outcome is None]
    if not every:
        waiting = [each for each in waiting if each.due is not None and each.due <= today]
    return sorted(waiting, key=lambda each: each.due or date.max)


def resolve(records: Repository, debate: StoredDebate, outcome: str, *, replace: bool) -> Forecast:
    """Store the outcome that came true; with `replace`, overwrite an outcome stored earlier."""
    if debate.protocol != PROTOCOL:
        raise BadInput(f"Debate {debate.id[:8]} is not a forecast, so it cannot be resolved.")
    if debate.status != "done":
        raise BadInput(f"Debate {debate.id[:8]} is {debate.status}; resolve it when it is done.")
    known = {each.casefold(): each for each in _forecast(debate, None).outcome_ids}
    actual_outcome = known.get(outcome.strip().casefold())
    if actual_outcome is None:
        raise BadInput(
            f"Debate {debate.id[:8]} has no outcome '{outcome}'; it has: "
            f"{', '.join(known.values())}."
        )
    before = records.resolutions().get(debate.id)
    if before is not None and before != actual_outcome and not replace:
        raise BadInput(
            f"Debate {debate.id[:8]} is already resolved as '{before}'; add --replace to change it."
        )
    records.resolve(debate.id, actual_outcome)
    return _forecast(debate, actual_outcome)


# --- the scoreboard ---


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    brier: float
    log_loss: float


@dataclass(frozen=True)
class Scoreboard:
    resolved: int
    pools: list[Row]
    roles: list[Row]
    models: list[Row]
    rounds: list[Row]
    calibration: list[numbers.CalibrationBin]
    factor: float | None
    """The best-fitting extremizing factor; None if there are too few forecasts."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def scoreboard(records: Repository, report: Report = skip_silently) -> Scoreboard:
    whole = []
    for each in forecasts(records, report):
        if each.actual_outcome is not None:
            # Load the turns, which name models and rounds, only for resolved forecasts.
            try:
                whole.append(_forecast(records.find(each.debate.id), each.actual_outcome))
            except DamagedDebate as damaged:
                report(damaged)
    log_odds = _pooled(whole, "log_odds")
    return Scoreboard(
        resolved=len(whole),
        pools=_rows(whole, _by_pool),
        roles=_rows(whole, _by_role),
        models=_rows(whole, _by_model),
        rounds=_rows(whole, _by_round),
        calibration=numbers.calibration(_pooled(whole, "contract")),
        factor=numbers.fitted_factor(log_odds) if len(log_odds) >= ENOUGH_TO_FIT else None,
    )


def _pool(found: Forecast, name: str) -> dict[str, float]:
    values = {pools.outcome_id: getattr(pools, name) for pools in found.result.report.pools}
    return {} if None in values.values() else values


def _pooled(found: Iterable[Forecast], name: str) -> list[tuple[dict[str, float], str]]:
    return [(values, each.actual_outcome or "") for each in found if (values := _pool(each, name))]


NamedDistributions = Iterator[tuple[str, numbers.Distribution]]
"""Distributions, each with the name of the role, model or round that stated it."""


def _by_pool(found: Forecast) -> NamedDistributions:
    for name in POOLS:
        yield name, _pool(found, name)


def _by_role(found: Forecast) -> NamedDistributions:
    """Yield each role's last probabilities, then the probabilities in the judge's verdict."""
    stated: dict[str, dict[str, float]] = defaultdict(dict)
    for row in found.result.probability_distribution:
        for given in row.role_assessments:
            stated[given.role][row.outcome_id] = given.probability
        if row.judge_probability is not None:
            stated["judge (verdict)"][row.outcome_id] = row.judge_probability
    yield from stated.items()


def _by_model(found: Forecast) -> NamedDistributions:
    state = found.debate.as_state()
    for said in kept_arguments(state):
        yield said.turn.model, said.reading.stated.probabilities
    for turn in turns_of(state, "synthesize"):
        if isinstance(turn.assessment, VerdictReading):
            yield turn.model, turn.assessment.stated.probabilities


def _by_round(found: Forecast) -> NamedDistributions:
    kept = kept_arguments(found.debate.as_state())
    for number in range(1, max((said.turn.round for said in kept), default=0) + 1):
        stated = list(stated_in(kept, number).values())
        yield f"round {number}", numbers.linear_pool(stated, found.outcome_ids)


def _rows(
    found: Iterable[Forecast], stated_by: Callable[[Forecast], NamedDistributions]
) -> list[Row]:
    losses: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for each in found:
        for name, values in stated_by(each):
            if numbers.is_complete(values, each.outcome_ids):
                actual = each.actual_outcome or ""
                losses[name].append(
                    (numbers.brier(values, actual), numbers.log_loss(values, actual))
                )
    return [
        Row(name, len(each), fmean(b for b, _ in each), fmean(loss for _, loss in each))
        for name, each in losses.items()
    ]
