"""Fallbacks of refine when calls to a model server fail or time out.

Every fault is tried as a timeout, as an error that would be worth a retry, and as one that is not.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from contend.graph.errors import ModelFailed
from contend.graph.values import Degradation
from contend.prompts import load
from tests.support.model_server import ModelServer, Reply, Request, openai_error
from tests.support.scripted import Cast, Played, play, refine_settings

NAMES = ("Ann", "Ben", "Cyd")
SEATS = [{"name": name, "model": f"openai:{name.lower()}"} for name in NAMES]
INITIAL = {
    "ann": "Keep one deployable unit.",
    "ben": "Keep one deployable unit and modules.",
    "cyd": "Split it into modules today.",
}
RATED = (
    "Correctness: 8\nCompleteness: 8\nClarity: 8\nDepth: 8\nJustification: Good.\n"
    "Would-benefit-from-finetune: false"
)
FAULTS = {
    "timeout": Reply("Too late.", delay=30),
    "stall": Reply("Half an answer that never ends", stall_after=2),
    "server error": openai_error(500, "on fire"),
    "refusal": openai_error(401, "no"),
}

Fails = Callable[[str, str, int], bool]
"""Whether a model fails, by its name, what it is asked for and the round."""


def asked_for(request: Request) -> tuple[str, int]:
    """Return the purpose of a call, and its round if the prompt shows it."""
    text = request.user
    if "Rate this answer" in text:
        return "score", 0
    if "Merge these answers" in text:
        return "merge", 0
    if "Give feedback that makes" in text:
        return "feedback", 1 + text.count("## Your feedback in round")
    found = [number for number in range(1, 9) if f"Round {number} of " in text]
    return "answer", found[0] if found else 0


def table(fault: Reply, fails: Fails) -> Callable[[Request], Reply | str]:
    def script(request: Request) -> Reply | str:
        task, number = asked_for(request)
        if fails(request.model, task, number):
            return fault
        if task == "answer":
            return f"{request.model} refined {number}." if number else INITIAL[request.model]
        said = {"feedback": f"Feedback {number}.", "merge": "Merged.", "score": RATED}
        return said[task]

    return script


def _param(name: str) -> ParameterSet:
    """Mark faults that run into a timeout as slow."""
    marks = [pytest.mark.slow] if name in ("timeout", "stall") else []
    return pytest.param(FAULTS[name], id=name, marks=marks)


@pytest.fixture(params=[_param(name) for name in FAULTS])
def fault(request: pytest.FixtureRequest) -> Reply:
    reply: Reply = request.param
    return reply


async def debated(server: ModelServer, fault: Reply, fails: Fails, **changes: Any) -> Played:
    server.models, server.script = None, table(fault, fails)
    # Where time is the fault, also the calls of the normal policy are short, so that it is seen.
    seconds = 4 if fault.delay or fault.stall_after else 60
    quick: dict[str, Any] = {"idle_timeout": seconds, "total_timeout": 60, "max_retries": 0}
    quick |= {"first_token_timeout": seconds}
    quick |= {"debate_timeout_ms": seconds * 1000, "judge_feedback_timeout_ms": seconds * 1000}
    usual: dict[str, Any] = {"seats": SEATS, "judge_model": "openai:judge"} | quick
    return await play(Cast(), "Split it?", settings=refine_settings(**usual | changes))


def steps(played: Played) -> list[tuple[str | None, int | None, str]]:
    """Return the degradations of the protocol without those of single calls."""
    calls = ("failed", "fell_back", "retried", "not_rated")
    return [(d.seat, d.round, d.what) for d in played.degraded if d.what not in calls]


def answers(played: Played, number: int) -> list[tuple[str, str, str]]:
    return [
        (turn.seat, turn.text, turn.status)
        for turn in played.turns
        if turn.phase == "propose" and turn.round == number
    ]


def sent_for(server: ModelServer, task: str) -> list[Request]:
    return [call.request for call in server.calls if asked_for(call.request)[0] == task]


def announced(played: Played) -> list[str]:
    return [e["metadata"]["what"] for e in played.named("degraded")]


async def test_failed_feedback_is_replaced_by_general_advice(
    server: ModelServer, fault: Reply
) -> None:
    played = await debated(server, fault, lambda _, task, number: (task, number) == ("feedback", 1))
    assert steps(played)[0] == ("judge", 1, "generic_feedback")
    assert "generic_feedback" in announced(played)
    first = next(turn for turn in played.turns if turn.phase == "critique")
    assert (first.text, first.status, first.model) == (load("shared/feedback"), "failed", "")
    refining = [request for request in sent_for(server, "answer") if asked_for(request)[1] == 1]
    assert len(refining) == 3
    assert all(load("shared/feedback") in request.user for request in refining)
    assert played.state["final_answer"] == "Merged."
    # General advice is not the judge's own: it is not shown to it as such.
    later = sent_for(server, "feedback")[-1]
    assert load("shared/feedback") not in later.user


async def test_seat_that_fails_in_a_round_keeps_its_previous_answer(
    server: ModelServer, fault: Reply
) -> None:
    played = await debated(server, fault, lambda model, _, number: (model, number) == ("ben", 1))
    assert steps(played) == [("ben", 1, "kept_previous")]
    assert "kept_previous" in announced(played)
    assert answers(played, 1) == [
        ("ann", "ann refined 1.", "ok"),
        ("ben", INITIAL["ben"], "kept_previous"),
        ("cyd", "cyd refined 1.", "ok"),
    ]
    assert [status for _, _, status in answers(played, 2)] == ["ok", "ok", "ok"]
    assert played.stop_reason == "max_rounds"
    assert played.state["trace"]["rounds"][1]["answers"][1] == {
        "seat": "ben",
        "text": INITIAL["ben"],
        "status": "kept_previous",
    }


async def test_seat_that_fails_at_the_start_skips_the_round_and_is_retried(
    server: ModelServer, fault: Reply
) -> None:
    played = await debated(server, fault, lambda model, _, number: (model, number) == ("ann", 0))
    # The prompt of a first answer is the same in round 1, so Ann fails there as well.
    assert steps(played) == [("ann", number, "sat_out") for number in (0, 1, 2)]
    assert [seat for seat, *_ in answers(played, 2)] == ["ben", "cyd"]
    judged = sent_for(server, "feedback")[0].user
    assert "### Answer A" not in judged
    assert "### Answer B" in judged
    assert "### Answer C" in judged
    asked = Counter(request.model for request in sent_for(server, "answer"))
    assert asked == {"ann": 3, "ben": 3, "cyd": 3}


async def test_skipped_seat_can_join_later(server: ModelServer) -> None:
    broken = True

    def fails(model: str, task: str, _: int) -> bool:
        nonlocal broken
        broken = broken and task != "feedback"
        return model == "ann" and broken

    played = await debated(server, FAULTS["refusal"], fails)
    assert steps(played) == [("ann", 0, "sat_out")]
    assert answers(played, 1)[0] == ("ann", INITIAL["ann"], "ok")
    assert answers(played, 2)[0] == ("ann", "ann refined 2.", "ok")


async def test_all_failing_at_the_start_fails_the_debate(server: ModelServer, fault: Reply) -> None:
    with pytest.raises(ModelFailed, match=r"Ann \(openai:ann\)") as failed:
        await debated(server, fault, lambda _, task, number: (task, number) == ("answer", 0))
    assert {entry.seat for entry in failed.value.degraded} == {"ann", "ben", "cyd"}
    assert len(server.calls) == 3


async def test_initial_answers_are_merged_if_every_seat_fails_in_a_round(
    server: ModelServer, fault: Reply
) -> None:
    played = await debated(server, fault, lambda _, task, number: (task, number) == ("answer", 2))
    assert [text for _, text, _ in answers(played, 1)] == [f"{m} refined 1." for m in INITIAL]
    assert answers(played, 2) == [(seat, text, "kept_previous") for seat, text in INITIAL.items()]
    assert steps(played)[-1] == (None, 2, "initial_answers_stand")
    assert [step for _, _, step in steps(played)[:-1]] == ["kept_previous"] * 3
    assert (played.stop_reason, played.state["stop"].round) == ("failed", 2)
    (merge,) = sent_for(server, "merge")
    assert all(text in merge.user for text in INITIAL.values())
    assert "refined" not in merge.user
    assert played.state["final_answer"] == "Merged."


async def test_no_further_round_runs_after_every_seat_failed(server: ModelServer) -> None:
    played = await debated(
        server,
        FAULTS["refusal"],
        lambda _, task, number: task == "answer" and number == 1,
        max_debate_rounds=5,
    )
    assert played.stop_reason == "failed"
    assert len(sent_for(server, "feedback")) == 1
    assert len(sent_for(server, "answer")) == 6


async def test_merge_runs_if_feedback_and_refinement_fail(
    server: ModelServer, fault: Reply
) -> None:
    played = await debated(server, fault, lambda _, task, number: task == "feedback" or number > 0)
    assert [what for _, _, what in steps(played)] == [
        "generic_feedback",
        *["kept_previous"] * 3,
        "initial_answers_stand",
    ]
    assert played.state["final_answer"] == "Merged."


async def test_failed_merge_returns_a_latest_answer_labelled_as_such(
    server: ModelServer, fault: Reply
) -> None:
    played = await debated(server, fault, lambda _, task, __: task == "merge")
    # All share as many words, so the first seat's counts.
    assert played.state["final_answer"] == "ann refined 2."
    final = next(turn for turn in played.turns if turn.phase == "synthesize")
    assert (final.seat, final.model, final.status) == ("ann", "openai:ann", "kept_previous")
    (entry,) = [entry for entry in played.degraded if entry.what == "not_merged"]
    assert (entry.seat, entry.round) == ("judge", 2)
    assert "this is Ann's latest answer" in entry.why
    (told,) = played.named("final_complete")
    assert told["metadata"]["status"] == "kept_previous"


async def test_judge_that_failed_to_merge_is_not_recorded_as_the_writer(
    server: ModelServer,
) -> None:
    merged = await debated(server, FAULTS["refusal"], lambda *_: False)
    assert merged.state["trace"]["auto_score"]["judge_wrote_answer"] is True
    unmerged = await debated(server, FAULTS["refusal"], lambda _, task, __: task == "merge")
    assert unmerged.state["trace"]["auto_score"]["judge_wrote_answer"] is False


async def test_refinement_and_feedback_are_never_retried_but_other_calls_are(
    server: ModelServer,
) -> None:
    def fails(model: str, task: str, number: int) -> bool:
        refining = (model, number) == ("ben", 1)
        return refining or (task, number) == ("feedback", 2) or task == "merge"

    retries: dict[str, Any] = {"max_retries": 2, "retry_wait": 0.001, "total_timeout": 60}
    await debated(server, FAULTS["server error"], fails, **retries)
    tried = Counter(
        (call.request.model, *asked_for(call.request))
        for call in server.calls
        if call.status == 500
    )
    assert tried == {("ben", "answer", 1): 1, ("judge", "feedback", 2): 1, ("judge", "merge", 0): 3}


async def test_fallback_model_is_tried_before_the_previous_answer(server: ModelServer) -> None:
    seats = [{**SEATS[0], "fallbacks": ["openai:spare"]}, *SEATS[1:]]
    played = await debated(
        server,
        FAULTS["server error"],
        lambda model, _, number: model == "ann" and number > 0,
        seats=seats,
    )
    assert answers(played, 1)[0] == ("ann", "spare refined 1.", "fallback_model")
    assert steps(played) == []
    assert {d.what for d in played.degraded if d.seat == "ann"} == {"fell_back"}


async def test_degradations_are_recorded_with_their_reason(server: ModelServer) -> None:
    played = await debated(
        server, FAULTS["timeout"], lambda model, _, number: (model, number) == ("cyd", 1)
    )
    (entry,) = [entry for entry in played.degraded if entry.seat == "cyd"]
    assert isinstance(entry, Degradation)
    assert "no complete answer within 4 s" in entry.why
    assert played.state["trace"]["degraded"] == [entry.model_dump() for entry in played.degraded]


async def test_cost_of_a_failed_call_is_unknown_instead_of_zero(server: ModelServer) -> None:
    played = await debated(
        server, FAULTS["timeout"], lambda model, _, number: (model, number) == ("cyd", 1)
    )
    kept = next(turn for turn in played.turns if turn.status == "kept_previous")
    assert kept.usage.output_tokens is None
    assert kept.ended_at > kept.started_at
    usage = played.state["trace"]["usage"]
    assert usage["without_usage"] >= 1
    assert usage["cost_usd"] is None
