import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.actions.test_ask_bad_input import _assert_refused
from tests.cli.forum import ASK, BY_CONCESSION, MODELS, QUICK, SEATS, asked, heard, staged, what
from tests.cli.support import QUESTION, Command
from tests.support.model_server import ModelServer, Reply, Request, ollama_error, openai_error
from tests.support.scripted import Cast, concedes, forum_cast, round_of

SHORT = ["--set", "max_rounds=3"]
WHY = "no such luck"


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(staged(forum_cast()), models=MODELS) as running:
        yield running


def _failing(models: ModelServer, fails: Any, cast: Cast | None = None) -> None:
    """Make every call fail permanently for which `fails` returns true."""

    def change(request: Request, reply: Reply) -> Reply:
        error = ollama_error if request.shape == "ollama" else openai_error
        return error(401, WHY) if fails(request) else reply

    models.script = staged(cast or forum_cast(), change)


def _answers(record: Any) -> list[list[str]]:
    return [[answer["seat"] for answer in each["answers"]] for each in record["rounds"]]


class TestSeatsThatFail:
    """A seat that fails skips the round and is reported."""

    def test_seat_that_fails_in_a_later_round_skips_that_round(
        self, contend: Command, models: ModelServer
    ) -> None:
        _failing(models, lambda request: request.model == "ben" and round_of(request) == 2)
        ended = contend.here(*ASK, *SHORT, "--json", "-q")
        assert ended.code == 0
        record = ended.json
        assert _answers(record) == [["ann", "ben", "cyd"], ["ann", "cyd"], ["ann", "ben", "cyd"]]
        (sat_out,) = record["degraded"]
        assert set(sat_out) == {"seat", "round", "what", "why"}
        assert (sat_out["seat"], sat_out["round"], sat_out["what"]) == ("ben", 2, "sat_out")
        assert sat_out["why"] == "Ben (ollama:ben): 401: no such luck"

    def test_seat_that_fails_in_round_one_sees_the_debate_later(
        self, contend: Command, models: ModelServer
    ) -> None:
        first = {"ben": True}

        def fails(request: Request) -> bool:
            return request.model == "ben" and first.pop("ben", False)

        _failing(models, fails)
        record = contend.here(*ASK, *SHORT, "--json", "-q").json
        assert _answers(record)[:2] == [["ann", "cyd"], ["ann", "ben", "cyd"]]
        late = [call.request for call in models.calls if call.request.model == "ben"][1]
        assert heard(late) == [("Ann", 1), ("Cyd", 1), ("Ann", 2)]
        assert "Nobody has spoken yet" not in late.user
        assert "You have not spoken so far" in late.user

    def test_seat_that_fails_in_every_round_does_not_write_the_answer(
        self, contend: Command, models: ModelServer
    ) -> None:
        _failing(models, lambda request: request.model == "ann")
        ended = contend.here(*ASK, *BY_CONCESSION, *SHORT, "--json", "-q")
        assert ended.code == 0
        assert ended.json["final_answer"] == "The answer of ben."
        assert _answers(ended.json) == [["ben", "cyd"]] * 3

    @pytest.mark.parametrize("number", [1, 2])
    def test_debate_fails_and_can_be_resumed_if_all_seats_fail(
        self, contend: Command, models: ModelServer, number: int
    ) -> None:
        _failing(models, lambda request: what(request) == "speech" and round_of(request) == number)
        ended = contend.here(*ASK, *SHORT, "--json", "-q")
        assert ended.code == 4
        record = ended.json
        assert (record["status"], record["stop_reason"]) == ("failed", "failed")
        assert (record["final_answer"], record["stop"]) == (None, None)
        whom = [e["seat"] for e in record["degraded"] if e["what"] in ("sat_out", "failed")]
        assert whom == ["ann", "ben", "cyd"]
        assert "no such luck" in ended.err
        (listed,) = contend.here("list", "--json").json
        assert (listed["status"], listed["stop_reason"]) == ("failed", "failed")

        paid = len(models.calls)
        models.script = staged(forum_cast())
        resumed = contend.here("resume", record["id"], "--json", "-q")
        assert resumed.code == 0
        assert resumed.json["stop_reason"] == "max_rounds"
        assert len(_answers(resumed.json)) == 3
        # What was finished before is not asked for again.
        again = [call.request for call in models.calls[paid:]]
        assert min(round_of(request) for request in again if what(request) == "speech") == number


