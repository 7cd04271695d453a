"""Events that viewers receive, including those about failures."""

from typing import get_args

import pytest

from contend.graph.errors import ModelFailed
from contend.graph.events import (
    EventName,
    NodeEvent,
    chunk_event,
    event_writer,
    events_received_by,
    node_event,
)
from contend.graph.state import Turn
from tests.support.model_server import ModelServer, Reply, openai_error
from tests.support.scripted import Played, Sent, critique, full_cast, play

SPOKEN = {
    "propose": "proposer",
    "critique": "skeptic",
    "synthesize": "synthesizer",
    "score": "judge",
}


def thinking_aloud(sent: Sent) -> str:
    code = "```python\nprint('<b>')\n```"
    return f"<think>What to say?</think>The cost {code} is guessed.\n\n{critique()(sent)}"


@pytest.fixture
async def played() -> Played:
    return await play(full_cast(skeptic=thinking_aloud), max_rounds=3)


async def test_every_event_is_in_the_vocabulary(played: Played) -> None:
    assert {event["event"] for event in played.events} <= set(get_args(EventName))


async def test_events_follow_the_order_of_the_debate(played: Played) -> None:
    told = [e["event"] for e in played.events if not e["event"].endswith("_chunk")]
    one_round = [
        "round_start",
        "seat_complete",
        "seat_complete",
        "round_complete",
        "judge_decision",
    ]
    closing = ["synthesis_start", "seat_complete", "final_complete", "seat_complete", "scores"]
    assert told == ["rag_complete", *one_round * 3, *closing]


async def test_round_and_synthesis_events_name_speakers_and_texts(played: Played) -> None:
    def speaker(event: NodeEvent) -> tuple[str, str]:
        return event["metadata"]["role"], event["metadata"]["model"]

    assert {speaker(each) for each in played.named("round_start")} == {
        ("proposer", "scripted:proposer")
    }
    (writing,) = played.named("synthesis_start")
    assert speaker(writing) == ("synthesizer", "scripted:synthesizer")
    for ended in played.named("round_complete"):
        said = [(each["id"], each["text"]) for each in ended["metadata"]["responses"]]
        in_round = [turn for turn in played.turns if turn.round == ended["round"]]
        debated = [turn for turn in in_round if turn.phase in ("propose", "critique")]
        assert said == [(turn.id, turn.text) for turn in debated]


async def test_early_stop_event_has_its_reason() -> None:
    played = await play(full_cast(skeptic=critique(ready=True, severity="major")))
    (stop,) = played.named("early_stop")
    assert stop["metadata"]["reason"] == "skeptic_ready"
    decision = played.named("judge_decision")[0]["metadata"]
    assert decision == {"decision": "stop", "reason": "skeptic_ready", "by_model": False}


async def test_disabled_templates_are_reported(played: Played) -> None:
    (found,) = played.named("rag_complete")
    assert found["content"] == "Templates are off."
    assert found["metadata"]["templates"] == []


def streamed(played: Played, turn: Turn) -> str:
    chunks = [
        e["content"]
        for e in played.events
        if e["event"] == chunk_event(turn.role) and e["round"] == turn.round
    ]
    return "".join(chunks)


async def test_seat_complete_event_has_the_full_text(played: Played) -> None:
    told = {e["metadata"]["turn"]: e["content"] for e in played.named("seat_complete")}
    assert told == {turn.id: turn.text for turn in played.turns}


async def test_chunks_join_to_the_text_without_thinking_or_block(played: Played) -> None:
    assert {turn.phase for turn in played.turns} == set(SPOKEN)
    for turn in played.turns:
        assert streamed(played, turn).strip() == turn.text
        assert "nonce" not in turn.text
        assert "<think>" not in turn.text
    assert "print('<b>')" in played.turns[1].text
    assert played.turns[1].thinking == "What to say?"


async def test_a_chunk_names_its_speaker(played: Played) -> None:
    (first, *_) = played.named("skeptic_chunk")
    assert first["metadata"]["model"] == "scripted:skeptic"
    assert first["metadata"]["seat"] == first["metadata"]["role"] == "skeptic"
    counts = [e["metadata"]["tokens_so_far"] for e in played.named("skeptic_chunk")[:2]]
    assert counts == sorted(counts)


