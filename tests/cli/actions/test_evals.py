import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Command, Ended
from tests.evals.test_langsmith_sets import Stub, stub
from tests.support.model_server import ModelServer, Reply, Request

__all__ = ["stub"]  # a fixture

ITEMS = [
    {"id": f"i{n}", "question": f"Question {n}?", "kind": "yes_no", "answer": "yes"}
    for n in range(3)
]


def _answering(request: Request) -> Reply:
    number = int((re.findall(r"Question (\d)", request.user) or ["0"])[0])
    return Reply("So it is.\n\nAnswer: yes" if number < 2 else "Answer: no")


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(_answering, models=["m", "other"]) as running:
        yield running


@pytest.fixture
def data(contend: Command) -> str:
    path = contend.home.parent / "items.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in ITEMS), "utf-8")
    return "items.jsonl"


def _run(contend: Command, data: str, *more: str, out: str = "run", arms: str = "single") -> Ended:
    return contend.here(
        "eval", "run", "--data", data, "--arms", arms, "-m", "openai:m", "--out", out, *more
    )


def test_run_writes_its_report_and_a_repeated_run_makes_no_calls(
    contend: Command, models: ModelServer, data: str
) -> None:
    ended = _run(contend, data, "--samples", "3", arms="single,self_consistency")
    assert ended.code == 0, ended.err
    assert len(models.calls) == 3 * (1 + 3)
    assert "| single | 66.7% | 20.8% to 93.9% | 3 | 1.0 |" in ended.out
    assert "Too few items for a claim: n = 3" in ended.out
    folder = contend.home.parent / "run"
    assert (folder / "report.md").read_text("utf-8") == ended.out
    assert "<svg" in (folder / "report.html").read_text("utf-8")
    again = _run(contend, data, "--samples", "3", arms="single,self_consistency")
    assert (again.code, len(models.calls)) == (0, 12)
    assert "6 of 6 answers are done already." in again.err
    report = contend.here("eval", "report", "run", "--json").json
    assert report["arms"][0]["accuracy"]["count"] == 2


def test_malformed_line_is_reported_and_skipped(contend: Command, data: str) -> None:
    with (contend.home.parent / data).open("a") as file:
        file.write("\n{oops\n")
    ended = _run(contend, data)
    assert ended.code == 0
    assert "Skipped: items.jsonl line 4: not JSON" in ended.err
    assert "| 3 |" in ended.out


def test_a_run_does_not_continue_under_another_settings_file(
    contend: Command, models: ModelServer, data: str
) -> None:
    file = contend.home.parent / "settings.yaml"
    file.write_text("retry_wait: 0.01\n", "utf-8")
    given = data, "--limit", "1", "--config", str(file)
    assert _run(contend, *given).code == 0
    file.write_text("retry_wait: 0.02\n", "utf-8")
    refused = _run(contend, *given)
    assert (refused.code, len(models.calls)) == (2, 1), refused.err


def test_a_run_does_not_continue_under_other_variables_or_defaults(
    contend: Command, models: ModelServer, data: str
) -> None:
    assert _run(contend, data, "--limit", "1").code == 0
    contend.env["CONTEND_RETRY_WAIT"] = "0.02"
    refused = _run(contend, data, "--limit", "1")
    assert (refused.code, len(models.calls)) == (2, 1)
    assert "other options: variables" in refused.err
    del contend.env["CONTEND_RETRY_WAIT"]
    contend.home.mkdir(exist_ok=True)
    (contend.home / "config.yaml").write_text("retry_wait: 0.02\n", "utf-8")
    refused = _run(contend, data, "--limit", "1")
    assert (refused.code, len(models.calls)) == (2, 1)
    assert "other options: config" in refused.err


def test_a_run_does_not_continue_with_changed_items(
    contend: Command, models: ModelServer, data: str
) -> None:
    file = contend.home.parent / data

    def write(version: int, **changes: str) -> None:
        rows = [{"version": version}, {**ITEMS[0], **changes}, *ITEMS[1:]]
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")

    write(1)
    assert _run(contend, data, "--limit", "2").code == 0
    more = _run(contend, data)
    assert more.code == 0, "items may be added"
    assert "- Data: items.jsonl (version 1); 3 items with the hash " in more.out
    write(2, answer="no")
    refused = _run(contend, data)
    assert (refused.code, len(models.calls)) == (2, 3)
    assert "1 of the items have changed since the run in run was started" in refused.err
    assert f"items/{ITEMS[0]['id']} (items was version 1 and is now 2)" in refused.err
    assert _run(contend, data, out="other").code == 0
    compared = contend.here("eval", "compare", "run", "other")
    assert "Left out, because the items differ in the two runs: items/" in compared.err
    assert "| single | 2 |" in compared.out
    report = contend.here("eval", "report", "other", "--json").json
    assert report["items"]["versions"] == {"items": 2}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--arms", "telepathy"), "There is no arm 'telepathy'. Known: single,"),
        (("--equal-tokens",), "one of the arms must be a protocol"),
        (("--set", "max_rounds=3"), "max_rounds"),
        (("--data", "riddles"), "There is no data set 'riddles'"),
        (("--judge", "nobody"), "nobody"),
        (("--langsmith",), "LANGSMITH_API_KEY is not set"),
        (("--arms", "adversarial", "--set", "skeptic_model=human"), "cannot wait for a person"),
        (("--arms", "adversarial", "--set", "budget=90000"), "An eval has no budget"),
    ],
)
def test_bad_input_costs_no_call(
    contend: Command, models: ModelServer, data: str, more: tuple[str, ...], said: str
) -> None:
    ended = _run(contend, data, *more)
    assert ended.code == 2
    assert said in ended.err
    assert models.calls == []


