"""Rating a debate after its end, when its judge failed."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cli.support import ASK, Command, debaters
from tests.support.model_server import ModelServer, Reply


class Judge:
    """Control the judge's replies: refused, unreadable or good."""

    reply: Reply | None = Reply(status=401)

    def change(self, role: str, _round: int, reply: Reply) -> Reply:
        is_judge = role in ("judge", "extraction")
        return self.reply if self.reply and is_judge else replace(reply)


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def models(judge: Judge) -> Iterator[ModelServer]:
    with ModelServer(debaters(judge.change), models=["m"]) as running:
        yield running


SEATS = ["--seat", "Ann=openai:m", "--seat", "Ben=openai:m"]
FEW_CALLS = {
    "adversarial": ASK[2:],
    "refine": ["-p", "refine", *SEATS, "-m", "openai:m", "--set", "max_debate_rounds=0"],
}


def ask_unrated(contend: Command, protocol: str = "adversarial") -> str:
    ended = contend(*ASK[:2], *FEW_CALLS[protocol], "--json", "-q")
    record = json.loads(ended.out)
    assert (record["status"], record["quality_score"]) == ("done", None)
    assert "not_rated" in [each["what"] for each in record["degraded"]]
    return str(record["id"])


@pytest.mark.parametrize("failed", [Reply(status=401), Reply("Rather good!")])
@pytest.mark.parametrize("protocol", FEW_CALLS)
def test_auto_rating_can_be_repeated_after_the_judge_failed(
    contend: Command, models: ModelServer, judge: Judge, protocol: str, failed: Reply
) -> None:
    judge.reply = failed
    debate = ask_unrated(contend, protocol)
    judge.reply, before = None, len(models.calls)
    ended = contend("rate", debate[:8], "--auto")
    assert ended.code == 0, ended.err
    assert f"Rated debate {debate[:8]} 7.65 of 10, by openai:m." in ended.err
    assert len(models.calls) == before + 1
    record = json.loads(contend("show", debate, "--json").out)
    assert (record["status"], record["quality_score"]) == ("done", 7.65)
    assert "not_rated" not in [each["what"] for each in record["degraded"]]
    again = contend("rate", debate, "--auto")
    assert (again.code, "has already rated" in again.err) == (2, True)


def test_a_judge_that_fails_again_leaves_the_debate_done(contend: Command, judge: Judge) -> None:
    debate = ask_unrated(contend)
    ended = contend("rate", debate, "--auto")
    assert ended.code == 4
    assert "401" in ended.err
    assert f"contend rate {debate[:8]} --auto" in ended.err
    record = json.loads(contend("show", debate, "--json").out)
    assert (record["status"], record["quality_score"]) == ("done", None)
    judge.reply = None
    assert contend("rate", debate, "--auto").code == 0


@pytest.mark.parametrize("given", [[], ["7", "--auto"]])
def test_rate_requires_either_a_rating_or_auto(contend: Command, given: list[str]) -> None:
    ended = contend("rate", "abc", *given)
    assert ended.code == 2
    assert "either a rating from 1 to 10, or --auto" in ended.err


def test_a_debate_without_a_judge_cannot_be_rated_automatically(contend: Command) -> None:
    seats = [*ASK[:4], "-p", "forum", *SEATS, "--set", "max_rounds=1", "--set"]
    ended = contend(*seats, "judge_mode=display_only", "--json", "-q")
    assert ended.code == 0, ended.err
    refused = contend("rate", json.loads(ended.out)["id"], "--auto")
    assert refused.code == 2
    assert "no judge" in refused.err
