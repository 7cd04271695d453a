"""Events for streamed text, with a simulated clock."""

from types import SimpleNamespace
from typing import Any

import pytest

from contend.graph.values import Seat
from contend.models.failures import Failure
from contend.models.retries import FailedAttempt
from contend.nodes.calls import stream
from contend.nodes.calls.stream import TurnStream

MODEL = "openai:m1"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(stream, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def sent() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def turn(clock: SimpleNamespace, sent: list[dict[str, Any]]) -> TurnStream:
    runtime: Any = SimpleNamespace(stream_writer=sent.append, control=None, execution_info=None)
    return TurnStream(runtime, Seat(id="a", name="A", role="proposer", model=MODEL), 1, "nonce")


def chunks(sent: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(each["content"], each["metadata"]["tokens_so_far"]) for each in sent]


def test_sends_the_first_text_immediately_and_later_text_in_groups(
    turn: TurnStream, clock: SimpleNamespace, sent: list[dict[str, Any]]
) -> None:
    for piece in ("One ", "two ", "three "):
        turn.text(piece, MODEL)
    assert chunks(sent) == [("One ", 1)]
    clock.now += 0.04
    turn.text("four ", MODEL)
    turn.text("five", MODEL)
    assert chunks(sent)[1:] == [("two three four ", 4)]
    turn.flush()
    assert chunks(sent)[2:] == [("five", 5)]


def test_token_count_does_not_depend_on_how_the_text_arrives(
    turn: TurnStream, sent: list[dict[str, Any]]
) -> None:
    turn.text("One two three four five", MODEL)
    turn.flush()
    assert chunks(sent) == [("One two three four five", 5)]


def test_words_of_a_failed_attempt_that_were_not_sent_are_discarded(
    turn: TurnStream, sent: list[dict[str, Any]]
) -> None:
    for piece in ("Lost ", "words"):
        turn.text(piece, MODEL)
    turn.on_failed_attempt(FailedAttempt("retried", MODEL, Failure("cut", "the stream broke")))
    turn.text("Said", MODEL)
    turn.flush()
    assert [each["content"] for each in sent if each["event"].endswith("_chunk")] == [
        "Lost ",
        "Said",
    ]
    assert turn.tokens == 1
