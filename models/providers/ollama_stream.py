from collections.abc import AsyncIterator, Iterator
from typing import Any

from ollama import AsyncClient, ResponseError

from contend.models.providers.stream_batches import (
    StreamedEvent,
    StreamedWords,
    parse,
    read_pieces,
    words_of,
)


class PieceClient(AsyncClient):
    async def _request(self, cls: Any, *args: Any, stream: bool = False, **given: Any) -> Any:
        if stream:
            return self._pieces(cls, *args, **given)
        return await super()._request(cls, *args, stream=False, **given)

    async def _pieces(self, cls: Any, *args: Any, **given: Any) -> AsyncIterator[Any]:
        async with self._client.stream(*args, **given) as response:
            if response.is_error:
                await response.aread()
                raise ResponseError(response.text, response.status_code)
            async for event, _ in read_pieces(response, _JsonLines()):
                if error := event.get("error"):
                    raise ResponseError(error)
                yield cls(**event)


class _JsonLines:
    is_done = False  # the end of the response ends the answer

    def events(self, lines: list[bytes]) -> Iterator[StreamedEvent]:
        # Blank lines keep the connection alive.
        return (parse(line) for line in lines if not line.isspace() and line)

    def words(self, event: StreamedEvent) -> StreamedWords | None:
        if event.get("done") or event.get("error") or event.get("logprobs"):
            return None
        return words_of(event.get("message"), ("thinking",))

    def piece(self, last: StreamedEvent, words: StreamedWords) -> StreamedEvent:
        message = {"role": "assistant", "content": words.said, "thinking": words.thought or None}
        return {**last, "message": message}
