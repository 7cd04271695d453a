"""Messages streamed to clients of a LangGraph server."""

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
    """Return the streamed texts by node and speaker."""
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


async def test_streams_text_under_graph_node_names_without_control_blocks() -> None:
    settings = scripted_settings(min_rounds=1, max_rounds=2)
    found = await streamed_by(full_cast(), {"question": "Why?"}, settings)
    assert {*found} == {
        ("propose", "Proposer"),
        ("critique", "Skeptic"),
        ("synthesize", "Synthesizer"),
    }
    assert [len(texts) for texts in found.values()] == [2, 2, 1]
    assert not any("nonce" in text for texts in found.values() for text in texts)


async def test_streams_parallel_calls_in_nested_tasks_under_their_node() -> None:
    given = {"question": QUESTION, "request": request()}
    found = await streamed_by(panel(), given, forecast_settings(max_rounds=1))
    assert {node for node, _ in found} == {"propose", "synthesize"}
    assert ("propose", "Historian") in found


def test_text_outside_a_graph_is_not_streamed() -> None:
    push_words("Hello.", "m1", "Ann")
