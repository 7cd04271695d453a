"""Request bodies that are incomplete, too slow or too large."""

import asyncio
from typing import Any

import pytest
from fastapi import Request

from contend.service.bodies import SECONDS_FOR_JSON, read_json
from contend.service.errors import Refused

BEGINNING = {"type": "http.request", "body": b"{", "more_body": True}


def sent(*messages: Any, every: float = 0.0, reading: asyncio.Event | None = None) -> Request:
    """Return a request whose client sends these messages and then disconnects."""
    left = iter(messages)

    async def receive() -> Any:
        if reading:
            reading.set()
        await asyncio.sleep(every)
        return next(left, {"type": "http.disconnect"})

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


async def test_a_client_disconnect_is_refused_as_incomplete() -> None:
    with pytest.raises(Refused, match="ended before it was complete"):
        await read_json(sent(BEGINNING))


@pytest.mark.looptime
async def test_a_slow_body_times_out() -> None:
    with pytest.raises(Refused, match="not complete after 30 seconds") as refused:
        await read_json(sent(*[BEGINNING] * 100, every=1))
    assert refused.value.code == 408
    assert asyncio.get_running_loop().time() == pytest.approx(SECONDS_FOR_JSON, abs=1)


async def test_stops_reading_a_body_that_is_too_large() -> None:
    with pytest.raises(Refused, match="larger than 3 bytes"):
        await read_json(sent(*[BEGINNING] * 4), most=3)
