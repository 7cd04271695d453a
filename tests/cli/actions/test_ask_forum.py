"""The order of a forum's calls over HTTP, and what each call is shown."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from contend.prompts import load
from tests.cli.forum import ASK, BY_CONCESSION, MODELS, QUICK, asked, heard, staged, what
from tests.cli.support import QUESTION, Command
from tests.support.model_server import Call, ModelServer, Reply, Request
from tests.support.scripted import concedes, forum_cast

SPEECHES = [("ann", "speech"), ("ben", "speech"), ("cyd", "speech")]
CONVICTIONS = [("ann", "conviction"), ("ben", "conviction"), ("cyd", "conviction")]
ENDING = [("judge", "verdict"), ("judge", "final"), ("judge", "score")]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(staged(forum_cast()), models=MODELS) as running:
        yield running


def _ask(contend: Command, *settings: str) -> Any:
    """Run a debate that succeeds and return its record."""
    chosen = [word for setting in settings for word in ("--set", setting)]
    ended = contend.here(*ASK, *chosen, "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    return ended.json


def _together(models: ModelServer, first: int, count: int, asking: str) -> None:
    """Answer these calls only after all of them have arrived."""
    cast = forum_cast()

    def hold(request: Request, reply: Reply) -> Reply:
        waits = what(request) == asking and first <= request.index < first + count
        arrived = lambda: len(models.calls) >= first + count  # noqa: E731
        return replace(reply, until=arrived) if waits else reply

    models.script = staged(cast, hold)


def _is_in_line(calls: list[Call]) -> bool:
    """Return whether each call began after the previous one was answered."""
    return all(one.ended and one.ended <= other.started for one, other in pairwise(calls))


def test_round_one_runs_in_parallel_and_shows_no_other_speeches(
    contend: Command, models: ModelServer
) -> None:
    _together(models, 0, 3, "speech")
    record = _ask(contend, "max_rounds=1")
    calls = models.calls
    assert Counter(asked(models)[:3]) == Counter(SPEECHES)
    assert {call.request.model: call.request.shape for call in calls[:3]} == {
        "ann": "openai",
        "ben": "ollama",
        "cyd": "openai",
    }
    for call in calls[:3]:
        assert heard(call.request) == []
        assert QUESTION in call.request.user
        assert not any(name in call.request.text for name in ("Ann", "Ben", "Cyd"))
    assert asked(models)[3:] == ENDING
    assert (record["stop_reason"], record["total_rounds"]) == ("max_rounds", 1)
    assert record["judge_decisions"] == []


def test_later_rounds_are_sequential_and_each_seat_sees_the_round_so_far(
    contend: Command, models: ModelServer
) -> None:
    record = _ask(contend, "max_rounds=3", "judge_mode=display_only")
    assert asked(models)[3:] == SPEECHES * 2
    assert _is_in_line(models.calls[2:])
    said = [(name, number) for number in (1, 2, 3) for name in ("Ann", "Ben", "Cyd")]
    for place, call in enumerate(models.calls[3:], 3):
        assert heard(call.request) == said[:place]
    spoken = [turn for turn in record["turns"] if turn["phase"] == "propose"]
    assert [(turn["seat"].capitalize(), turn["round"]) for turn in spoken] == said


def test_conviction_checks_run_in_parallel_and_stay_private(
    contend: Command, models: ModelServer
) -> None:
    _together(models, 6, 3, "conviction")
    _ask(contend, "max_rounds=3", "judge_mode=self_convergence")
    assert Counter(asked(models)[6:9]) == Counter(CONVICTIONS)
    for call in models.calls[6:9]:
        assert len(heard(call.request)) == 6
    assert asked(models)[9:] == [*SPEECHES, ("ann", "final"), ("judge", "score")]
    assert not any("Mine still holds." in call.request.text for call in models.calls)


def test_judge_is_asked_after_every_round_except_the_first_and_last(
    contend: Command, models: ModelServer
) -> None:
    record = _ask(contend, "max_rounds=4")
    rounds = [*SPEECHES, *SPEECHES, ("judge", "continue"), *SPEECHES, ("judge", "continue")]
    assert Counter(asked(models)[:3]) == Counter(SPEECHES)
    assert asked(models)[3:] == [*rounds[3:], *SPEECHES, *ENDING]
    assert record["stop_reason"] == "max_rounds"
    assert [each["round"] for each in record["judge_decisions"]] == [2, 3]
    assert {each["decision"] for each in record["judge_decisions"]} == {"continue"}
    judged = [call.request for call in models.calls if call.request.model == "judge"]
    assert [len(heard(request)) for request in judged] == [6, 9, 12, 12, 0]
    assert all(QUESTION in request.user for request in judged)
    assert "Each has a point." in judged[3].user
    assert (record["verdict"], record["final_answer"]) == (
        "Each has a point.",
        "The answer of judge.",
    )


@pytest.mark.parametrize(
    ("word", "goes_on"),
    [
        ("STOP - there is no need to CONTINUE", False),
        (
            "STOP\n\nThey repeat themselves. Another round would only\nCONTINUE what was said.",
            False,
        ),
        ("CONTINUE\nNobody has answered the point on cost; do not STOP here.", True),
        ("I could not say.", True),
    ],
)
def test_judge_decision_ends_or_continues_the_debate(
    contend: Command, models: ModelServer, word: str, goes_on: bool
) -> None:
    models.script = staged(forum_cast(judge={"continue": word}))
    record = _ask(contend, "max_rounds=3")
    assert record["total_rounds"] == (3 if goes_on else 2)
    assert record["stop_reason"] == ("max_rounds" if goes_on else "judge_stop")
    (decision,) = record["judge_decisions"]
    read = {"STOP": "stop", "CONTINUE": "continue"}.get(word.split(maxsplit=1)[0])
    assert (decision["round"], decision["decision"]) == (2, read)
    assert decision["reasoning"]
    assert word.endswith(decision["reasoning"])
    assert [entry["what"] for entry in record["degraded"]] == ["unreadable"] * (read is None)


def test_display_only_asks_no_judge_and_gives_an_index(
    contend: Command, models: ModelServer
) -> None:
    record = _ask(contend, "max_rounds=2", "judge_mode=display_only")
    assert Counter(asked(models)) == Counter(SPEECHES * 2)
    assert record["final_answer"].startswith("# Positions\n\n## Ann (openai:ann)")
    assert "Cyd argues in round 2." in record["final_answer"]
    assert [seat["id"] for seat in record["seats"]] == ["ann", "ben", "cyd"]
    assert record["auto_score"] is None
    assert (record["verdict"], record["winner"], record["judge_decisions"]) == (None, None, [])
    assert record["usage"]["input_tokens"] > 0


@pytest.mark.parametrize(
    "style", ["free_discussion", "structured_opposition", "iterative_improvement"]
)
def test_each_format_has_its_own_task(contend: Command, models: ModelServer, style: str) -> None:
    _ask(contend, "max_rounds=2", "judge_mode=display_only", f"debate_format={style}")
    for call in models.calls:
        part = "again" if heard(call.request) else "first"
        # Instructions come last, behind what all calls share.
        assert call.request.user.endswith(load(f"forum/{style}.{part}"))


def test_a_custom_prompt_is_filled_in_one_pass(contend: Command, models: ModelServer) -> None:
    question = "Is {history} {round} a good name, {model_name}?"
    prompt = (
        "Q {question} R {round} N {debater_number} M {model_name} C <{current_round}> "
        "H <{history}> O <{own_position}> {not a name}"
    )
    custom = ["debate_format=custom", f"custom_format_prompt={prompt}", "max_rounds=2"]
    chosen = [word for each in [*custom, "judge_mode=display_only"] for word in ("--set", each)]
    ended = contend.here("ask", question, *ASK[2:], *chosen, "--json", "-q")
    assert ended.code == 0, ended.err
    first = next(call.request.user for call in models.calls if call.request.model == "ben")
    assert first.startswith("Q ")
    assert question in first
    assert "R 1 N 2 M Ben C <(Nobody has spoken before you.)>" in first
    assert "H <(No earlier rounds.)> O <(No position yet.)>" in first
    assert first.endswith("{not a name}")
    again = models.calls[4].request.user
    assert question in again
    assert "R 2 N 2 M Ben" in again
    current, _, rest = again.partition("H <")
    history, _, own = rest.partition("O <")
    assert "Ann argues in round 1." in current
    assert all(f"{name} argues in round 1." in history for name in ("Ann", "Ben", "Cyd"))
    assert own.count("argues in round 1.") == own.count("Ben argues in round 1.") == 1


def test_seats_that_share_a_model_stay_separate(contend: Command, models: ModelServer) -> None:
    def speaks(sent: Any) -> str:
        seat = "Una" if "You are Una" in sent.user else "Duo"
        return f"{seat} argues in round 2." if "Round 2 of" in sent.user else "One argues."

    def weighs(sent: Any) -> str:
        duo = "You are Duo" in sent.user
        return concedes("Una", quote="Una argues in round 2")(sent) if duo else "NOT CONVINCED"

    models.script = staged(forum_cast(ann={"speech": speaks, "conviction": weighs}))
    seats = ["--seat", "Una=openai:ann", "--seat", "Duo=openai:ann"]
    wanted = [*QUICK, *BY_CONCESSION, "--set", "judge_model=openai:judge", "--set", "max_rounds=3"]
    ended = contend.here("ask", QUESTION, "-p", "forum", *seats, *wanted, "--json", "-q")
    record = ended.json
    assert (record["stop_reason"], record["winner"]) == ("one_left", "una")
    (gone,) = record["eliminations"]
    assert (gone["seat"], gone["convinced_by"], gone["round"]) == ("duo", "una", 2)
    assert record["moved"] == {"una": ["duo"]}
    final = next(call.request for call in models.calls if what(call.request) == "final")
    assert "You are Una." in final.user


def test_anonymous_seats_see_numbers_and_the_user_sees_names(
    contend: Command, models: ModelServer
) -> None:
    says = {"speech": "It argues in round 0."}
    convinced = says | {"conviction": concedes("Debater 1", quote="It argues in round 0")}
    models.script = staged(forum_cast(ann=says, ben=says, cyd=convinced))
    record = _ask(contend, "anonymous=true", "judge_mode=self_convergence", "max_rounds=3")
    for call in models.calls:
        assert not any(name in call.request.text for name in ("Ann", "Ben", "Cyd", "openai"))
    assert any("**Debater 2:**" in call.request.user for call in models.calls)
    assert [seat["name"] for seat in record["seats"]] == ["Ann", "Ben", "Cyd", "Judge"]
    (gone,) = record["eliminations"]
    assert (gone["seat"], gone["convinced_by"]) == ("cyd", "ann")
    assert "Debater 3 conceded to Debater 1 in round 2." in models.calls[9].request.user
