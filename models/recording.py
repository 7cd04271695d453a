import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, TypeAdapter

from contend.graph.errors import ModelFailed, NotRecorded
from contend.graph.values import NO_USAGE, Retrieval
from contend.models.retries import Answered, FailedAttempt, Listener, Result
from contend.models.text import clean_piece

# Pieces that arrive within this time are merged, because viewers see no difference.
_SECONDS_OF_A_PIECE = 0.03
# In recordings, a debate's secret marks are replaced with characters starting at this one.
_FIRST_PLACEHOLDER = 0xE000
_SENT = {"type", "content", "tool_calls", "tool_call_id"}


@dataclass
class Received:
    at: float  # seconds after the call began
    text: str = ""
    model: str = ""
    trouble: FailedAttempt | None = None


class RecordedCall(BaseModel):
    model: str
    parameters: dict[str, Any]
    received: list[Received]
    seconds: float
    answer: dict[str, Any] | None = None
    failure: dict[str, str] | None = None  # the arguments of ModelFailed


class CallKey(NamedTuple):
    """Identifies a call. The same call has the same key in every debate."""

    asked: str  # the seat, round and phase
    messages: str  # their hash
    number: int = 0  # numbers equal calls within one run


class CallRequest(NamedTuple):
    model: str
    messages: Sequence[BaseMessage]
    parameters: dict[str, Any]


@dataclass
class Recording:
    known: Mapping[CallKey, RecordedCall] = field(default_factory=dict)
    keep: Callable[[CallKey, RecordedCall], Awaitable[None]] | None = None
    is_complete: bool = False  # if True, an unknown call is an error
    speed: float | None = None  # None for no waiting
    retrieval: Retrieval | None = None  # templates found earlier, used instead of a search
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def key_of(self, request: CallRequest, listener: Listener) -> CallKey:
        same = listener.asked, _hash(request.messages, listener.marks)
        self._made[same] += 1
        return CallKey(*same, self._made[same] - 1)

    def count(self, made: Iterable[CallKey]) -> None:
        """Count calls already made, so that the next identical call gets the next number."""
        self._made.update((key.asked, key.messages) for key in made)

    def has_made(self, key: CallKey) -> bool:
        return key.number < self._made[key.asked, key.messages]

    async def wait_until(self, seconds: float, began: float) -> None:
        if self.speed is not None:
            passed = asyncio.get_running_loop().time() - began
            await asyncio.sleep(max(0.0, seconds / self.speed - passed))


_recording: ContextVar[Recording | None] = ContextVar("recording", default=None)
_on_servers: dict[str, Recording] = {}


@contextmanager
def using_recording(recording: Recording) -> Iterator[None]:
    before = _recording.set(recording)
    try:
        yield
    finally:
        _recording.reset(before)


def is_recording() -> bool:
    """Return whether our own runner runs this debate, rather than a LangGraph server."""
    return _recording.get() is not None


@contextmanager
def recording_debate(debate_id: str, recording: Recording) -> Iterator[None]:
    """Record a debate's calls by its id, because a server's tasks share no context variables."""
    _on_servers[debate_id] = recording
    try:
        yield
    finally:
        _on_servers.pop(debate_id, None)


def recorded_retrieval() -> Retrieval | None:
    recording = _recording.get()
    return recording.retrieval if recording else None


async def replay_or_record(
    request: CallRequest,
    listener: Listener,
    form: TypeAdapter[Result],
    call: Callable[[Listener], Awaitable[Answered[Result]]],
) -> Answered[Result]:
    recording = _recording.get() or _on_servers.get(listener.debate)
    if recording is None:
        return await call(listener)
    key = recording.key_of(request, listener)
    recorded = recording.known.get(key)
    if recorded and (recording.is_complete or recorded.model == request.model):
        if recording.keep:
            recorded = _unpaid(recorded)
            await recording.keep(key, recorded)
        return await _play(recording, recorded, listener, form)
    if recording.is_complete:
        raise NotRecorded(key.asked)
    return await _record(recording, key, request, listener, form, call)


def _unpaid(call: RecordedCall) -> RecordedCall:
    """Return the call without usage, because a reused call costs nothing."""
    received = [
        replace(each, trouble=replace(each.trouble, usage=NO_USAGE)) if each.trouble else each
        for each in call.received
    ]
    answer = call.answer
    if answer:
        unpaid = NO_USAGE.model_dump(mode="json")
        answer = {**answer, "result": {**answer["result"], "usage": unpaid}}
    return call.model_copy(update={"received": received, "answer": answer})


