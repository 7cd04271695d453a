"""Calls are recorded with their events and replayed from a recording."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import TypeAdapter

from contend.graph.errors import ModelFailed, NotRecorded
from contend.graph.values import Usage
from contend.models.answers import Reply
from contend.models.failures import Failure
from contend.models.recording import (
    CallKey,
    CallRequest,
    Received,
    RecordedCall,
    Recording,
    replay_or_record,
    using_recording,
)
from contend.models.retries import Answered, FailedAttempt, Listener

REPLY = TypeAdapter(Reply)
TROUBLE = FailedAttempt(
    "retried", "openai:m", Failure("overloaded", "try later"), Usage(input_tokens=3)
)


def _request(text: str = "Ask abcdef.") -> CallRequest:
    return CallRequest("openai:m", [HumanMessage(text)], {})


class Ear:
    """A listener that records what it receives."""

    def __init__(self, mark: str) -> None:
        self.received: list[Any] = []
        self.listener = Listener(
            lambda piece, _: self.received.append(piece),
            self.received.append,
            asked="r1",
            marks=(mark,),
        )


async def _speak(listener: Listener) -> Answered[Reply]:
    listener.text("Wrong", "openai:m")
    listener.on_failed_attempt(TROUBLE)
    listener.text("Tag: abc", "openai:m")
    listener.text("def.", "openai:other")
    return Answered(Reply("Tag: abcdef.", usage=Usage(output_tokens=5)), "openai:m", fell_back=True)


async def _fail(_: Listener) -> Answered[Reply]:
    raise ModelFailed("Ann", "openai:m", "overloaded", "try later")


async def _record(call: Any, ear: Ear) -> tuple[dict[CallKey, RecordedCall], Any]:
    kept: dict[CallKey, RecordedCall] = {}

    async def keep(key: CallKey, recorded: RecordedCall) -> None:
        # As the database stores it.
        kept[key] = RecordedCall.model_validate_json(recorded.model_dump_json())

    with using_recording(Recording(keep=keep)):
        try:
            return kept, await replay_or_record(_request(), ear.listener, REPLY, call)
        except ModelFailed as failed:
            return kept, failed


async def _must_not_be_called(_: Listener) -> Answered[Reply]:
    raise AssertionError


async def test_replays_a_recorded_call() -> None:
    live, again = Ear("abcdef"), Ear("abcdef")
    kept, answered = await _record(_speak, live)
    with using_recording(Recording(kept, is_complete=True)):
        played = await replay_or_record(_request(), again.listener, REPLY, _must_not_be_called)
    assert played == answered
    assert again.received == live.received == ["Wrong", TROUBLE, "Tag: abc", "def."]


async def test_replay_uses_the_marks_of_the_new_debate() -> None:
    kept, _ = await _record(_speak, Ear("abcdef"))
    assert "abcdef" not in "".join(each.model_dump_json() for each in kept.values())
    other = Ear("123456")
    with using_recording(Recording(kept, is_complete=True)):
        played = await replay_or_record(
            _request("Ask 123456."), other.listener, REPLY, _must_not_be_called
        )
    assert played.result.text == "Tag: 123456."
    assert other.received == ["Wrong", TROUBLE, "Tag: 123", "456."]


async def test_replays_a_recorded_failure() -> None:
    kept, failed = await _record(_fail, Ear(""))
    with using_recording(Recording(kept, is_complete=True)), pytest.raises(ModelFailed) as raised:
        await replay_or_record(_request(), Ear("").listener, REPLY, _must_not_be_called)
    assert vars(raised.value) == vars(failed)


async def test_an_unrecorded_call_fails_unless_the_recording_is_partial() -> None:
    kept, _ = await _record(_speak, Ear("abcdef"))
    other = _request("Ask something else.")
    with using_recording(Recording(kept, is_complete=True)), pytest.raises(NotRecorded, match="r1"):
        await replay_or_record(other, Ear("abcdef").listener, REPLY, _must_not_be_called)
    with using_recording(Recording(kept)):
        made = await replay_or_record(other, Ear("abcdef").listener, REPLY, _speak)
    assert made.result.text == "Tag: abcdef."


async def test_the_same_question_asked_twice_has_two_answers() -> None:
    numbers = iter("12")

    async def count(_: Listener) -> Answered[Reply]:
        return Answered(Reply(next(numbers)), "openai:m", fell_back=False)

    kept: dict[CallKey, RecordedCall] = {}

    async def keep(key: CallKey, recorded: RecordedCall) -> None:
        kept[key] = recorded

    with using_recording(Recording(keep=keep)):
        for _ in range(2):
            await replay_or_record(_request(), Ear("").listener, REPLY, count)
    with using_recording(Recording(kept, is_complete=True)):
        played = [
            await replay_or_record(_request(), Ear("").listener, REPLY, _must_not_be_called)
            for _ in range(2)
        ]
    assert [each.result.text for each in played] == ["1", "2"]


@pytest.mark.looptime
async def test_replay_keeps_the_recorded_timing() -> None:
    received = [Received(at=2, text="Slow", model="m"), Received(at=6, text=" words", model="m")]
    answer = {"model": "m", "fell_back": False, "result": {"text": "Slow words"}}
    call = RecordedCall(
        model="openai:m", parameters={}, received=received, seconds=10, answer=answer
    )
    recording = Recording(speed=2)
    request, ear = _request(), Ear("")
    recording.known = {Recording().key_of(request, ear.listener): call}
    loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    times: list[float] = []
    listener = Listener(lambda *_: times.append(loop.time() - began), asked="r1", marks=("",))
    with using_recording(recording):
        await replay_or_record(request, listener, REPLY, _must_not_be_called)
    assert [*times, loop.time() - began] == pytest.approx([1, 3, 5])