class TestJudgeFailures:
    def test_failed_continue_decision_ends_the_rounds_and_is_reported(
        self, contend: Command, models: ModelServer
    ) -> None:
        _failing(models, lambda request: what(request) == "continue")
        ended = contend.here(*ASK, "--set", "max_rounds=5", "--json", "-q")
        assert ended.code == 0
        record = ended.json
        assert (record["stop_reason"], record["total_rounds"]) == ("judge_stop", 2)
        assert record["stop"]["evidence"] == "the judge could not be asked"
        told = [(entry["seat"], entry["round"], entry["what"]) for entry in record["degraded"]]
        assert told == [("judge", 2, "judge_silent")]
        assert record["final_answer"] == "The answer of judge."
        (decision,) = record["judge_decisions"]
        # It is not put into the judge's mouth: the debate stopped, but the judge said nothing.
        assert (decision["decision"], decision["reasoning"]) == (
            None,
            "The judge could not be asked.",
        )

    def test_failed_judge_is_not_asked_again_after_a_pause(
        self, contend: Command, models: ModelServer
    ) -> None:
        """The failure reported at the pause is final."""
        _failing(models, lambda request: what(request) == "continue")
        paused = contend.here(*ASK, "--pause", "before_synthesis", "--json", "-q")
        assert paused.code == 3
        models.script = staged(forum_cast())
        resumed = contend.here("resume", paused.json["id"], "--json", "-q")
        assert resumed.json["stop_reason"] == "judge_stop"
        assert [part for _, part in asked(models)].count("continue") == 1
        assert [entry["what"] for entry in resumed.json["degraded"]] == ["judge_silent"]

    def test_failed_verdict_is_left_out(self, contend: Command, models: ModelServer) -> None:
        _failing(models, lambda request: what(request) == "verdict")
        record = contend.here(*ASK, *SHORT, "--json", "-q").json
        assert (record["verdict"], record["final_answer"]) == (None, "The answer of judge.")
        assert record["degraded"][-1]["what"] == "no_verdict"

    def test_failed_answer_fails_the_debate_which_can_be_resumed(
        self, contend: Command, models: ModelServer
    ) -> None:
        _failing(models, lambda request: what(request) == "final")
        ended = contend.here(*ASK, *SHORT, "--json", "-q")
        assert ended.code == 4
        assert (ended.json["status"], ended.json["stop_reason"]) == ("failed", "max_rounds")
        paid = len(models.calls)
        models.script = staged(forum_cast())
        resumed = contend.here("resume", ended.json["id"], "--json", "-q")
        assert resumed.json["final_answer"] == "The answer of judge."
        assert asked(models)[paid:] == [("judge", "final"), ("judge", "score")]
        assert resumed.json["verdict"] == "Each has a point."


def _events(out: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    return events


def _named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == name]


class TestEvents:
    def test_concessions_emit_events(self, contend: Command, models: ModelServer) -> None:
        convinced = {"conviction": concedes("Ann", quote="Ann argues in round 2.")}
        models.script = staged(forum_cast(ben=convinced, cyd=convinced))
        events = _events(contend.here(*ASK, *BY_CONCESSION, "--events").out)
        first, second = _named(events, "model_eliminated")
        assert (first["round"], first["content"]) == (2, "It does.")
        assert first["metadata"] == {
            "seat": "ben",
            "convinced_by": "ann",
            "argument": "The costs decide.",
            "quote": "Ann argues in round 2.",
            "quote_found": True,
        }
        assert second["metadata"]["seat"] == "cyd"
        (status,) = _named(events, "convergence_status")
        assert status["metadata"] == {"eliminated": ["ben", "cyd"], "remaining": ["ann"]}
        ruled = _named(events, "judge_decision")[-1]["metadata"]
        assert (ruled["decision"], ruled["reason"], ruled["by_model"]) == (
            *["stop", "one_left", False],
        )
        (early,) = _named(events, "early_stop")
        assert early["content"] == "only Ann has not conceded"
        chunks = _named(events, "seat_chunk")
        assert {chunk["metadata"]["seat"] for chunk in chunks} == {"ann", "ben", "cyd"}
        written = _named(events, "synthesis_chunk")
        assert "".join(chunk["content"] for chunk in written) == "The answer of ann."
        (begun,) = _named(events, "synthesis_start")
        assert begun["metadata"]["seat"] == "ann"
        assert [event["metadata"]["active"] for event in _named(events, "round_start")] == [
            ["ann", "ben", "cyd"]
        ] * 2
        assert events[-1]["event"] == "complete"
        in_order = [event["event"] for event in events]
        assert in_order.index("model_eliminated") < in_order.index("convergence_status")
        assert in_order.index("convergence_status") < in_order.index("early_stop")

    def test_judge_decisions_emit_events(self, contend: Command, models: ModelServer) -> None:
        words = lambda sent: f"{'STOP' if 'Round 3' in sent.user else 'CONTINUE'}\nWell."  # noqa: E731
        models.script = staged(forum_cast(judge={"continue": words}))
        events = _events(contend.here(*ASK, "--set", "max_rounds=5", "--events").out)
        ruled = [
            (event["round"], event["metadata"]["decision"], event["metadata"]["by_model"])
            for event in _named(events, "judge_decision")
        ]
        assert ruled == [(1, "continue", False), (2, "continue", True), (3, "stop", True)]
        assert _named(events, "judge_decision")[1]["content"] == "Well."
        assert _named(events, "judge_chunk")
        assert not _named(events, "convergence_status")

    def test_skipped_seat_emits_degraded_events(
        self, contend: Command, models: ModelServer
    ) -> None:
        _failing(models, lambda request: request.model == "ben" and round_of(request) == 2)
        events = _events(contend.here(*ASK, *SHORT, "--events").out)
        told = [(e["metadata"]["seat"], e["metadata"]["what"]) for e in _named(events, "degraded")]
        assert told == [("ben", "failed"), ("ben", "sat_out")]


