"""Streams text as LangGraph messages for clients that do not read our events."""

from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.runnables.config import (
    ensure_config,
    set_config_context,
    var_child_runnable_config,
)
from langgraph.graph.message import push_message
from langgraph.pregel._messages import StreamMessagesHandler

_NODE, _NAMESPACE = "langgraph_node", "langgraph_checkpoint_ns"


def push_words(words: str, message_id: str, speaker: str) -> None:
    if not words or not _has_clients():
        return
    config: Any = ensure_config()
    about = config["metadata"]
    if _NAMESPACE not in about:
        return
    # The graph's node, not the task inside it.
    node = about[_NAMESPACE].partition(":")[0]
    shown: Any = {**config, "metadata": {**about, _NODE: node}}
    chunk = AIMessageChunk(content=words, id=message_id, name=speaker)
    with set_config_context(shown) as context:
        context.run(push_message, chunk, state_key=None)


def _has_clients() -> bool:
    callbacks: Any = (var_child_runnable_config.get() or {}).get("callbacks")
    handlers = getattr(callbacks, "handlers", callbacks) or ()
    return any(isinstance(each, StreamMessagesHandler) for each in handlers)
