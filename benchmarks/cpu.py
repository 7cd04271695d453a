"""Compares the CPU time of a debate with the CPU time of clients that make the same calls."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from benchmarks.harness import Result, cpu, debate, model_process, replay, replay_by_hand

CALL_LIMIT = 1.0
TOKEN_LIMIT = 0.25
_RUNS = 3
_SHORT, _LONG = 200, 1000
_SECONDS_PER_TOKEN = 0.001


def results() -> list[Result]:
    """Measure calls of two lengths; their difference is the cost of the tokens alone."""
    short, long = _per_call(_SHORT), _per_call(_LONG)
    per_token = {who: (long[who] - short[who]) / (_LONG - _SHORT) for who in short}
    return [
        _result(f"CPU per call of {_SHORT} tokens over the bare client", short, CALL_LIMIT),
        _result("CPU per streamed token over the bare client", per_token, TOKEN_LIMIT),
    ]


def _per_call(tokens: int) -> dict[str, float]:
    took: dict[str, list[float]] = {"ours": [], "bare": [], "by hand": []}
    with model_process("--tokens", str(tokens), "--chunk-delay", str(_SECONDS_PER_TOKEN)) as server:
        cpu(debate)  # imports and caches
        calls = server.take_calls()
        ways: list[Callable[[], Any]] = [
            debate,
            partial(replay, calls),
            partial(replay_by_hand, calls),
        ]
        cpu(ways[1])
        for _ in range(_RUNS):
            for times, way in zip(took.values(), ways, strict=True):
                times.append(cpu(way) / len(calls))
    return {who: median(times) for who, times in took.items()}


def _result(what: str, seconds: dict[str, float], limit: float) -> Result:
    ours, bare, by_hand = (seconds[who] * 1e6 for who in ("ours", "bare", "by hand"))
    note = (
        f"{_SECONDS_PER_TOKEN * 1000:g} ms a token; ours {ours:,.0f} µs, the bare client "
        f"{bare:,.0f} µs, aiohttp by hand {by_hand:,.0f} µs ({by_hand / bare:.2f} x)"
    )
    return Result(what, ours / bare, limit, "x", note)
