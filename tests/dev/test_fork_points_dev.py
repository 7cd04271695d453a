"""Forking from every checkpoint of every protocol in `langgraph dev`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.cluster.debating import NAMES, Debaters
from tests.dev.dev_server import DevServer
from tests.dev.test_forks_dev import copy_of
from tests.support.forecasting import OUTCOMES
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

USUAL = {"model": "openai:m", "templates": False, "retry_wait": 0.01}
SEATS = [{"name": name.capitalize(), "model": f"openai:{name}"} for name in ("ann", "ben", "cyd")]
SIDES = [{"name": "Ann", "position": "Split it."}, {"name": "Ben", "position": "Keep it."}]
CONTEXTS: dict[str, dict[str, Any]] = {
    "adversarial": {"min_rounds": 2, "max_rounds": 2},
    "forum": {"seats": SEATS, "max_rounds": 2},
    "refine": {"seats": SEATS, "max_debate_rounds": 1},
    "moderated": {"model": "openai:floor", "positions": SIDES, "round_count": 1},
    "forecast": {"model": "openai:forecast", "max_rounds": 2, "overall_timeout": 600},
}
INPUTS: dict[str, dict[str, Any]] = {"forecast": {"outcomes": OUTCOMES, "due": "2030-05-01"}}


@pytest.fixture(scope="module")
def debaters() -> Debaters:
    return Debaters()


@pytest.fixture(scope="module")
def models(debaters: Debaters) -> Iterator[ModelServer]:
    with ModelServer(debaters, models=NAMES) as running:
        debaters.server = running
        yield running


@pytest.fixture(scope="module")
def server(models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    running = DevServer(tmp_path_factory.mktemp("dev"), models).start()
    yield running
    running.stop()
    assert "BlockingError" not in running.log.read_text()


class Debate(NamedTuple):
    thread: str
    turns: list[Any]
    calls: Counter[str]
    paid: dict[str, Counter[str]]
    """Calls made before each checkpoint; missing checkpoints have none."""


async def run(client: LangGraphClient, protocol: str, thread: str, **given: Any) -> list[Any]:
    state: Any = await client.runs.wait(thread, protocol, **given)
    turns: list[Any] = state.get("turns", [])
    return turns


async def play(client: LangGraphClient, protocol: str, debaters: Debaters) -> Debate:
    """Run a debate step by step and record the calls made before each checkpoint."""
    thread, before = (await client.threads.create())["thread_id"], debaters.times_made()
    given: Any = {"question": "Should we split it?", **INPUTS.get(protocol, {})}
    context: Any = USUAL | CONTEXTS[protocol]
    paid: dict[str, Counter[str]] = {}
    while True:
        about = {"context": context} if given else {}
        turns = await run(client, protocol, thread, input=given, interrupt_after="*", **about)
        state, given = await client.threads.get_state(thread), None
        calls = debaters.times_made() - before
        paid[str(state["checkpoint"]["checkpoint_id"])] = calls
        if not state["next"]:
            return Debate(thread, turns, calls, paid)


async def fork(
    client: LangGraphClient, protocol: str, debaters: Debaters, debate: Debate, step: Any
) -> list[str]:
    """Fork within the debate's thread; return differences and repeated calls."""
    before = debaters.times_made()
    place = step["checkpoint"]
    # Before the first node ran, a thread does not have its settings yet.
    about = {} if step["values"].get("settings") else {"context": USUAL | CONTEXTS[protocol]}
    given = {"input": None, "checkpoint": place, **about}
    turns = await run(client, protocol, debate.thread, **given)
    made = debaters.times_made() - before
    missing = debate.calls - debate.paid.get(place["checkpoint_id"], Counter())
    shared = step["values"].get("turns", [])
    kept = {turn["id"]: turn for turn in turns}
    problems = {
        "a call was paid again": bool(made - missing),
        "a call was left out": bool(missing - made),
        "the turns before it differ": any(kept.get(each["id"]) != each for each in shared),
        "the turns after it differ": said(turns) != said(debate.turns),
    }
    return [f"{step['next']}: {what}" for what, is_so in problems.items() if is_so]


def said(turns: list[Any]) -> list[tuple[str, str]]:
    return sorted((turn["id"], turn["text"]) for turn in turns)


@pytest.mark.parametrize("protocol", CONTEXTS)
async def test_a_fork_from_any_checkpoint_repeats_no_earlier_call(
    protocol: str, server: DevServer, debaters: Debaters
) -> None:
    async with server.client() as client:
        debate = await play(client, protocol, debaters)
        steps: list[Any] = await client.threads.get_history(debate.thread, limit=100)
        assert {*debate.paid} <= {step["checkpoint"]["checkpoint_id"] for step in steps}
        assert steps[0]["next"] == []
        copy = debate._replace(thread=await copy_of(client, debate.thread))
        problems = await fork(client, protocol, debaters, copy, steps[len(steps) // 2])
        for step in steps[1:]:  # nothing follows the end
            problems += await fork(client, protocol, debaters, debate, step)
    assert problems == []
    assert debate.calls.total() >= len(debate.turns) > 4
