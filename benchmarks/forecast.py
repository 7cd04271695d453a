"""Compares a forecast's wall-clock time with its critical path, and counts its tokens.

Scoring needs the argument. Each round needs all scores of the previous round, because weak
arguments are replaced first. The judge's last argument needs the other roles' arguments, but not
the scores. The verdict needs everything. The roles' calls take different times, to reveal
unnecessary waiting.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

from benchmarks.harness import REPOSITORY, ObservedCall, Result, model_process, repeat_call, wall
from contend.graph.forecast_contract.terms import ROLES

ROUNDS = 3
MOST_IN, MOST_OUT = 600, 500
MOST_IN_ALL, MOST_OUT_ALL = 25_000, 20_000

REQUEST = {
    "task_id": "benchmark",
    "prediction_context": {
        "task": {
            "question": "Will the central bank cut its main rate by at least 25 basis points at "
            "one of its two meetings before the end of March?",
            "resolution_criteria": "The bank's own statement after the meeting.",
        },
        "outcomes": [
            {"id": "cut", "label": "It cuts the rate", "description": "By 25 points or more."},
            {"id": "hold", "label": "It leaves the rate unchanged", "description": ""},
            {"id": "raise", "label": "It raises the rate", "description": ""},
        ],
        "key_variables": [
            {
                "name": "core inflation",
                "category": "prices",
                "importance": 0.9,
                "current_value": 2.6,
            },
            {"name": "unemployment", "category": "labour", "importance": 0.7, "current_value": 4.4},
        ],
        "simulation_summary": {
            "final_distribution": [
                {"outcome_id": "cut", "probability": 0.55},
                {"outcome_id": "hold", "probability": 0.42},
                {"outcome_id": "raise", "probability": 0.03},
            ],
            "key_findings": ["Energy prices decide the spring figures in most runs."],
        },
        "data_summary": {
            "region": "a mid-sized open economy",
            "timeframe": {"start": "2026-11-17", "end": "2027-03-31"},
            "economic_highlights": ["Growth slowed for two quarters."],
            "sentiment_highlights": ["Two of nine members have called for patience."],
            "data_gaps": ["No wage data since September."],
        },
    },
}


def results() -> list[Result]:
    """Compare the tokens of a forecast with the contract's budget."""
    with model_process("--panel") as server:
        wall(_forecast)
        return _tokens(server.take_calls())


def critical_path(seconds: float, runs: int, limit: float) -> Result:
    """Return the median ratio of a forecast's time to the bare client's time.

    The bare client makes each of the same calls as soon as possible. The note gives the ratio to
    the time measured by the server.
    """
    ratios, strict = [], []
    with model_process("--panel", "--delay", str(seconds)) as server:
        wall(_forecast)  # imports and caches
        server.take_calls()
        for _ in range(runs):
            took = wall(_forecast)
            calls = server.take_calls()
            ratios.append(took / wall(partial(_replay, calls)))
            strict.append(took / sum(map(_longest, parts(calls))))
            server.take_calls()
    note = f"{len(calls)} calls; {median(strict):.2f} over the server's own time"
    what = f"forecast: wall-clock over its critical path, calls of about {seconds:g} s"
    return Result(what, median(ratios), limit, "x", note)


Chain = list[ObservedCall]
"""Calls that each depend on the previous one."""


def parts(calls: Sequence[ObservedCall]) -> list[list[Chain]]:
    """Return the stages of a forecast; the chains of calls within a stage run in parallel."""
    found: list[list[Chain]] = []
    for number in range(1, ROUNDS + 1):
        chains = {role: _chain(calls, role, number) for role in ROLES}
        if number < ROUNDS:
            found.append(list(chains.values()))
        else:
            judge = chains.pop("judge")
            found.append([chain[:1] for chain in chains.values()])
            found.append([*(chain[1:] for chain in chains.values()), judge])
    return [*found, [[call for call in calls if _kind(call)[0] == "verdict"]]]


