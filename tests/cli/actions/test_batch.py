"""Many questions in one command: results, continuing, stopping, and bad input."""

import asyncio
import csv
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from contend.debates import prepare
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from tests.cli.support import ANSWER, SHORT, Command, Ended, debaters, slowly
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer, Reply, Request

QUESTIONS = ["Should a team of four split its monolith?", "Is tea better?", "Why, and how?"]
BUSY = "Another process is running this batch."
CALLS = 6  # of one debate: two rounds of proposal and critique, the answer, the rating


def _write(contend: Command, *lines: str, name: str = "questions.csv") -> None:
    (contend.home.parent / name).write_text("\n".join(lines), encoding="utf-8")


def _batch(contend: Command, *more: str, file: str = "questions.csv") -> Ended:
    return contend.here("batch", file, "--out", "results", "-m", "openai:m", *SHORT, *more)


def _results(contend: Command) -> list[dict[str, Any]]:
    lines = (contend.home.parent / "results" / "results.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def questions(contend: Command) -> None:
    _write(contend, "question", *(json.dumps(each) for each in QUESTIONS))


@pytest.mark.usefixtures("questions")
def test_every_question_has_a_row_of_results_and_a_document(
    contend: Command, models: ModelServer
) -> None:
    ended = _batch(contend)
    assert (ended.code, ended.out) == (0, "")
    assert "All models chosen by you.\nDebating 3 questions, 3 at a time.\n" in ended.err
    assert "3 questions: 3 done." in ended.err
    assert "Results: results/results.csv" in ended.err
    rows = _results(contend)
    assert [row["question"] for row in rows] == QUESTIONS
    first = rows[0]
    assert (first["status"], first["answer"], first["score"]) == ("done", ANSWER, 7.65)
    assert (first["stop_reason"], first["rounds"], first["error"]) == ("max_rounds", 2, None)
    assert first["input_tokens"] > 0
    assert first["output_tokens"] > 0
    assert first["cost_usd"] is None
    folder = contend.home.parent / "results"
    with (folder / "results.csv").open(encoding="utf-8", newline="") as table:
        assert [row["answer"] for row in csv.DictReader(table)] == [ANSWER] * 3
    for row in rows:
        text = (folder / row["file"]).read_text("utf-8")
        assert row["question"] in text
        assert "This is critique 2" in text
        assert contend.here("show", row["debate_id"], "--json").json["status"] == "done"
    assert len(models.calls) == 3 * CALLS


@pytest.mark.usefixtures("questions")
def test_repeated_command_asks_only_new_questions(contend: Command, models: ModelServer) -> None:
    assert _batch(contend).code == 0
    before = _results(contend)
    again = _batch(contend)
    assert again.code == 0
    assert "3 questions of 3 already answered." in again.err
    assert len(models.calls) == 3 * CALLS
    _write(contend, "question", "A new one?", *(json.dumps(each) for each in QUESTIONS))
    assert _batch(contend, "--parallel", "2").code == 0
    assert len(models.calls) == 4 * CALLS
    assert _results(contend)[:3] == before
    assert _results(contend)[3]["question"] == "A new one?"


@pytest.mark.usefixtures("questions")
def test_a_finished_debate_without_its_result_is_not_asked_again(
    contend: Command, models: ModelServer
) -> None:
    assert _batch(contend).code == 0
    before = _results(contend)
    (contend.home.parent / "results" / "results.jsonl").unlink()
    assert _batch(contend).code == 0
    assert _results(contend) == before
    assert len(models.calls) == 3 * CALLS


@pytest.mark.usefixtures("questions")
def test_a_failed_debate_does_not_end_the_others_and_continues_next_time(
    contend: Command, models: ModelServer
) -> None:
    working = debaters()

    def failing(request: Request) -> Reply:
        broken = "Is tea better?" in request.text and "You are the Skeptic" in request.instructions
        return Reply(status=400) if broken else working(request)

    models.script = failing
    ended = _batch(contend)
    assert ended.code == 4
    assert "1 debate failed. Run the same command again to continue." in ended.err
    assert [row["status"] for row in _results(contend)] == ["done", "failed", "done"]
    assert "openai:m" in _results(contend)[1]["error"]
    models.script = working
    before = len(models.calls)
    assert _batch(contend).code == 0
    assert [row["status"] for row in _results(contend)] == ["done"] * 3
    assert _results(contend)[1]["error"] is None
    assert len(models.calls) == before + CALLS - 1  # its first proposal is kept


def test_after_five_failures_in_a_row_nothing_more_is_started(
    contend: Command, models: ModelServer
) -> None:
    _write(contend, *(f"Question {number}?" for number in range(9)), name="q.txt")
    models.script = lambda _: Reply(status=400)
    ended = _batch(contend, "--parallel", "1", file="q.txt")
    assert ended.code == 4
    assert "5 debates in a row failed" in ended.err
    assert [row["status"] for row in _results(contend)] == ["failed"] * 5 + ["not started"] * 4
    assert len(contend.here("list", "--json").json) == 5


@pytest.mark.usefixtures("questions")
def test_debates_run_at_the_same_time(contend: Command, models: ModelServer) -> None:
    working = debaters()

    def together(request: Request) -> Reply:
        reply: Reply = working(request)
        if len(models.calls) <= 3:  # answered only once all three have called
            return Reply(reply.text, until=lambda: len(models.calls) >= 3)
        return reply

    models.script = together
    assert _batch(contend, "--parallel", "3").code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("questions")
def test_ctrl_c_pauses_the_batch_and_no_finished_call_is_paid_again(
    contend: Command, models: ModelServer
) -> None:
    models.script = debaters(
        lambda role, number, reply: (
            Reply(reply.text, chunk_delay=0.05, chunk_size=8) if role == "skeptic" else reply
        )
    )
    command = ["batch", "questions.csv", "--out", "results", "-m", "openai:m", *SHORT]
    with contend.start(*command, "--parallel", "2") as process:
        models.wait_for_chunks(3, 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=200)
    assert process.returncode == 3
    assert "press Ctrl-C again" in err
    assert "Paused. Run the same command again to continue." in err
    assert sorted(row["status"] for row in _results(contend)) == ["not started", "paused", "paused"]
    assert all(call.completed for call in models.wait_for_idle())
    models.script = debaters()
    assert _batch(contend).code == 0
    assert len(models.calls) == 3 * CALLS


@pytest.mark.usefixtures("questions")
def test_a_second_start_is_refused_while_the_first_checks_its_models(
    contend: Command, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks, second = prepare.prepare_debate, []

    async def start_again(*given: Any) -> prepare.PreparedDebate:
        monkeypatch.setattr(prepare, "prepare_debate", checks)
        second.append(await asyncio.to_thread(_batch, contend))
        return await checks(*given)

    monkeypatch.setattr(prepare, "prepare_debate", start_again)
    assert _batch(contend).code == 0
    (refused,) = second
    assert (refused.code, refused.err) == (2, f"Error: {BUSY}\n")
    assert len(models.calls) == 3 * CALLS
    assert [row["status"] for row in _results(contend)] == ["done"] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("questions")
def test_second_process_is_refused_until_the_first_is_killed(
    contend: Command, models: ModelServer
) -> None:
    models.script = debaters(slowly("skeptic", 1))
    command = ["batch", "questions.csv", "--out", "results", "-m", "openai:m", *SHORT]
    with contend.start(*command, "--parallel", "1") as process:
        models.wait_for_chunks(1, 1)
        refused = _batch(contend)
        process.kill()
    assert (refused.code, refused.err) == (2, f"Error: {BUSY}\n")
    models.wait_for_idle()
    models.script = debaters()
    assert BUSY not in _batch(contend).err
    assert len(_results(contend)) == 3


def test_unusual_line_break_in_a_question_does_not_split_its_row(contend: Command) -> None:
    question = "Is it\u2028\x85so?"
    _write(contend, json.dumps({"question": question}, ensure_ascii=False), name="q.jsonl")
    assert _batch(contend, file="q.jsonl").code == 0
    assert "1 question of 1 already answered." in _batch(contend, file="q.jsonl").err
    lines = (contend.home.parent / "results" / "results.jsonl").read_text("utf-8").split("\n")
    assert json.loads(lines[0])["question"] == question


def test_a_row_may_have_settings_of_its_own(contend: Command) -> None:
    _write(contend, "question,maxRounds", "A?,1", "B?,")
    assert _batch(contend).code == 0
    assert [row["rounds"] for row in _results(contend)] == [1, 2]


def test_forecasts_take_their_outcomes_from_the_file(contend: Command, models: ModelServer) -> None:
    models.script = forecasters()
    _write(contend, "question,outcomes", "Will the bridge open before May?,yes: It opens; no: Not")
    ended = contend.here(
        "batch", "questions.csv", "-p", "forecast", "-o", "results", "-m", "openai:m"
    )
    assert ended.code == 0, ended.err
    (row,) = _results(contend)
    assert row["status"] == "done"
    assert contend.here("show", row["debate_id"], "--json").json["forecast"]


@pytest.mark.usefixtures("questions")
def test_debate_that_another_process_runs_is_skipped(
    contend: Command, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = prepare.write_debate

    def write_twice(records: Repository, *given: Any, **more: Any) -> StoredDebate:
        """Write and lease the debate, as another process could do just before."""
        if "Is tea better?" in given[0].question:
            records.acquire(written(records, *given, **more).id)
        return written(records, *given, **more)

    monkeypatch.setattr(prepare, "write_debate", write_twice)
    ended = _batch(contend)
    assert ended.code == 3
    assert [row["status"] for row in _results(contend)] == ["done", "running", "done"]
    assert "is being run by another process" in _results(contend)[1]["error"]
    assert len(models.calls) == 2 * CALLS


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        (["frage", "A?"], [], "must name a column `question`"),
        (["question,max_rounds", "A?,5", "B?,99"], [], "Row 3: max_rounds must be between 1 and"),
        (["question,notes", "A?,x"], [], "Row 2: adversarial has no setting 'notes'"),
        (["question,outcomes", "A?,yes; no"], [], "Row 2: outcomes and due work only with"),
        (["question", "A?"], ["-p", "forecast"], "Row 2: A forecast needs outcomes."),
        (["question", "A?"], ["-p", "forums"], "There is no protocol 'forums'. Did you mean"),
        (["question", "A?"], ["--set", "pause=each_round"], "A batch cannot wait for a person"),
        (["question", "A?"], ["-m", "ollama:gone"], "gone"),
        (["question", "A?", "B " * 60_000], [], "Row 3: The question has 119,999 characters"),
        (
            ["question", "A?", "B " * 9_000],
            ["--set", "context_tokens=512"],
            "Row 3: The question is",
        ),
        (["question", "A?"], ["--parallel", "0"], "--parallel"),
    ],
)
def test_bad_input_is_refused_before_anything_is_paid_or_written(
    contend: Command, models: ModelServer, lines: list[str], options: list[str], said: str
) -> None:
    _write(contend, *lines)
    given = ["-m", "openai:m", *options]
    ended = contend.here("batch", "questions.csv", "--out", "results", *given)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert said in line
    assert models.calls == []
    assert not (contend.home.parent / "results").exists()
    assert contend.here("list", "--json").json == []


@pytest.mark.usefixtures("questions")
def test_the_folder_of_another_batch_is_refused(contend: Command, models: ModelServer) -> None:
    assert _batch(contend).code == 0
    other_options = _batch(contend, "--set", "top_k=1")
    assert other_options.code == 2
    assert "a batch with other options: settings" in other_options.err
    _write(contend, "question", "Something else?")
    other_questions = _batch(contend)
    assert other_questions.code == 2
    assert "it has the question 'Is tea better?', which is not in this file" in other_questions.err
    (contend.home.parent / "mine").mkdir()
    (contend.home.parent / "mine" / "photo.jpg").touch()
    not_empty = contend.here("batch", "questions.csv", "--out", "mine", "-m", "openai:m")
    assert not_empty.code == 2
    assert "has other files in it. Choose another folder with --out." in not_empty.err
    assert [each.name for each in (contend.home.parent / "mine").iterdir()] == ["photo.jpg"]
    for impossible in ("questions.csv", "x" * 300):
        ended = contend.here("batch", "questions.csv", "--out", impossible, "-m", "openai:m")
        assert ended.code == 2
        assert "Choose another folder with --out." in ended.err
    assert len(models.calls) == 3 * CALLS


@pytest.mark.usefixtures("questions")
def test_a_damaged_folder_is_refused(contend: Command) -> None:
    folder: Path = contend.home.parent / "results"
    folder.mkdir()
    options = dict.fromkeys(("protocol", "model", "settings"))
    whole: dict[str, Any] = {"options": options, "debates": [{"id": "x", "question": "A?"}]}
    broken: list[dict[str, Any]] = [{"debates": [1]}, {"debates": [{"id": "x"}]}, {"options": 1}]
    for text in ("{", "[]", *(json.dumps(whole | each) for each in broken)):
        (folder / "batch.json").write_text(text, encoding="utf-8")
        ended = _batch(contend)
        assert ended.code == 2
        assert "batch.json is damaged" in ended.err
