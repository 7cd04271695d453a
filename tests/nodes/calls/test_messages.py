"""What clients of a LangGraph server are streamed as messages."""

from collections import defaultdict
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from contend.graph.settings import DebateSettings
from contend.nodes.calls.messages import push_words
from tests.support.forecasting import QUESTION, forecast_settings, panel, request
from tests.support.scripted import (
    BUILDERS,
    THREAD,
    Cast,
    full_cast,
    scripted_settings,
)

Streamed = dict[tuple[str, str], list[str]]


async def streamed_by(cast: Cast, given: Any, settings: DebateSettings) -> Streamed:
    """Return the texts of the streamed messages by node and speaker."""
    graph = BUILDERS[settings.protocol].compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": THREAD}, "recursion_limit": 100}
    texts: dict[tuple[str, str, str], str] = defaultdict(str)
    with cast.on_stage():
        async for message, about in graph.astream(
            given, config, context=settings, stream_mode="messages"
        ):
            texts[about["langgraph_node"], message.name or "", message.id or ""] += message.text
    found: Streamed = defaultdict(list)
    for (node, speaker, _), text in texts.items():
        found[node, speaker].append(text.strip())
    return found


async def test_words_arrive_under_the_nodes_in_the_drawing_without_control_blocks() -> None:
    settings = scripted_settings(min_rounds=1, max_rounds=2)
    found = await streamed_by(full_cast(), {"question": "Why?"}, settings)
    assert {*found} == {
        ("propose", "Proposer"),
        ("critique", "Skeptic"),
        ("synthesize", "Synthesizer"),
    }
    assert [len(texts) for texts in found.values()] == [2, 2, 1]
    assert not any("nonce" in text for texts in found.values() for text in texts)


async def test_parallel_calls_in_tasks_of_tasks_arrive_under_their_node() -> None:
    given = {"question": QUESTION, "request": request()}
    found = await streamed_by(panel(), given, forecast_settings(max_rounds=1))
    assert {node for node, _ in found} == {"propose", "synthesize"}
    assert ("propose", "Historian") in found


def test_words_outside_a_graph_go_nowhere() -> None:
    push_words("Hello.", "m1", "Ann")