def _chain(calls: Sequence[ObservedCall], role: str, number: int) -> Chain:
    by_kind = {_kind(call): call for call in calls}
    return [by_kind["argument", number, role], by_kind["score", number, role]]


def _longest(part: Sequence[Chain]) -> float:
    return max(sum(call.ended - call.started for call in chain) for chain in part)


async def _replay(calls: Sequence[ObservedCall]) -> None:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(max_retries=0) as client:

        async def ask(chain: Chain) -> None:
            for call in chain:
                await repeat_call(client, call)

        for part in parts(calls):
            await asyncio.gather(*map(ask, part))


def _kind(call: ObservedCall) -> tuple[str, int, str]:
    user = _text(call.messages[-1])
    if "All rounds are over" in user:
        return "verdict", 0, "judge"
    if scored := re.search(r"The (\w+)'s argument of round (\d+)", user):
        return "score", int(scored[2]), scored[1]
    number, role = re.search(r"Round (\d+) of", user), re.search(r"You are the (\w+)", user)
    if number is None or role is None:
        raise RuntimeError(f"no call of a forecast: {user}")
    return "argument", int(number[1]), role[1].lower()


def _text(message: Any) -> str:
    return str(message["content"])


def _tokens(calls: Sequence[ObservedCall]) -> list[Result]:
    count = _counter()
    sent = [sum(count(_text(m)) for m in call.messages) for call in calls]
    back = [count(call.reply) for call in calls]
    arguments = [at for at, call in enumerate(calls) if _kind(call)[0] == "argument"]
    rows = {
        "tokens into an argument call": (max(sent[at] for at in arguments), MOST_IN),
        "tokens out of an argument call": (max(back[at] for at in arguments), MOST_OUT),
        "tokens into a whole forecast": (sum(sent), MOST_IN_ALL),
        "tokens out of a whole forecast": (sum(back), MOST_OUT_ALL),
    }
    note = f"{len(arguments)} argument calls of {len(calls)}"
    return [Result(what, value, most, "tokens", note) for what, (value, most) in rows.items()]


def _counter() -> Callable[[str], int]:
    """Load MiniLM's tokenizer, because it counts more tokens than those of chat models."""
    from tokenizers import Tokenizer

    from contend.models.providers.weights import (
        DEFAULT_EMBEDDING,
        EMBEDDINGS,
        is_pulled,
        pull,
        weights_path,
    )

    kept = REPOSITORY / ".cache" / "home"
    files = EMBEDDINGS[DEFAULT_EMBEDDING]
    for weights in files:
        if not is_pulled(weights, kept):
            pull(weights, kept, lambda _done, _total: None)
    path = next(p for p in (weights_path(f, kept) for f in files) if p.suffix == ".json")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


async def _forecast(**models: str) -> None:
    from langgraph.runtime import RunControl

    from contend.debates.prepare import PreparedDebate, write_debate
    from contend.debates.run import open_repository, run_debate
    from contend.graph.forecast_contract.request import DebateRequest
    from contend.graph.settings import ForecastSettings
    from contend.models.seats import choose_seats

    settings = ForecastSettings.model_validate(
        {**ForecastSettings.settings_for_model("openai:panel"), **models, "max_retries": 0}
    )
    request = DebateRequest.model_validate_json(json.dumps(REQUEST))
    question = request.prediction_context.task.question
    records = await asyncio.to_thread(open_repository)
    try:
        plan = await choose_seats(settings)
        opened = write_debate(records, PreparedDebate(question, settings, plan), request)
        done = await run_debate(records, opened, lambda _: None, RunControl())
    finally:
        records.close()
    gaps = [gap for gap in done.state["forecast"]["report"]["gaps"] if gap["what"] != "context"]
    if done.status != "done" or gaps:
        raise RuntimeError(f"the forecast ended {done.status}: {done.error}")