class TestPauses:
    def test_pause_each_round_accepts_a_comment_and_finish(
        self, contend: Command, models: ModelServer
    ) -> None:
        each_round = ["--pause", "each_round", "--set", "max_rounds=5", "--json", "-q"]
        paused = contend.here(*ASK, *each_round)
        assert (paused.code, paused.json["total_rounds"]) == (3, 1)
        debate = paused.json["id"]

        spoke = contend.here("resume", debate, "--say", "Mind the {night} shifts.", "--json", "-q")
        assert (spoke.code, spoke.json["total_rounds"]) == (3, 2)
        assert asked(models)[3:] == [
            *[("ann", "speech"), ("ben", "speech"), ("cyd", "speech"), ("judge", "continue")]
        ]
        assert all("Mind the {night} shifts." in c.request.user for c in models.calls[3:])

        ended = contend.here("resume", debate, "--finish", "--json", "-q")
        assert (ended.code, ended.json["stop_reason"]) == (0, "user")
        # The judge had spoken before the pause; it is not asked again behind it.
        assert [part for _, part in asked(models)].count("continue") == 1
        assert asked(models)[7:] == [("judge", "verdict"), ("judge", "final"), ("judge", "score")]
        assert ended.json["rounds"][0]["user"] == ["Mind the {night} shifts."]
        assert ended.json["judge_decisions"][0]["decision"] == "continue"

    def test_concessions_survive_pauses_and_resumes(
        self, contend: Command, models: ModelServer
    ) -> None:
        convinced = {"conviction": concedes("Ann", quote="Ann argues in round 2.")}
        models.script = staged(forum_cast(ben=convinced))
        paused = contend.here(*ASK, *BY_CONCESSION, *SHORT, "--pause", "each_round", "--json", "-q")
        debate = paused.json["id"]
        second = contend.here("resume", debate, "--json", "-q").json
        assert [each["seat"] for each in second["eliminations"]] == ["ben"]
        third = contend.here("resume", debate, "--json", "-q")
        assert third.code == 3
        ended = contend.here("resume", debate, "--json", "-q")
        assert (ended.code, ended.json["stop_reason"]) == (0, "max_rounds")
        assert [each["seat"] for each in ended.json["eliminations"]] == ["ben"]
        assert [part for _, part in asked(models)].count("conviction") == 3


def test_stored_forum_can_be_listed_shown_and_exported(
    contend: Command, models: ModelServer
) -> None:
    convinced = {"conviction": concedes("Ann", quote="Ann argues in round 2.")}
    models.script = staged(forum_cast(ben=convinced, cyd=convinced))
    debate = contend.here(*ASK, *BY_CONCESSION, "--json", "-q").json["id"]
    (listed,) = contend.here("list", "--json").json
    assert (listed["protocol"], listed["status"], listed["stop_reason"]) == (
        *["forum", "done", "one_left"],
    )
    shown = contend.here("show", debate)
    assert shown.code == 0
    for text in ("Ann argues in round 1.", "Cyd argues in round 2.", "The answer of ann."):
        assert text in shown.out
    record = contend.here("show", debate, "--json").json
    assert (record["winner"], record["moved"]) == ("ann", {"ann": ["ben", "cyd"]})
    document = contend.here("export", debate, "--format", "md").out
    for text in (
        "## Answer\n\nThe answer of ann.",
        "In round 2: only Ann has not conceded.",
        "### Ben (ollama:ben)\n\nBen argues in round 2.",
    ):
        assert text in document, text
    exported = json.loads(contend.here("export", debate, "--format", "json").out)
    assert exported == record


