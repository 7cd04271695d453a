"""Scripted models and helpers for debates in `langgraph dev`."""

import json
import re
import threading
from typing import Any

from langgraph_sdk.client import LangGraphClient

from tests.support.model_server import Reply, Request, openai_error

_ANSWERED = {"correctness": 7, "completeness": 7, "clarity": 7, "depth": 7}
_RATED = {**_ANSWERED, "justification": "Sound.", "would_benefit_from_finetune": False}
_DOUBTS = {
    "ready": False,
    "score": 4,
    "points": [{"id": "", "severity": "critical", "status": "open", "text": "It costs too much."}],
}
SETTINGS: dict[str, Any] = {
    "proposer_model": "openai:proposer",
    "skeptic_model": "openai:skeptic",
    "synthesizer_model": "ollama:synthesizer",
    "judge_model": "openai:judge",
    "pause": "each_round",
    "min_rounds": 2,
    "max_rounds": 2,
    "max_retries": 0,
}


slow_may_speak = threading.Event()  # cleared by the test that lets this model wait


def speak(request: Request) -> Reply | str:
    """Return a different text for each call, to distinguish the branches of a debate."""
    if request.model == "slow":
        return Reply("At last.", until=slow_may_speak.is_set)
    if request.model == "broken":
        return openai_error(401, "This account is closed.")
    if request.tools and not request.results:
        return Reply(tool_calls=[("calculate", {"expression": "6 * 7"})])
    if "NOT CONVINCED" in request.user:
        return "NOT CONVINCED" if request.model == "proposer" else "CONVINCED: Ann"
    found = re.search(r'"nonce": "(\w+)"', request.text)
    said = f"The {request.model} speaks in call {request.index}."
    if found is None or request.model not in ("skeptic", "judge"):
        return said
    decided = _DOUBTS if request.model == "skeptic" else _RATED
    return f"{said}\n\n```json\n{json.dumps({'nonce': found.group(1), **decided})}\n```"


async def begin(client: LangGraphClient, **settings: Any) -> str:
    """Start a debate that pauses after its first round; return the thread's id."""
    thread = (await client.threads.create())["thread_id"]
    question = {"question": "Should we split the monolith?"}
    await client.runs.wait(thread, "adversarial", input=question, context=SETTINGS | settings)
    assert (await client.threads.get(thread))["status"] == "interrupted"
    return thread


async def resume(client: LangGraphClient, thread: str, answer: Any) -> dict[str, Any]:
    command: Any = {"resume": answer}
    state = await client.runs.wait(thread, "adversarial", command=command, context=SETTINGS)
    assert isinstance(state, dict)
    return state


def texts(state: Any) -> list[str]:
    return [turn["text"] for turn in state["turns"]]
