"""`contend stats` and the export of training data."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.support import Command, debaters
from tests.support.model_server import ModelServer, Reply

REFINE = ["-p", "refine", "-m", "openai:m", "--set", "max_debate_rounds=1", "-q"]


def _answers(role: str, number: int, reply: Reply) -> Reply:
    if role == "debater":
        return Reply(f"Draft {number}.\n\nAnswer: yes")
    if "Keep the monolith" in reply.text:
        return Reply("Merged.\n\nAnswer: no")
    return reply


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(_answers), models=["m", "other"]) as running:
        yield running


def _ask(contend: Command, *more: str) -> str:
    ended = contend.here("ask", "Is it so?", *REFINE, *more)
    assert ended.code == 0, ended.err
    return str(contend.here("list", "--json").json[0]["id"])


def test_stats_show_what_debating_changed(contend: Command) -> None:
    assert "No debates yet" in contend.here("stats").err
    rated = _ask(contend)
    assert contend.here("rate", rated, "3").code == 0
    _ask(contend, "--set", "debate_if=drafts_disagree")
    (found,) = contend.here("stats", "--json").json
    assert (found["debates"], found["done"], found["with_vote"]) == (2, 2, 2)
    assert (found["kept"], found["changed"], found["no_majority"]) == (0, 2, 0)
    assert found["ratings"] == {"n": 1, "mean": 3.0}
    assert found["scores"]["n"] == 2
    assert found["quality_changed"] == {"n": 2, "mean": pytest.approx((3 + 7.65) / 2)}
    assert (found["not_debated"], found["calls_saved"]) == (1, 4)
    shown = contend.here("stats").out
    assert "| refine | 2 | 0 | 2 | 0 | – | 5.3 (2) |" in shown
    assert "agreed: 1 debate. Calls saved: at least 4." in shown
    assert "Is it so?" not in shown


def test_show_reports_that_the_debate_changed_the_first_answers(contend: Command) -> None:
    debate = _ask(contend)
    assert "First answers yes, yes, yes; the debate changed it to no" in " ".join(
        contend.here("show", debate).out.replace("**", "").split()
    )
    assert contend.here("show", debate, "--json").json["drafts"]["changed"] is True


def _rows(contend: Command, *more: str) -> tuple[list[dict[str, Any]], str]:
    ended = contend.here("export", "--format", *more, "-o", "data.jsonl")
    assert ended.code == 0, ended.err
    folder = contend.home.parent
    lines = (folder / "data.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines], (folder / "data.card.md").read_text("utf-8")


def test_training_data_export_without_qualifying_debates_is_refused(contend: Command) -> None:
    good, bad = _ask(contend), _ask(contend)
    contend.here("rate", good, "9")
    contend.here("rate", bad, "2")
    refused = contend.here("export", "--format", "sft")
    assert refused.code == 2
    assert "No debate qualifies as training data" in refused.err


@pytest.fixture
def useful(models: ModelServer) -> None:
    """Make the judge rate every debate as useful for training."""
    script = debaters(_answers)

    def say(request: Any) -> Reply:
        reply = script(request)
        text = reply.text.replace('finetune": false', 'finetune": true')
        return Reply(text.replace("finetune: false", "finetune: true"))

    models.script = say


@pytest.mark.usefixtures("useful")
def test_sft_exports_final_answers_and_dpo_exports_revisions(contend: Command) -> None:
    good, bad = _ask(contend), _ask(contend)
    contend.here("rate", good, "9")
    contend.here("rate", bad, "2")
    rows, card = _rows(contend, "sft")
    (row,) = rows
    assert row["messages"][0] == {"role": "user", "content": "Is it so?"}
    assert row["messages"][1]["content"] == "Merged.\n\nAnswer: no"
    assert row["about"] == {
        "debate": good,
        "protocol": "refine",
        "score": 9,
        "scored_by": "user",
    }
    assert "Rows: 1. Debates: 1." in card
    assert "Left out, scored lower: 1" in card
    assert "openai:m" in card
    rows, card = _rows(contend, "dpo", "--min-score", "9")
    assert len(rows) == 3  # one per seat
    assert rows[0]["chosen"] == "Draft 1.\n\nAnswer: yes"
    assert rows[0]["rejected"] == "Draft 0.\n\nAnswer: yes"
    assert "revised answer (chosen) against the first draft" in card


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "sft"), "There are no debates yet"),
        (("abc", "--format", "sft"), "takes all debates; leave out the id 'abc'"),
        ((), "Give the id of the debate to export"),
        (("abc", "--min-score", "8"), "--min-score works only with --format sft and dpo"),
        (("--format", "sft", "--min-score", "11"), "--min-score"),
    ],
)
def test_wrong_exports_are_refused(contend: Command, arguments: tuple[str, ...], said: str) -> None:
    ended = contend.here("export", *arguments)
    assert ended.code == 2
    assert said in ended.err
