import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.actions.test_ask_bad_input import _assert_refused
from tests.cli.support import ANSWER, QUESTION, Command, debaters
from tests.support.model_server import ModelServer, Reply, Request, openai_error

SEATS = ["--seat", "Ann=openai:m", "--seat", "Ben=openai:other"]
QUICK = ["--set", "retry_wait=0.01", "--set", "max_retries=0", "--set", "judge_model=openai:m"]
ASK = ["ask", QUESTION, "-p", "refine", *SEATS, *QUICK]


def test_the_whole_debate_is_shown(contend: Command, models: ModelServer) -> None:
    ended = contend(*ASK)
    assert (ended.code, ended.err) == (0, "")
    shown = [
        QUESTION,
        "refine · 2 rounds · debate ",
        "Ann    openai:m",
        "Ben    openai:other",
        "Judge  openai:m",
        "─ Initial answers ─",
        "─ Round 1 of 2 ─",
        "Judge · openai:m\n  This is feedback: be concrete.",
        "─ Round 2 of 2 ─",
        "The rounds ended: all 2 refinement rounds were used.",
        "─ Answer ─",
        "Judge · openai:m\n  # Answer\n\n  Keep the monolith 🧱",
        "─ Done ─",
        "after 2 rounds: all rounds were used",
        "the judge uses the same model as Ann, so treat the score with caution; "
        "the judge wrote the answer itself",
    ]
    out = re.sub(r"\n {9}", " ", ended.out)
    places = [out.find(text) for text in shown]
    assert -1 not in places, shown[places.index(-1)]
    assert places == sorted(places)
    for number in range(3):
        for name, model in (("Ann", "m"), ("Ben", "other")):
            assert f"{name} · openai:{model}\n  This is answer {number} of {model}." in out
    assert "Objections" not in out
    assert "nonce" not in out
    assert len(models.calls) == 10


def test_json_record_has_every_round_and_seat(contend: Command) -> None:
    record = contend.here(*ASK, "--json", "-q").json
    assert (record["protocol"], record["status"], record["total_rounds"]) == ("refine", "done", 2)
    assert record["final_answer"] == ANSWER
    assert [round_["feedback"] for round_ in record["rounds"]] == [
        None,
        "This is feedback: be concrete.",
        "This is feedback: be concrete.",
    ]
    assert record["rounds"][2]["answers"] == [
        {"seat": "ann", "text": "This is answer 2 of m.", "status": "ok"},
        {"seat": "ben", "text": "This is answer 2 of other.", "status": "ok"},
    ]
    assert [seat["id"] for seat in record["seats"]] == ["ann", "ben", "judge"]
    assert record["degraded"] == []
    assert record["settings"]["seats"][0]["model"] == "openai:m"


