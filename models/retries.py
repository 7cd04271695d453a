import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from langchain_core.messages import BaseMessage

from contend.graph.errors import (
    BUDGET,
    BadInput,
    DatabaseUnavailable,
    ModelFailed,
    OverBudget,
    Paused,
)
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.budget import NO_BUDGET, CallBudget
from contend.models.failures import BadAnswer, Failure, classify, first_line
from contend.models.limits import Allowance, limits_of
from contend.models.prices import priced
from contend.models.providers.registry import ModelSpec, parse_spec
from contend.models.providers.response_hooks import watching_headers
from contend.models.tokens import estimate_tokens

_LONGEST_BACKOFF = 30.0
_OVER_BUDGET = Failure(BUDGET, "the call does not fit into what is left")
_DOWN = Failure("unavailable", "its last calls failed; it is tried again later")


class _WithUsage(Protocol):
    @property
    def usage(self) -> Usage: ...


Result = TypeVar("Result", bound=_WithUsage)


@dataclass(frozen=True)
class FailedAttempt:
    what: str  # the next step, such as `retried` or `fell_back`
    model: str
    failure: Failure
    usage: Usage = NO_USAGE  # what the failed attempt cost


@dataclass(frozen=True)
class Listener:
    text: Callable[[str, str], None] = lambda _piece, _model: None
    on_failed_attempt: Callable[[FailedAttempt], None] = lambda _attempt: None
    pause_requested: Callable[[], bool] = lambda: False
    debate: str = ""
    asked: str = ""  # names the call in a recording
    turn: str = ""  # the turn that the call is for
    marks: tuple[str, ...] = ()  # strings that differ in every debate's prompts
    time_is_up: Callable[[], bool] = lambda: False  # stops the answer early
    budget: CallBudget = NO_BUDGET


@dataclass(frozen=True)
class Answered(Generic[Result]):
    result: Result
    model: str
    fell_back: bool


# Arguments: the model, the previous attempt's failure, and whether this is the last attempt.
Attempt = Callable[[ModelSpec, Failure | None, bool], Awaitable[Result]]


async def with_fallbacks(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
    attempt: Attempt[Result],
) -> Answered[Result]:
    allowance = Allowance.of(settings, estimate_tokens(*(each.text for each in messages)))
    specs = [parse_spec(text) for text in (seat.model, *seat.fallback_models)]
    for spec in specs:
        if spec is not specs[-1] and not limits_of(spec).may_ask():
            listener.on_failed_attempt(FailedAttempt("fell_back", str(spec), _DOWN))
            continue
        try:
            outcome = await _with_retries(spec, allowance, settings, listener, attempt)
        except OverBudget as over:
            listener.on_failed_attempt(FailedAttempt("out_of_budget", str(spec), _OVER_BUDGET))
            raise ModelFailed(seat.name, str(spec), BUDGET, _OVER_BUDGET.why) from over
        if not isinstance(outcome, FailedAttempt):
            return Answered(outcome, str(spec), fell_back=spec is not specs[0])
        if spec is specs[-1]:
            listener.on_failed_attempt(outcome)
            raise ModelFailed(seat.name, str(spec), outcome.failure.kind, outcome.failure.why)
        listener.on_failed_attempt(replace(outcome, what="fell_back"))
        if listener.pause_requested():
            raise Paused
    raise AssertionError  # every seat has a model


async def _with_retries(
    spec: ModelSpec,
    allowance: Allowance,
    settings: DebateSettings,
    listener: Listener,
    attempt: Attempt[Result],
) -> Result | FailedAttempt:
    limits, waited = limits_of(spec), 0.0
    failure: Failure | None = None
    tries = waits = 0
    while True:
        async with limits.slot(listener.debate, allowance, listener.pause_requested) as call:
            try:
                with watching_headers(partial(limits.read_headers, call)):
                    result = await attempt(spec, failure, tries == settings.max_retries)
            except (BadInput, OverBudget, Paused, DatabaseUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - any exception is a failure of the provider
                failure, usage = _failure_of(error)
                limits.failed(failure.kind)
                if failure.kind == "rate_limit":
                    limits.refused(call, failure.retry_after)
            else:
                limits.answered(call, result.usage)
                return result
        if failure.is_about_max_tokens and spec.name not in limits.without_max_tokens:
            limits.without_max_tokens.add(spec.name)
            continue
        failed_attempt = FailedAttempt(
            "retried", str(spec), failure, priced(usage, spec, settings.prices)
        )
        if failure.kind == "rate_limit" and settings.rate_limit_patience:
            # Waiting for a rate limit to pass is not reported as a problem.
            wait = _backoff(waits, failure, settings)
            waits, waited = waits + 1, waited + wait
            if waited > settings.rate_limit_patience:
                return replace(failed_attempt, what="failed")
        elif not failure.retryable or tries == settings.max_retries:
            return replace(failed_attempt, what="failed")
        else:
            listener.on_failed_attempt(failed_attempt)
            wait = _backoff(tries, failure, settings)
            tries += 1
        await _pause_before_retry(wait, listener)


def _failure_of(error: Exception) -> tuple[Failure, Usage]:
    unexpected = f"{type(error).__name__}: {first_line(error)}"
    failure = classify(error) or Failure("unexpected", unexpected)
    # A rejected call costs nothing; the cost of a call that timed out is unknown.
    spent = Usage() if failure.kind in ("first_token", "idle", "total") else NO_USAGE
    return failure, (error.usage if isinstance(error, BadAnswer) else None) or spent


def _backoff(tries: int, failure: Failure, settings: DebateSettings) -> float:
    jitter = random.uniform(0, min(_LONGEST_BACKOFF, settings.retry_wait * 2 ** min(tries, 10)))  # noqa: S311
    return jitter if failure.retry_after is None else failure.retry_after + min(jitter, 1.0)


async def _pause_before_retry(seconds: float, listener: Listener) -> None:
    """Wait before a retry. Raise Paused as soon as a pause is requested."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        if listener.pause_requested():
            raise Paused
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return
        await asyncio.sleep(min(left, 0.1))
