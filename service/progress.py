"""Describes the progress of a debate in words, for clients that show only text."""

import asyncio
from collections.abc import AsyncGenerator

from contend.debates.events import Event
from contend.graph.events import EventName
from contend.service.run import Run

_SECONDS_WITHOUT_NEWS = 15.0
_TEXTS: dict[EventName, str] = {
    "round_start": "## Round {round}",
    "seat_complete": "**{seat}:** {content}",
    "judge_decision": "The judge: {content}",
    "model_eliminated": "{seat} concedes: {content}",
    "early_stop": "The rounds end: {content}",
    "synthesis_start": "The answer is being written.",
    "degraded": "Note: {content}",
    "paused": "Paused: {content}",
    "resumed": "Resumed.",
}


def follow_progress(run: Run) -> AsyncGenerator[str]:
    """Yield descriptions of progress until the run ends; yield '' during long pauses."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    run.listeners.add(events)
    run.task.add_done_callback(lambda _: events.put_nowait(None))
    return _describe_all(run, events)


async def _describe_all(run: Run, events: "asyncio.Queue[Event | None]") -> AsyncGenerator[str]:
    names = {str(seat["id"]): str(seat["name"]) for seat in run.debate.state["seats"]}
    try:
        while True:
            try:
                async with asyncio.timeout(_SECONDS_WITHOUT_NEWS):
                    event = await events.get()
            except TimeoutError:
                yield ""
                continue
            if event is None:
                return
            if text := describe_event(event, names):
                yield text
    finally:
        run.listeners.discard(events)


def describe_event(event: Event, names: dict[str, str]) -> str:
    about, content = event["metadata"], event["content"].strip()
    wanted = _TEXTS.get(event["event"], "")
    if about.get("phase") == "synthesize" or ("{content}" in wanted and not content):
        return ""  # the answer is shown at the end
    seat = names.get(str(about.get("seat")), str(about.get("role") or "").capitalize())
    return wanted.format(round=event["round"], seat=seat, content=content)
