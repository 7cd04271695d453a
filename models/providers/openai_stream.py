from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

import httpx2
from openai import APIConnectionError, APIError, APITimeoutError, AsyncOpenAI, AsyncStream
from openai.resources.chat import AsyncCompletions
from openai.types.chat import ChatCompletionChunk

from contend.models.providers.stream_batches import (
    StreamedEvent,
    StreamedWords,
    parse,
    read_pieces,
    words_of,
)

# The first with text counts, because services may send the same thought under two names.
THOUGHTS = ("reasoning", "reasoning_content")
_IGNORED = frozenset({"reasoning_details"})  # repeats the thoughts; langchain ignores it too

_Chunk = TypeVar("_Chunk")


class Completions(AsyncCompletions):
    """Chat completions that stream openai's chunks, or dictionaries that merge several."""

    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        post = self._post

        async def post_for_pieces(*args: Any, **given: Any) -> Any:
            return await post(*args, **{**given, "stream_cls": _PieceStream[ChatCompletionChunk]})

        self._post = post_for_pieces

    async def create(self, *, messages: Any, extra_body: Any = None, **given: Any) -> Any:
        """Send messages without openai's validation, which takes milliseconds."""
        body = {**(extra_body or {}), "messages": list(messages)}
        return await super().create(messages=[], extra_body=body, **given)


class _PieceStream(AsyncStream[_Chunk]):
    async def __stream__(self) -> AsyncIterator[Any]:
        try:
            async for event, is_piece in read_pieces(self.response, _ServerSentEvents()):
                if event.get("error"):
                    raise self._error(event["error"])
                yield event if is_piece else ChatCompletionChunk.construct(**event)
        except httpx2.TimeoutException as error:
            raise APITimeoutError(request=self.response.request) from error
        except httpx2.RequestError as error:
            raise APIConnectionError(request=self.response.request) from error
        finally:
            await self.response.aclose()

    def _error(self, error: Any) -> APIError:
        message = error.get("message") if isinstance(error, dict) else None
        if not message or not isinstance(message, str):
            message = "An error occurred during streaming"
        return APIError(message, request=self.response.request, body=error)


class _ServerSentEvents:
    def __init__(self) -> None:
        self.is_done = False
        self._data: list[bytes] = []

    def events(self, lines: list[bytes]) -> Iterator[StreamedEvent]:
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif not line and self._data:
                data, self._data = b"\n".join(self._data).strip(), []
                if data.startswith(b"[DONE]"):
                    self.is_done = True
                    return
                yield parse(data)

    def words(self, event: StreamedEvent) -> StreamedWords | None:
        choices = event.get("choices")
        if event.get("error") or event.get("usage"):
            return None
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            return None
        choice: StreamedEvent = choices[0]
        if choice.get("finish_reason") or choice.get("logprobs") or choice.get("index"):
            return None
        return words_of(choice.get("delta"), THOUGHTS, _IGNORED)

    def piece(self, last: StreamedEvent, words: StreamedWords) -> StreamedEvent:
        delta = {"role": "assistant", "content": words.said}
        if words.thought:
            delta[THOUGHTS[0]] = words.thought
        return {**last, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