def test_failed_answers_are_reported(contend: Command, models: ModelServer, data: str) -> None:
    def moody(request: Request) -> Reply:
        fails = "Question 1" in request.user
        return Reply("", status=401) if fails else _answering(request)

    models.script = moody
    ended = _run(contend, data)
    assert ended.code == 4
    assert "| single | 50.0% |" in ended.out
    assert "Error: 1 answer failed. Run the same command again to continue." in ended.err
    assert "items/i1, single failed: Debater 1" in ended.err


def test_compare_exits_with_code_1_if_accuracy_dropped(
    contend: Command, models: ModelServer
) -> None:
    items = [{**ITEMS[0], "id": f"i{n}"} for n in range(12)]
    (contend.home.parent / "many.jsonl").write_text("\n".join(map(json.dumps, items)), "utf-8")
    assert _run(contend, "many.jsonl", "-q", out="before").code == 0
    models.script = lambda _: Reply("Answer: no")
    assert _run(contend, "many.jsonl", "-q", out="after").code == 0
    dropped = contend.here("eval", "compare", "before", "after")
    assert dropped.code == 1
    assert "| single | 12 | 100.0% | 0.0% | dropped (too few items for a claim" in dropped.out
    same = contend.here("eval", "compare", "before", "before", "--json")
    assert (same.code, same.json[0]["dropped"]) == (0, False)
    assert contend.here("eval", "compare", "after", "before").code == 0
    nothing = contend.here("eval", "compare", "before", "nowhere")
    assert (nothing.code, "no eval run in nowhere" in nothing.err) == (2, True)


def test_recorded_answers_and_signals_need_no_model(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    table = contend.home.parent / "table.csv"
    table.write_text("question_id,answer,a,b\n1,A,A,A\n2,B,B,C\n")
    ended = contend.here("eval", "recorded", "--data", f"mmlu_pro={table}", "--models", "a,b")
    assert ended.code == 0
    assert "2 questions that all of a, b answered. The gate (ask two models" in ended.out
    assert "needs 2.00 calls per question instead of 2." in ended.out
    assert "| a | 100.0% |" in ended.out
    refused = contend.here("eval", "recorded", "--data", f"other={table}")
    assert (refused.code, "mmlu_pro=PATH" in refused.err) == (2, True)
    signals = contend.here("eval", "signals")
    assert (signals.code, "0 misread" in signals.out) == (0, True)
    assert models.calls == []


def test_push_and_upload_report_what_they_did(contend: Command, stub: Stub, data: str) -> None:
    contend.env |= {name: os.environ[name] for name in ("LANGSMITH_ENDPOINT", "LANGSMITH_API_KEY")}
    pushed = contend.here("eval", "push", "--data", data)
    assert pushed.code == 0, pushed.err
    assert "items: 3 created, 0 updated, 0 unchanged." in pushed.err
    stub.calls.clear()
    assert _run(contend, data).code == 0
    assert stub.calls == []
    ended = _run(contend, data, "--langsmith")
    assert ended.code == 0, ended.err
    assert "Uploaded to LangSmith: contend-single-" in ended.err
    assert "View the evaluation" not in ended.out
    assert ("POST", "/sessions") in stub.calls


def test_a_push_without_a_key_sends_nothing(contend: Command, data: str) -> None:
    refused = contend.here("eval", "push", "--data", data)
    assert (refused.code, "LANGSMITH_API_KEY is not set" in refused.err) == (2, True)


def test_eval_judge_measures_position_bias(contend: Command, models: ModelServer) -> None:
    models.script = lambda _: Reply('{"better": "first"}')
    ended = contend.here("eval", "judge", "openai:m", "--limit", "2")
    assert ended.code == 0, ended.err
    assert "**Too few pairs for a reliable result (n = 2).**" in ended.out
    assert "| chose the answer shown first (half is fair) | 100.0% |" in ended.out
    assert len(models.calls) == 4
    refused = contend.here("eval", "judge", "openai:m", "--data", "llmbar=nowhere.json")
    assert (refused.code, "File not found: nowhere.json" in refused.err) == (2, True)