def test_seats_from_a_file_carry_their_own_settings(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "table.yaml"
    file.write_text(
        "seats:\n"
        "- {name: Ann, model: openai:m, temperature: 0.1, systemPrompt: Argue as an economist.}\n"
        "- {name: Ben, model: openai:gone, fallbacks: [openai:other]}\n"
        "judgeModel: openai:m\nenableDebate: false\n"
    )
    models.models = ["m", "other", "gone"]
    calm = debaters()
    models.script = lambda request: (
        openai_error(401, "no") if request.model == "gone" else calm(request)
    )
    record = contend.here("ask", QUESTION, "-p", "refine", "--config", str(file), "--json", "-q")
    ann, ben = record.json["rounds"][0]["answers"]
    assert (ann["status"], ben["status"]) == ("ok", "fallback_model")
    sent = next(c.request for c in models.calls if c.request.model == "m" and _debates(c.request))
    assert sent.body["temperature"] == 0.1
    assert "\n\nArgue as an economist.\n\n" in sent.user


def _debates(request: Request) -> bool:
    return request.instructions.startswith("You are one of several debaters")


def test_given_seats_replace_the_default_ones(contend: Command) -> None:
    def seats(*arguments: str) -> Any:
        printed = contend.here("config", "-p", "refine", *arguments, "--json").json
        chosen = printed["settings"]["seats"]
        return [seat["name"] for seat in chosen["value"]], chosen["source"]

    default = ["Debater 1", "Debater 2", "Debater 3"]
    assert seats() == (default, "default")
    assert seats(*SEATS) == (["Ann", "Ben"], "--seat")
    assert seats(*SEATS, "--model", "openai:m") == (["Ann", "Ben"], "--seat")
    assert seats("--model", "openai:m") == (default, "--model")
    assert "Models: the defaults above" in contend.here("config", "-p", "refine").out
    named = contend.here("config", "-p", "refine", *SEATS, "--set", "judge_model=openai:m").out
    assert "Models: as set above." in named


def test_model_option_applies_to_all_seats(contend: Command, models: ModelServer) -> None:
    ended = contend.here(
        "ask", QUESTION, "-p", "refine", "-m", "openai:m", "--set", "enable_debate=false", "--json"
    )
    assert ended.code == 0
    assert {call.request.model for call in models.calls} == {"m"}
    assert len(ended.json["rounds"][0]["answers"]) == 3


REFUSED = {
    "one seat": (["--seat", "A=openai:m"], "needs 2 to 8 seats, not 1; add another --seat"),
    "nine seats": (
        [word for n in range(9) for word in ("--seat", f"S{n}=openai:m")],
        "needs 2 to 8 seats, not 9",
    ),
    "same name": (
        ["--seat", "Ann=openai:m", "--seat", "ANN=openai:m"],
        "two seats are called 'Ann'; give each a different name",
    ),
    "no name": (
        ["--seat", "=openai:m", *SEATS],
        "'--seat =openai:m' is not in the form NAME=MODEL",
    ),
    "blank name": (["--seat", " =openai:m", *SEATS], "is not in the form NAME=MODEL"),
    "no model": (["--seat", "Cyd=", *SEATS], "'--seat Cyd=' is not in the form NAME=MODEL"),
    "no sign": (["--seat", "Cyd", *SEATS], "'--seat Cyd' is not in the form NAME=MODEL, such as"),
    "long name": (["--seat", f"{'x' * 41}=openai:m", *SEATS], "at most 40 characters"),
    "odd name": (["--seat", "\x1b[31mCyd=openai:m", *SEATS], "characters that cannot be displayed"),
    "unknown model": (["--seat", "Cyd=ollama:mm", *SEATS], "ollama pull mm"),
    "unknown provider": (["--seat", "Cyd=opnai:m", *SEATS], "Did you mean 'openai:m'?"),
    "rounds": ([*SEATS, "-s", "max_debate_rounds=21"], "between 0 and 20, not 21"),
    "timeout": ([*SEATS, "-s", "debate_timeout_ms=0"], "must be more than 0, not 0"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_seats_are_refused(
    contend: Command, models: ModelServer, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ask = ["ask", QUESTION, "-p", "refine", "-s", "judge_model=openai:m", *arguments]
    _assert_refused(contend, models, tmp_path, ask, said)


def test_seat_option_is_refused_for_a_protocol_without_seats(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    said = "--seat works only with forum and refine."
    _assert_refused(contend, models, tmp_path, ["ask", QUESTION, *SEATS], said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seats: [{name: A}, {name: B, model: openai:m}]", "seat 1: model is missing"),
        ("seats: [{model: openai:m}, {name: B, model: openai:m}]", "seat 1: name is missing"),
        ("seats: [{name: '', model: m}, {name: B, model: m}]", "seat 1: name is empty"),
        ("seats: [A, B]", "seat 1: must be written as {name: NAME, model: PROVIDER:NAME}"),
        ("seats: {A: m, B: m}", "seats: must be a list of {name: NAME"),
        (
            "seats: [{name: A, model: m, hue: red}, {name: B, model: m}]",
            "seat 1: hue is not a setting",
        ),
        (
            "seats: [{name: A, model: m, fallbacks: x}, {name: B, model: m}]",
            "fallbacks must be a l",
        ),
        ("seats: [{name: A, model: m, temperature: 3}, {name: B, model: m}]", "between 0 and 2"),
    ],
)
def test_bad_seats_in_a_file_are_refused(
    contend: Command, models: ModelServer, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "table.yaml"
    file.write_text(text)
    ask = ["ask", QUESTION, "-p", "refine", "--config", str(file)]
    _assert_refused(contend, models, tmp_path, ask, said)


class TestFailures:
    """A debate in which Ben cannot refine and the judge can neither advise nor merge."""

    @pytest.fixture
    def debate(self, contend: Command, models: ModelServer) -> str:
        calm = debaters()

        def script(request: Request) -> Reply:
            failing = request.model == "other" and "Round 1 of" in request.user
            advice = "Give feedback that makes" in request.user
            if failing or advice or "Merge these answers" in request.user:
                return openai_error(401, "no such luck")
            reply: Reply = calm(request)
            return reply

        models.script = script
        ended = contend.here(*ASK, "--set", "max_debate_rounds=1", "--json")
        assert ended.code == 0
        said = " ".join(ended.err.split())
        assert "! Judge: general advice instead of feedback (Judge (openai:m): 401: no" in said
        assert "! Ben: previous answer kept (Ben (openai:other): 401: no such luck)" in said
        assert "an earlier answer, kept because the call failed" in said
        return str(ended.json["id"])

    def test_show_labels_the_fallbacks(self, contend: Command, debate: str) -> None:
        shown = contend.here("show", debate).out
        answer = shown.partition("─ Answer ─")[2]
        assert "Ann · openai:m\n  This is answer 1 of m.\n  the latest answer, because" in answer
        assert "Judge ·" not in answer
        assert "general advice, because the call failed" in shown
        assert "the judge wrote the answer itself" not in shown

    def test_export_labels_the_fallbacks(self, contend: Command, debate: str) -> None:
        document = contend.here("export", debate, "--format", "md").out
        for text in (
            "## Answer\n\n*Ann: the latest answer, because the final one could not be written.*",
            "## Initial answers\n\n### Ann (openai:m)\n\nThis is answer 0 of m.",
            "### Judge\n\n*General advice, because the call failed.*",
            "### Ben (openai:other)\n\n*An earlier answer, kept because the call failed.*",
            "> ⚠️ Ben, round 1: previous answer kept (Ben (openai:other): 401",
        ):
            assert text in document, text
        assert "wrote the answer itself" not in document


def test_export_reports_that_the_judge_wrote_the_answer(contend: Command) -> None:
    debate = contend.here(*ASK, "--set", "enable_debate=false", "--json", "-q").json["id"]
    document = contend.here("export", debate, "--format", "md").out
    assert "The judge wrote the answer itself." in document
    assert "## Why it stopped\n\nAfter the initial answers: the debate is switched off." in document


def test_paused_debate_resumes_with_a_comment_and_finish(
    contend: Command, models: ModelServer
) -> None:
    paused = contend.here(*ASK, "--pause", "each_round", "--json", "-q")
    assert paused.code == 3
    debate = paused.json["id"]
    ended = contend.here("resume", debate, "--say", "Mind the cost.", "--finish", "--json", "-q")
    assert ended.code == 0
    assert ended.json["stop_reason"] == "user"
    assert "Mind the cost." in models.calls[-2].request.user
    assert len(models.calls) == 4


def test_events_of_parallel_seats_carry_their_seat(contend: Command) -> None:
    lines = contend.here(*ASK, "--set", "enable_debate=false", "--events").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    chunks = [event for event in events if event["event"] == "seat_chunk"]
    assert {event["metadata"]["seat"] for event in chunks} == {"ann", "ben"}
