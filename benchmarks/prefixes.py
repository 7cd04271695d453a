"""Measures the share of prompt tokens that a provider can serve from its prefix cache."""

import asyncio
import json
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import forecast
from benchmarks.harness import (
    ModelProcess,
    ObservedCall,
    Result,
    debate,
    model_process,
    settings,
)
from benchmarks.parallel import debaters, refine_settings
from contend.graph.forecast_contract.terms import ROLES

if TYPE_CHECKING:
    from contend.graph.settings import DebateSettings

_ROUNDS = (3, 5, 8)
_SEATS = 3


@dataclass(frozen=True)
class _Case:
    name: str
    least: float  # percent, with one model in all seats
    hold: Callable[[int], Coroutine[Any, Any, None]]
    rounds: Sequence[int] = _ROUNDS
    shown: int = 5


def results() -> list[Result]:
    with model_process("--tokens", "300", "--mark") as server:
        found = [result for case in _cases() for result in _measure(server, case)]
    with model_process("--panel", "--mark") as server:
        case = _Case("forecast", 20, _forecast, rounds=(forecast.ROUNDS,), shown=forecast.ROUNDS)
        return [*found, *_measure(server, case)]


def _measure(server: ModelProcess, case: _Case) -> list[Result]:
    shared: dict[int, float] = {}
    apart: dict[int, float] = {}
    for rounds in case.rounds:
        asyncio.run(case.hold(rounds))
        calls = server.take_calls()
        shared[rounds] = _share(calls, lambda _: "one")
        apart[rounds] = _share(calls, lambda call: call.model)
    return [
        Result(
            f"{case.name}: cached share of prompts, {case.shown} rounds, {who}",
            100 * shares[case.shown],
            unit="%",
            note="; ".join(f"{rounds} rounds: {share:.0%}" for rounds, share in shares.items()),
            least=least,
        )
        for who, shares, least in (
            ("one model", shared, case.least),
            ("a model for each seat", apart, -math.inf),
        )
    ]


def _share(calls: Sequence[ObservedCall], model_of: Callable[[ObservedCall], str]) -> float:
    """Return the share of all prompt bytes that repeat the beginning of an earlier call's prompt.

    Calls made at the same time cannot use each other's prefixes.
    """
    sent = known = 0
    prompts = [(call, "\n".join(map(_text, call.messages)).encode()) for call in calls]
    for call, prompt in prompts:
        earlier = (
            other
            for before, other in prompts
            if before.ended <= call.started and model_of(before) == model_of(call)
        )
        known += max((_common(prompt, other) for other in earlier), default=0)
        sent += len(prompt)
    return known / sent


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return f"{message['role']}: {content if isinstance(content, str) else json.dumps(content)}"


def _common(one: bytes, other: bytes) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cases() -> list[_Case]:
    return [
        _Case("adversarial", 70, lambda rounds: debate(_adversarial(rounds))),
        _Case("forum with a judge", 70, lambda rounds: debate(_forum(rounds, "external_judge"))),
        _Case("forum by concession", 70, lambda rounds: debate(_forum(rounds, "self_convergence"))),
        _Case("refine", 50, lambda rounds: debate(refine_settings(_SEATS, rounds))),
        _Case("moderated", 70, lambda rounds: debate(_moderated(rounds)), (1, 3, 5)),
    ]


async def _forecast(_rounds: int) -> None:
    await forecast._forecast(**{f"{role}_model": f"openai:{role}" for role in ROLES})


def _adversarial(rounds: int) -> "DebateSettings":
    from contend.graph.settings import AdversarialSettings

    return AdversarialSettings.model_validate(settings(min_rounds=rounds, max_rounds=rounds))


def _forum(rounds: int, judge_mode: str) -> "DebateSettings":
    from contend.graph.settings import ForumSettings

    chosen = debaters(_SEATS) | {"max_rounds": rounds, "judge_mode": judge_mode}
    return ForumSettings.model_validate(chosen)


def _moderated(rounds: int) -> "DebateSettings":
    from contend.graph.settings import ModeratedSettings

    roles = ("advocate", "moderator", "judge")
    sides = [{"name": "Ann", "position": "Yes."}, {"name": "Ben", "position": "No."}]
    return ModeratedSettings.model_validate(
        {f"{role}_model": f"openai:{role}" for role in roles}
        | {"positions": sides, "round_count": rounds, "max_retries": 0, "templates": False}
    )