def test_default_judge_of_a_debate_by_concession_uses_another_model(contend: Command) -> None:
    ask = ["ask", QUESTION, "-p", "forum", *SEATS, *QUICK, *BY_CONCESSION, *SHORT]
    ended = contend.here(*ask, "--json", "-q")
    assert ended.code == 0
    assert ended.json["models"]["judge"] == "ollama:ann"  # Ann has it from another provider
    assert ended.json["auto_score"]["judge_shares_model_with"] == []


JUDGE = ["-s", "judge_model=openai:judge"]
PROMPT = "custom_format_prompt"
REFUSED: dict[str, tuple[list[str], str]] = {
    "one seat": ([*SEATS[:2], *JUDGE], "needs 2 to 8 seats, not 1"),
    "nine seats": (
        [*JUDGE, *(word for n in range(9) for word in ("--seat", f"S{n}=openai:ann"))],
        "needs 2 to 8 seats, not 9",
    ),
    "duplicate names": (
        ["--seat", "Ann=openai:ann", "--seat", "ann=ollama:ben", *JUDGE],
        "two seats are called 'Ann'",
    ),
    "unknown format": (
        [*SEATS, *JUDGE, "-s", "debate_format=brawl"],
        "debate_format must be one of free_discussion, structured_opposition, ",
    ),
    "unknown mode": (
        [*SEATS, *JUDGE, "-s", "judge_mode=coin_toss"],
        "judge_mode must be one of external_judge, self_convergence or display_only, not coin_toss",
    ),
    "no judge": ([*SEATS], "judge_mode external_judge needs a judge; name its model with"),
    "an empty judge": ([*SEATS, "-s", "judge_model="], "external_judge needs a judge"),
    "custom without a prompt": (
        [*SEATS, *JUDGE, "-s", "debate_format=custom"],
        "debate_format custom needs a custom_format_prompt",
    ),
    "custom with a blank prompt": (
        [*SEATS, *JUDGE, "-s", "debate_format=custom", "-s", f"{PROMPT}=  "],
        "debate_format custom needs a custom_format_prompt",
    ),
    "an unknown placeholder": (
        [*SEATS, *JUDGE, "-s", "debate_format=custom", "-s", f"{PROMPT}=Say {{histroy}}."],
        "unknown placeholder {histroy}; known are {history}, {own_position}",
    ),
    "a prompt nobody uses": (
        [*SEATS, *JUDGE, "-s", f"{PROMPT}=Say it."],
        "custom_format_prompt is only used with debate_format custom",
    ),
    "a seat without a model": (
        ["--seat", "Ann=", *SEATS[2:], *JUDGE],
        "'--seat Ann=' is not in the form NAME=MODEL",
    ),
    "an Ollama model that is not there": (
        [*SEATS, "--seat", "Dan=ollama:dan", *JUDGE],
        "ollama pull dan",
    ),
    "a judge nobody has": ([*SEATS, "-s", "judge_model=ollama:juge"], "ollama pull juge"),
    "no rounds": ([*SEATS, *JUDGE, "-s", "max_rounds=0"], "between 1 and 50, not 0"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_refused_before_any_call(
    contend: Command, models: ModelServer, tmp_path: Path, arguments: list[str], said: str
) -> None:
    _assert_refused(contend, models, tmp_path, ["ask", QUESTION, "-p", "forum", *arguments], said)
    assert models.calls == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seats: [{name: A, model: openai:ann}, {name: B}]", "seat 2: model is missing"),
        ("seats: [{name: A, model: openai:ann}, {name: B, model: ''}]", "seat 2: model is empty"),
        ("judgeMode: external", "judge_mode must be one of external_judge"),
    ],
)
def test_bad_config_file_is_refused_before_any_call(
    contend: Command, models: ModelServer, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "forum.yaml"
    file.write_text(f"{text}\njudgeModel: openai:judge\n")
    ask = ["ask", QUESTION, "-p", "forum", "--config", str(file)]
    _assert_refused(contend, models, tmp_path, ask, said)
    assert models.calls == []
