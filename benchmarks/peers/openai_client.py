"""The bare openai client: the measure of all others."""

import sys

import openai

from benchmarks.peers.driver import MODEL, Message, debate_by, on_event_loop, serve


def main() -> None:
    streams = "--whole" not in sys.argv
    client = openai.AsyncOpenAI(max_retries=0, timeout=3600)

    async def read_stream(messages: list[Message]) -> str:
        text = []
        given: list[openai.types.chat.ChatCompletionMessageParam] = messages  # type: ignore[assignment]
        async for chunk in await client.chat.completions.create(
            model=MODEL, messages=given, stream=True, stream_options={"include_usage": True}
        ):
            text += [choice.delta.content or "" for choice in chunk.choices]
        return "".join(text)

    async def read_whole(messages: list[Message]) -> str:
        given: list[openai.types.chat.ChatCompletionMessageParam] = messages  # type: ignore[assignment]
        answer = await client.chat.completions.create(model=MODEL, messages=given)
        return answer.choices[0].message.content or ""

    ask = read_stream if streams else read_whole
    serve(on_event_loop(lambda: debate_by(ask)), "openai")
