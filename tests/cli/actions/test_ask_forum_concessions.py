"""Concessions in a forum over HTTP: eliminations, second questions and the winner."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cli.forum import ASK, BY_CONCESSION, MODELS, asked, staged, what
from tests.cli.support import Command
from tests.support.model_server import ModelServer, Reply, Request, openai_error
from tests.support.scripted import Line, concedes, forum_cast

TWO_CHECKS = [*BY_CONCESSION, "--set", "max_rounds=4"]
NEVER_SAID = "words that nobody ever said in here"


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(staged(forum_cast()), models=MODELS) as running:
        yield running


def _to(whom: str, quoting: str | None = None) -> Line:
    """Return a concession that quotes the seat it concedes to, or another seat."""
    return concedes(whom, quote=f"{quoting or whom} argues in round 2.")


def _run(
    contend: Command, models: ModelServer, *arguments: str, **lines: Mapping[str, Line]
) -> Any:
    models.script = staged(forum_cast(**lines))
    ended = contend.here(*ASK, *(arguments or TWO_CHECKS), "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    return ended.json


def _outcome(record: Any) -> tuple[list[tuple[str, str, int]], str | None, str]:
    gone = [(each["seat"], each["convinced_by"], each["round"]) for each in record["eliminations"]]
    return gone, record["winner"], record["stop_reason"]


def _troubles(record: Any) -> list[tuple[str, str]]:
    return [(entry["seat"], entry["what"]) for entry in record["degraded"]]


def test_concession_is_stored_and_its_seat_stops_speaking(
    contend: Command, models: ModelServer
) -> None:
    record = _run(contend, models, ben={"conviction": _to("Cyd")})
    assert record["eliminations"] == [
        {
            "seat": "ben",
            "round": 2,
            "convinced_by": "cyd",
            "argument": "The costs decide.",
            "quote": "Cyd argues in round 2.",
            "quote_found": True,
            "reasoning": "It does.",
        }
    ]
    assert record["moved"] == {"cyd": ["ben"]}
    assert record["active"] == ["ann", "cyd"]
    assert record["degraded"] == []
    later = asked(models)[9:]
    assert later[:2] == [("ann", "speech"), ("cyd", "speech")]
    assert "ben" not in {model for model, _ in later}
    assert "Ben conceded to Cyd in round 2." in models.calls[9].request.user
    # Two are left, so the one most have conceded to writes.
    assert (record["winner"], record["stop_reason"]) == ("cyd", "max_rounds")
    assert "Cyd, with the most concessions from others" in contend.here("show", record["id"]).out
    assert ("cyd", "final") in later
    assert record["final_answer"] == "The answer of cyd."


def test_last_remaining_seat_ends_the_debate_and_writes_the_answer(
    contend: Command, models: ModelServer
) -> None:
    record = _run(contend, models, ann={"conviction": _to("Ben")}, cyd={"conviction": _to("Ben")})
    gone = [("ann", "ben", 2), ("cyd", "ben", 2)]
    assert _outcome(record) == (gone, "ben", "one_left")
    assert record["moved"] == {"ben": ["ann", "cyd"]}
    assert asked(models)[9:] == [("ben", "final"), ("judge", "score")]
    assert record["final_answer"] == "The answer of ben."
    assert record["early_stopped"]


def _once(line: Line) -> Line:
    """Return a concession in round 2 and no concession in later rounds."""
    return lambda sent: _said(line, sent) if "Round 2 is over" in sent.user else "NOT CONVINCED"


def _said(line: Line, sent: Any) -> str:
    return line if isinstance(line, str) else line(sent)


Lines = dict[str, Line]
OUTCOMES: dict[str, tuple[Lines, list[tuple[str, str, int]], str | None, str]] = {
    "A concedes to B while B concedes to A": (
        {"ann": _once(_to("Ben")), "ben": _once(_to("Ann"))},
        [("ben", "ann", 2)],
        "ann",
        "max_rounds",
    ),
    "in a circle of two, who has a third's word stays": (
        {"ann": _to("Ben"), "ben": _to("Ann"), "cyd": _to("Ben")},
        [("ann", "ben", 2), ("cyd", "ben", 2)],
        "ben",
        "converged",
    ),
    "all three concede in a circle": (
        {"ann": _to("Ben"), "ben": _to("Cyd"), "cyd": _to("Ann")},
        [("ben", "cyd", 2), ("cyd", "ann", 2)],
        "ann",
        "converged",
    ),
    "A concedes to B, B to C, who stands": (
        {"ann": _to("Ben"), "ben": _to("Cyd")},
        [("ann", "ben", 2), ("ben", "cyd", 2)],
        "cyd",
        "one_left",
    ),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_simultaneous_concessions_are_resolved(
    contend: Command, models: ModelServer, case: str
) -> None:
    convictions, gone, winner, reason = OUTCOMES[case]
    lines = {seat: {"conviction": line} for seat, line in convictions.items()}
    record = _run(contend, models, **lines)
    assert _outcome(record) == (gone, winner, reason)
    # Who conceded and stays, so that somebody does, is on record.
    kept = set(convictions) - {seat for seat, *_ in gone}
    told = [(entry["seat"], entry["what"]) for entry in record["degraded"]]
    assert told == [(seat, "void_concession") for seat in kept]


@pytest.mark.parametrize(
    "words",
    [
        "NOT CONVINCED: Ben is wrong",
        "NOT CONVINCED. That said, I would be CONVINCED: Ben had he shown his sums.",
        "Convinced as I am of the costs, I hold my position.",
        "> CONVINCED: Ben\n\nSo one might say, but I do not.",
    ],
)
def test_reply_without_a_concession_keeps_the_seat(
    contend: Command, models: ModelServer, words: str
) -> None:
    record = _run(contend, models, ann={"conviction": words})
    assert _outcome(record) == ([], "ann", "max_rounds")
    assert "conviction_again" not in {part for _, part in asked(models)}


def test_plain_concession_that_names_a_seat_or_model_eliminates_the_seat(
    contend: Command, models: ModelServer
) -> None:
    """Without a block the concession names no argument, so the seat is asked again."""
    words = {"conviction": "CONVINCED: ben.", "conviction_again": "CONVINCED: ollama:ben."}
    record = _run(contend, models, ann=words)
    gone = record["eliminations"][0]
    assert (gone["seat"], gone["convinced_by"], gone["argument"]) == ("ann", "ben", "")
    assert asked(models).count(("ann", "conviction_again")) == 1


VOID = {
    "itself": ("Ann", "Ann"),
    "nobody at the table": ("Zoe", "Zoe"),
    "the judge": ("Judge", "Judge"),
    "nobody by name": ("", "nobody by name"),
}


@pytest.mark.parametrize(("whom", "told"), VOID.values(), ids=VOID)
def test_concession_that_names_no_other_active_seat_is_void(
    contend: Command, models: ModelServer, whom: str, told: str
) -> None:
    record = _run(contend, models, ann={"conviction": _to(whom)})
    assert _outcome(record) == ([], "ann", "max_rounds")
    assert _troubles(record) == [("ann", "void_concession")] * 2
    assert record["degraded"][0]["why"].startswith(f"it concedes to {told}: no other active seat")


def test_concession_to_an_eliminated_seat_is_void(contend: Command, models: ModelServer) -> None:
    late: Line = lambda sent: (  # noqa: E731
        _said(_to("Ben"), sent) if "Round 3 is over" in sent.user else "NOT CONVINCED"
    )
    record = _run(contend, models, ann={"conviction": late}, ben={"conviction": _to("Cyd")})
    assert _outcome(record) == ([("ben", "cyd", 2)], "cyd", "max_rounds")
    assert _troubles(record) == [("ann", "void_concession")]


class TestUnsupportedConcessions:
    """Ask once more about a concession without a real argument or quote."""

    UNFOUNDED = (
        ("no argument", concedes("Ben", argument="", quote="Ben argues in round 2."), "named no"),
        ("no quote", concedes("Ben", quote=""), "quoted no words"),
        ("a quote of nobody", concedes("Ben", quote=NEVER_SAID), "do not appear"),
    )

    @pytest.fixture(params=UNFOUNDED, ids=[case[0] for case in UNFOUNDED])
    def doubted(self, request: pytest.FixtureRequest) -> tuple[Line, str]:
        _, line, doubt = request.param
        return line, doubt

    def test_concession_stands_if_it_is_repeated(
        self, contend: Command, models: ModelServer, doubted: tuple[Line, str]
    ) -> None:
        line, doubt = doubted
        again = concedes("Ben", quote="Ben argues in round 2.", reasoning="Really.")
        record = _run(contend, models, ann={"conviction": line, "conviction_again": again})
        assert _outcome(record)[0] == [("ann", "ben", 2)]
        assert record["eliminations"][0]["reasoning"] == "Really."
        (asked_again,) = [c.request for c in models.calls if what(c.request) == "conviction_again"]
        assert "You have just said that you concede to Ben, but" in asked_again.user
        assert doubt in asked_again.user
        assert record["degraded"] == []

    def test_concession_to_another_seat_the_second_time_is_withdrawn(
        self, contend: Command, models: ModelServer, doubted: tuple[Line, str]
    ) -> None:
        line, _ = doubted
        record = _run(contend, models, ann={"conviction": line, "conviction_again": _to("Cyd")})
        assert _outcome(record) == ([], "ann", "max_rounds")
        assert _troubles(record) == [("ann", "concession_withdrawn")] * 2
        assert len([1 for _, part in asked(models) if part == "conviction_again"]) == 2

    def test_concession_stands_without_a_second_question_if_verification_is_off(
        self, contend: Command, models: ModelServer, doubted: tuple[Line, str]
    ) -> None:
        line, _ = doubted
        unverified = [*TWO_CHECKS, "--set", "verify_concessions=false"]
        record = _run(contend, models, *unverified, ann={"conviction": line})
        assert _outcome(record)[0] == [("ann", "ben", 2)]
        assert "conviction_again" not in {part for _, part in asked(models)}

    def test_second_question_hides_earlier_concessions(
        self, contend: Command, models: ModelServer
    ) -> None:
        late: Line = lambda sent: (  # noqa: E731
            _said(concedes("Cyd"), sent) if "Round 3 is over" in sent.user else "NOT CONVINCED"
        )
        _run(contend, models, ann={"conviction": late}, ben={"conviction": _to("Cyd")})
        request = next(c.request for c in models.calls if what(c.request) == "conviction_again")
        assert "conceded to" not in request.user.replace("You have just said that you", "")
        first = next(c.request for c in models.calls[12:] if what(c.request) == "conviction")
        assert "Ben conceded to Cyd in round 2." in first.user


def _fails_when(models: ModelServer, model: str, part: str, **lines: Mapping[str, Line]) -> None:
    def change(request: Request, reply: Reply) -> Reply:
        failing = (request.model, what(request)) == (model, part)
        return openai_error(401, "no such luck") if failing else reply

    models.script = staged(forum_cast(**lines), change)


def test_seat_whose_conviction_check_fails_stays(contend: Command, models: ModelServer) -> None:
    _fails_when(models, "ann", "conviction", ben={"conviction": _to("Ann")})
    record = contend.here(*ASK, *TWO_CHECKS, "--json", "-q").json
    assert _outcome(record)[0] == [("ben", "ann", 2)]
    assert _troubles(record) == [("ann", "not_asked")] * 2
    assert "no such luck" in record["degraded"][1]["why"]


def test_seat_whose_second_question_fails_stays(contend: Command, models: ModelServer) -> None:
    _fails_when(models, "ann", "conviction_again", ann={"conviction": concedes("Ben")})
    record = contend.here(*ASK, *TWO_CHECKS, "--json", "-q").json
    assert _outcome(record)[0] == []
    assert [what for _, what in _troubles(record)] == [*["not_asked", "concession_withdrawn"] * 2]


def test_unreadable_conviction_gets_one_more_call_and_keeps_the_seat(
    contend: Command, models: ModelServer
) -> None:
    record = _run(contend, models, ann={"conviction": "Hard to say, really."})
    assert asked(models).count(("ann", "report")) == 2
    assert _troubles(record) == [("ann", "unreadable")] * 2
    assert _outcome(record) == ([], "ann", "max_rounds")