async def _play(
    recording: Recording, recorded: RecordedCall, listener: Listener, form: TypeAdapter[Result]
) -> Answered[Result]:
    began = asyncio.get_running_loop().time()
    call = with_marks(recorded, listener.marks)
    for received in call.received:
        await recording.wait_until(received.at, began)
        if received.trouble:
            listener.on_failed_attempt(received.trouble)
        else:
            listener.text(received.text, received.model)
    await recording.wait_until(call.seconds, began)
    if call.answer is None:
        raise ModelFailed(**(call.failure or {}))
    result = form.validate_python(call.answer["result"])
    return Answered(result, call.answer["model"], fell_back=call.answer["fell_back"])


async def _record(
    recording: Recording,
    key: CallKey,
    request: CallRequest,
    listener: Listener,
    form: TypeAdapter[Result],
    call: Callable[[Listener], Awaitable[Answered[Result]]],
) -> Answered[Result]:
    recorder = _Recorder(listener, asyncio.get_running_loop().time())
    made = RecordedCall(model=request.model, parameters=request.parameters, received=[], seconds=0)
    try:
        answered = await call(recorder.listener())
    except ModelFailed as failed:
        why = {"seat": failed.seat, "model": failed.model, "kind": failed.kind, "why": failed.why}
        await recorder.end(recording, key, made.model_copy(update={"failure": why}))
        raise
    answer = {"model": answered.model, "fell_back": answered.fell_back}
    answer |= {"result": form.dump_python(answered.result, mode="json")}
    await recorder.end(recording, key, made.model_copy(update={"answer": answer}))
    return answered


@dataclass
class _Recorder:
    inner: Listener
    began: float
    received: list[Received] = field(default_factory=list)

    def listener(self) -> Listener:
        return replace(self.inner, text=self._text, on_failed_attempt=self._add_failed_attempt)

    def _text(self, piece: str, model: str) -> None:
        last, now = self.received[-1] if self.received else None, self._seconds()
        if last and last.model == model and now - last.at < _SECONDS_OF_A_PIECE:
            last.text += piece
        else:
            self.received.append(Received(at=now, text=piece, model=model))
        self.inner.text(piece, model)

    def _add_failed_attempt(self, attempt: FailedAttempt) -> None:
        self.received.append(Received(at=self._seconds(), trouble=attempt))
        self.inner.on_failed_attempt(attempt)

    def _seconds(self) -> float:
        return round(asyncio.get_running_loop().time() - self.began, 3)

    async def end(self, recording: Recording, key: CallKey, made: RecordedCall) -> None:
        if recording.keep:
            for each in self.received:  # only now: there may be thousands of pieces
                each.text = clean_piece(each.text)
            whole = made.model_copy(update={"received": self.received, "seconds": self._seconds()})
            await recording.keep(key, _without_marks(whole, self.inner.marks))


def _hash(messages: Sequence[BaseMessage], marks: Sequence[str]) -> str:
    """Hash the messages without the nonces, which differ in every debate."""
    parts = [each.model_dump(include=_SENT) for each in messages]
    text = _replace(json.dumps(parts, ensure_ascii=False, default=str), _pairs(marks))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _pairs(marks: Sequence[str]) -> list[tuple[str, str]]:
    given = [(mark, chr(_FIRST_PLACEHOLDER + number)) for number, mark in enumerate(marks)]
    return [(mark, sign * len(mark)) for mark, sign in given if mark]


def _without_marks(call: RecordedCall, marks: Sequence[str]) -> RecordedCall:
    return _translate(call, _pairs(marks))


def with_marks(call: RecordedCall, marks: Sequence[str]) -> RecordedCall:
    return _translate(call, [(sign, mark) for mark, sign in _pairs(marks)])


def _translate(call: RecordedCall, pairs: list[tuple[str, str]]) -> RecordedCall:
    texts = _replace_across([each.text for each in call.received], pairs)
    received = [replace(each, text=text) for each, text in zip(call.received, texts, strict=True)]
    return call.model_copy(update={"received": received, "answer": _replace_in(call.answer, pairs)})


def _replace_across(texts: Sequence[str], pairs: list[tuple[str, str]]) -> list[str]:
    """Replace nonces in consecutive texts, including a nonce that spans two texts."""
    whole = _replace("".join(texts), pairs)
    ends = list(accumulate(len(text) for text in texts))
    return [whole[end - len(text) : end] for text, end in zip(texts, ends, strict=True)]


def _replace_in(data: Any, pairs: list[tuple[str, str]]) -> Any:
    if isinstance(data, str):
        return _replace(data, pairs)
    if isinstance(data, list):
        return [_replace_in(each, pairs) for each in data]
    if isinstance(data, dict):
        return {key: _replace_in(value, pairs) for key, value in data.items()}
    return data


def _replace(text: str, pairs: list[tuple[str, str]]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text
