"""Runs debates on request: reads their number from stdin, and prints what they took."""

import asyncio
import ipaddress
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

Message = dict[str, str]
Ask = Callable[[list[Message]], Awaitable[str]]

MODEL = "gpt-4o-mini"  # a name that every peer knows
SPEAKERS = ("Ada", "Ben", "Cleo")
ROUNDS = 3
QUESTION = "Should a four-person team split its monolith into services?"
RULES = "You take part in a debate. Answer the question, and object to what the others got wrong."
VERDICT = "You judge a debate. Write the best answer that follows from it."


def refuse_other_hosts() -> None:
    """Raise an error if this process connects or looks up a name outside this machine."""
    sys.addaudithook(_check_address)


def _check_address(event: str, given: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(given[1], tuple):
        _check_host(given[1][0])
    elif event == "socket.getaddrinfo":
        _check_host(given[0])


def _check_host(host: str | bytes | None) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if not is_loopback(name):
        print(f"refused: {name}", file=sys.stderr, flush=True)
        raise ConnectionRefusedError(f"{name} is not this machine")


def is_loopback(name: str | None) -> bool:
    try:
        return name in (None, "", "localhost") or ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False


def serve(run: Callable[[int], None], *packages: str) -> None:
    """Run one debate to warm up; then, for each number on stdin, that many debates at once."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints must not mix with the answers
    run(1)
    versions = {package: version(package) for package in packages}
    print(json.dumps(versions), file=answers, flush=True)
    for line in sys.stdin:
        began, spent = time.monotonic(), time.process_time()
        run(int(line))
        took = {"seconds": time.monotonic() - began, "cpu": time.process_time() - spent}
        print(json.dumps(took), file=answers, flush=True)


def on_event_loop(debate: Callable[[], Awaitable[object]]) -> Callable[[int], None]:
    """Run debates concurrently on one event loop, which keeps its connections."""
    runner = asyncio.Runner()

    async def all_at_once(count: int) -> None:
        await asyncio.gather(*(debate() for _ in range(count)))

    return lambda count: runner.run(all_at_once(count))


def in_threads(debate: Callable[[], object]) -> Callable[[int], None]:
    def all_at_once(count: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            for done in [pool.submit(debate) for _ in range(count)]:
                done.result()

    return all_at_once


async def debate_by(ask: Ask) -> None:
    """Debate with a client: every round at once, each speaker with all earlier rounds."""
    said: list[str] = []
    for _ in range(ROUNDS):
        answers = await asyncio.gather(*(ask(prompt(RULES, said)) for _ in SPEAKERS))
        said += [f"{name}: {text}" for name, text in zip(SPEAKERS, answers, strict=True)]
    await ask(prompt(VERDICT, said))


def prompt(instructions: str, said: list[str]) -> list[Message]:
    asked = "\n\n".join([QUESTION, *said])
    return [{"role": "system", "content": instructions}, {"role": "user", "content": asked}]
