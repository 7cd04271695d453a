"""Limits per client."""

import asyncio
from typing import Any

import pytest

from contend.service.errors import Refused
from contend.service.limits import StreamLimit
from contend.service.options import ServiceOptions
from contend.service.runs import Runs
from contend.service.starts import start_debate
from tests.service.test_bodies import BEGINNING, sent
from tests.service.test_debates import DEBATES, QUESTION, models, serve, start, wait_until_not_here
from tests.service.test_steering import Held, held

__all__ = ["held", "models"]


async def test_limits_the_running_debates_of_one_client() -> None:
    runs = Runs(ServiceOptions(max_running=3, max_running_per_client=2))
    with runs.reserve_slot("ann"), runs.reserve_slot("ann"):
        with pytest.raises(Refused, match="You have 2 debates running") as refused:
            runs.reserve_slot("ann").__enter__()
        assert refused.value.code == 429
        with runs.reserve_slot("ben"), pytest.raises(Refused, match="3 debates may run at once"):
            runs.reserve_slot("cleo").__enter__()
    with runs.reserve_slot("ann"):
        pass


def test_debates_count_towards_the_limit_until_they_end(held: Held) -> None:
    with serve(max_running_per_client=1) as client:
        debate = start(client).id
        held.wait()
        refused = client.post(DEBATES, json={"question": QUESTION})
        assert (refused.status_code, refused.json()["error"]) == (429, "too_many_debates")
        assert refused.headers["retry-after"] == "10"
        held.go_on()
        wait_until_not_here(client, debate)
        start(client)


async def test_reading_a_request_body_reserves_no_slot() -> None:
    runs = Runs(ServiceOptions(max_running=1))
    is_reading = asyncio.Event()
    request = sent(BEGINNING, BEGINNING, reading=is_reading, every=3600)
    starting = asyncio.create_task(start_debate(runs, request))
    await is_reading.wait()
    with runs.reserve_slot("other"):
        pass
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)


async def test_limits_the_open_streams_of_one_client() -> None:
    is_open, are_closed = asyncio.Semaphore(0), asyncio.Event()

    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        is_open.release()
        await are_closed.wait()

    limit = StreamLimit(app, most=2)
    statuses: list[int] = []

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def receive() -> Any:
        raise AssertionError

    def call(client: str, path: str = f"{DEBATES}/some/events") -> Any:
        scope = {"type": "http", "path": path, "client": (client, 1), "headers": []}
        return limit(scope, receive, send)

    streams = [asyncio.create_task(call(each)) for each in ("ann", "ann", "ben")]
    for _ in streams:
        await is_open.acquire()
    await call("ann")
    assert statuses == [429]
    streams.append(asyncio.create_task(call("ann", f"{DEBATES}/some")))
    are_closed.set()
    await asyncio.gather(*streams)
    await call("ann")
    assert statuses == [429]
