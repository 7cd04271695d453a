"""aiohttp without any client library: about the least that a debate can cost."""

import os

import aiohttp
import orjson

from benchmarks.peers.driver import MODEL, Message, debate_by, on_event_loop, serve

_EVENT = b"data: {"


def main() -> None:
    sessions: list[aiohttp.ClientSession] = []

    async def ask(messages: list[Message]) -> str:
        if not sessions:
            key = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
            unlimited = aiohttp.TCPConnector(limit=0)
            sessions.append(aiohttp.ClientSession(headers=key, connector=unlimited))
        address = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        body = {"model": MODEL, "messages": messages, "stream": True}
        async with sessions[0].post(address, json=body) as answer:
            return "".join([_text(line) async for line in answer.content])

    serve(on_event_loop(lambda: debate_by(ask)), "aiohttp")


def _text(line: bytes) -> str:
    if not line.startswith(_EVENT):
        return ""
    event = orjson.loads(line[len(_EVENT) - 1 :])
    return "".join(choice["delta"].get("content") or "" for choice in event["choices"])
