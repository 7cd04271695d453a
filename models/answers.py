"""Decides which answers of a model are complete enough to enter a debate."""

from dataclasses import dataclass, field
from typing import cast

from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langchain_core.messages.ai import add_ai_message_chunks

from contend.graph.values import Usage
from contend.models.failures import BadAnswer
from contend.models.providers.registry import ModelSpec, provider_of
from contend.models.text import clean_data, clean_reply, split_thinking
from contend.models.tools import calls_in

_COMPLETE = {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}
_CALLS_TOOLS = {"tool_calls", "tool_use", "function_call"}
_TOO_LONG = {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
_FINISH_KEYS = ("finish_reason", "done_reason", "stop_reason", "stopReason")


@dataclass(frozen=True)
class Reply:
    text: str
    thinking: str = ""
    usage: Usage = field(default_factory=Usage)
    message: AIMessage | None = None  # if it calls tools; the next call must include it
    seconds: float = 0.0


def join_tool_calls(parts: list[AIMessage]) -> AIMessage | None:
    if not parts:
        return None
    whole = parts[0]
    if isinstance(whole, AIMessageChunk):
        whole = add_ai_message_chunks(whole, *cast("list[AIMessageChunk]", parts[1:]))
    if not calls_in(whole):
        return None
    message = AIMessage.model_validate(clean_data(message_chunk_to_message(whole).model_dump()))
    for number, call in enumerate(calls_in(message), 1):
        call["id"] = call["id"] or f"call_{number}"  # some servers send none
    return message


class UnusableAnswer(BadAnswer):
    """An answer that was paid for but cannot enter the debate."""

    def __init__(self, kind: str, why: str, usage: Usage) -> None:
        self.usage = usage
        super().__init__(kind, why)


def usage_of(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    if not counted:
        return None
    return Usage(input_tokens=counted["input_tokens"], output_tokens=counted["output_tokens"])


def usage_of_error(error: Exception) -> Usage:
    """Return the usage that openai's client attaches to its error."""
    counted = getattr(getattr(error, "completion", None), "usage", None)
    if counted is None:
        return Usage()
    return Usage(input_tokens=counted.prompt_tokens, output_tokens=counted.completion_tokens)


def is_incomplete(message: AIMessage) -> bool:
    return finish_reason(message) not in (None, *_COMPLETE)


def finish_reason(message: AIMessage) -> str | None:
    for key in _FINISH_KEYS:
        if reason := message.response_metadata.get(key):
            return str(reason).lower()
    return None


def accept_answer(
    text: str,
    reasoning: str,
    finish: str | None,
    calling: AIMessage | None,
    usage: Usage,
    spec: ModelSpec,
) -> Reply:
    if finish is None and provider_of(spec).reports_finish:
        raise UnusableAnswer("cut", "the stream ended in the middle of the answer", usage)
    if finish in _TOO_LONG:
        raise UnusableAnswer("length", "the answer was cut off at the model's length limit", usage)
    if finish in _CALLS_TOOLS and not calling:
        raise UnusableAnswer("empty", "it called for a tool instead of answering", usage)
    if finish is not None and finish not in _COMPLETE | _CALLS_TOOLS:
        raise UnusableAnswer("refused", f"the provider ended the answer with '{finish}'", usage)
    speech, thinking = split_thinking(text)
    cleaned = clean_reply(speech)
    if not cleaned and not calling:
        raise UnusableAnswer("empty", "the answer was empty", usage)
    thoughts = clean_reply("\n".join(filter(None, [reasoning, thinking])))
    return Reply(cleaned, thoughts, usage, calling)