async def test_every_speech_begins_with_a_chunk_without_words(played: Played) -> None:
    """Viewers learn from it which seat the debate is waiting for."""
    asked = [(e["round"], e["metadata"]) for e in played.events if _is_opening(e)]
    assert [(number, meta["seat"], meta["phase"], meta["model"]) for number, meta in asked] == [
        (turn.round, turn.seat, turn.phase, turn.model) for turn in played.turns
    ]


def _is_opening(event: NodeEvent) -> bool:
    return event["event"].endswith("_chunk") and event["content"] == ""


async def test_unreadable_ratings_leave_the_answer_unrated() -> None:
    played = await play(full_cast(judge="Rather good!"), min_rounds=1, max_rounds=1)
    assert "auto_score" not in played.state
    assert [(d.what, d.seat) for d in played.degraded] == [("not_rated", "judge")]
    assert played.state["trace"]["quality_score"] is None
    assert played.turns[-1].text == "Rather good!"
    assert len(played.cast.sent_to("judge")) == 2


async def test_a_fallback_is_marked_in_turn_state_and_events(server: ModelServer) -> None:
    server.models = None
    server.script = lambda request: (
        openai_error(401, "no") if request.model == "gone" else "From the spare."
    )
    played = await play(
        full_cast(),
        min_rounds=1,
        max_rounds=1,
        proposer_model="openai:gone",
        proposer_fallbacks=("openai:second", "openai:spare"),
    )
    turn = played.turns[0]
    assert (turn.status, turn.model) == ("fallback_model", "openai:second")
    (fell,) = played.degraded
    assert (fell.what, fell.seat, fell.round) == ("fell_back", "proposer", 1)
    (event,) = played.named("degraded")
    assert event["metadata"]["restart"] is True
    assert "openai:gone: auth: 401" in event["content"]


async def test_chunks_of_a_failed_attempt_are_void(server: ModelServer) -> None:
    replies = [Reply("A draft that breaks off here.", cut_after=3), Reply("The whole answer.")]
    server.script = lambda request: replies[min(request.index, 1)]
    played = await play(
        full_cast(), min_rounds=1, max_rounds=1, proposer_model="openai:m1", retry_wait=0.001
    )
    assert played.turns[0].text == "The whole answer."
    names = [e["event"] for e in played.events]
    last_restart = max(i for i, e in enumerate(played.events) if e["metadata"].get("restart"))
    after = played.events[last_restart:]
    said = "".join(e["content"] for e in after if e["event"] == "proposer_chunk")
    assert said == "The whole answer."
    assert names.index("degraded") == last_restart
    assert [d.what for d in played.degraded] == ["retried"]


async def test_failed_judge_only_leaves_the_answer_unrated(server: ModelServer) -> None:
    server.script = lambda request: openai_error(401, "no")
    played = await play(full_cast(), min_rounds=1, max_rounds=1, judge_model="openai:m1")
    assert played.state["final_answer"] == "## Answer\nKeep the monolith."
    assert played.degraded[-1].what == "not_rated"
    assert played.path[-1] == "store"


async def test_permanent_failure_of_a_speaker_fails_the_debate(server: ModelServer) -> None:
    server.script = lambda request: openai_error(401, "no")
    cast = full_cast()
    with pytest.raises(ModelFailed, match=r"Skeptic \(openai:m1\): 401: no"):
        await play(cast, skeptic_model="openai:m1")
    assert len(server.calls) == 1
    assert [sent.model for sent in cast.sent] == ["proposer"]


def test_an_event_that_is_sent_after_the_run_is_dropped() -> None:
    received: list[NodeEvent] = []
    streamed: list[NodeEvent] = []
    with events_received_by(received.append):
        send = event_writer(streamed.append)
        send(node_event("degraded", 1, "During the run."))
    send(node_event("degraded", 1, "After the run."))
    assert [each["content"] for each in received] == ["During the run."]
    assert streamed == []
