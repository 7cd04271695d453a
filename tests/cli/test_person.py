"""Seats taken by a person at the terminal."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import ASK, Command
from tests.support.floor_server import floor_script
from tests.support.model_server import ModelServer

HUMAN = ["--set", "skeptic_model=human"]
TYPED = "S1 resolved\nS2 resolved\nReady for synthesis"
OBJECTION = "critical: the cost is never estimated.\nminor: the title is too long."
READY = "S1 ✅\nS2 ✅\nReady for Synthesis ✅"


class Terminal(io.TextIOWrapper):
    """Return one answer at a time, as if each ended with Ctrl-D."""

    def __init__(self, *answers: str) -> None:
        super().__init__(io.BytesIO())
        self.answers = list(answers)

    def isatty(self) -> bool:
        return True

    @property
    def buffer(self) -> Any:
        answers = self.answers

        class Typed:
            def read(self) -> bytes:
                return answers.pop(0).encode()

        return Typed()


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    def sit_down(*answers: str) -> Terminal:
        terminal = Terminal(*answers)
        monkeypatch.setattr("sys.stdin", terminal)
        return terminal

    return sit_down


def _skeptic(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [turn for turn in record["turns"] if turn["seat"] == "skeptic"]


def test_a_person_is_asked_until_the_answer_can_be_read(
    contend: Command, models: ModelServer
) -> None:
    asked = contend(*ASK, *HUMAN, "--json")
    assert asked.code == 3
    assert "Skeptic, it is your turn (round 1). Write the critique." in asked.err
    debate = asked.json["id"]
    assert f'contend resume {debate[:8]} --say "..."' in asked.err
    paid = len(models.calls)
    unread = contend("resume", debate, "--say", "Who knows?", "--json")
    assert unread.code == 3
    assert "Your answer could not be read. Write the critique." in unread.err
    assert len(models.calls) == paid, "no model reads what a person decided"
    again = contend("resume", debate, "--say", OBJECTION, "--json")
    assert "(round 2)" in again.err
    done = contend("resume", debate, "--say", TYPED, "--json")
    assert done.code == 0, done.err
    first, second = _skeptic(done.json)
    assert (first["status"], first["model"], first["text"]) == ("human", "human", OBJECTION)
    assert [point["severity"] for point in first["assessment"]["points"]] == ["critical", "minor"]
    assert second["assessment"]["ready"] is True
    assert [point["status"] for point in second["assessment"]["points"]] == ["resolved"] * 2
    assert done.json["stop_reason"] == "skeptic_ready"
    assert [each["skeptic"] for each in done.json["rounds"]] == [OBJECTION, READY]
    assert first["usage"]["output_tokens"] == 0
    assert {call.request.model for call in models.calls} == {"m"}


def test_person_answers_all_turns_in_one_terminal_session(
    contend: Command, at_terminal: Callable[..., Terminal]
) -> None:
    terminal = at_terminal(OBJECTION, "hm", READY)
    done = contend(*ASK, *HUMAN)
    assert done.code == 0, done.err
    assert terminal.answers == []
    assert done.err.count("End with Ctrl-D") == 3
    assert done.out.count("adversarial ·") == 1, "one header"
    assert "the cost is never estimated" in done.out


def test_an_empty_answer_pauses_and_resume_asks_again(
    contend: Command, at_terminal: Callable[..., Terminal]
) -> None:
    at_terminal("")
    paused = contend(*ASK, *HUMAN, "--json")
    assert paused.code == 3
    at_terminal(READY)
    done = contend("resume", paused.json["id"], "--json")
    assert done.code == 0, done.err
    assert [turn["text"] for turn in _skeptic(done.json)] == [READY]


def test_finish_takes_effect_together_with_the_answer(contend: Command) -> None:
    debate = contend(*ASK, *HUMAN, "--set", "max_rounds=5", "--json").json["id"]
    done = contend("resume", debate, "--say", OBJECTION, "--finish", "--json")
    assert done.code == 0, done.err
    assert done.json["stop_reason"] == "user"


def test_a_debate_with_a_person_is_replayed_forked_and_exported(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    debate = contend(*ASK, *HUMAN, "--json").json["id"]
    contend("resume", debate, "--say", "Who knows?")
    contend("resume", debate, "--say", OBJECTION)
    assert contend("resume", debate, "--say", READY).code == 0
    paid = len(models.calls)
    strict = contend("replay", debate, "--strict")
    assert strict.code == 0, strict.out
    assert len(models.calls) == paid
    assert "Skeptic" in contend("replay", debate, "--speed", "100000").out
    assert "### Skeptic (human)" in contend("export", debate, "--format", "md").out
    asked = contend("fork", debate, "--at", "1", "--json")
    assert asked.code == 3, "the person is asked again in round 2"
    assert "(round 2)" in asked.err
    better = tmp_path / "better.md"
    better.write_text(READY, "utf-8")
    edit = ["--edit", "r1.critique.skeptic", "--text-file", str(better)]
    edited = contend("fork", debate, *edit, "--json")
    assert edited.code == 0, edited.err
    assert edited.json["stop"]["round"] == 1


def test_several_people_answer_one_after_another(contend: Command) -> None:
    seats = ["--seat", "ann=human", "--seat", "ben=openai:m", "--seat", "cyd=human"]
    modes = ["--set", "judge_mode=self_convergence", "--set", "max_rounds=2"]
    ended = contend(
        "ask", "Why?", "-p", "forum", *seats, *modes, "-s", "judge_model=human", "--json"
    )
    debate, said = ended.json["id"], []
    answers = {
        "propose": "I think so.",
        "conviction_check": "NOT CONVINCED: I have my reasons.",
        "synthesize": "So it is.",
        "score": "Correctness: 7\nCompleteness: 6\nClarity: 7\nDepth: 5\nJustification: fine\n"
        "Would benefit from finetune: false",
    }
    while ended.code == 3:
        phase = next(name for name, sign in SIGNS.items() if sign in ended.err)
        said.append((ended.err.partition(", it is your turn")[0].split()[-1], phase))
        assert len(said) < 12
        ended = contend("resume", debate, "--say", answers[phase], "--json")
    assert ended.code == 0, ended.err
    assert said[:2] == [("ann", "propose"), ("cyd", "propose")]
    texts = {turn["text"] for turn in ended.json["turns"] if turn["status"] == "human"}
    assert texts == {answers[phase] for _, phase in said}
    assert ended.json["auto_score"]["correctness"] == 7
    assert contend("replay", debate, "--strict").code == 0


SIGNS = {
    "propose": "Write the answer.",
    "conviction_check": "Has another debater convinced you?",
    "score": "Rate the answer",
    "synthesize": "Write the final answer.",
}


def test_an_advocate_can_be_a_person(contend: Command, models: ModelServer) -> None:
    models.script = floor_script()
    sides = ["--config", str(contend.home.parent / "sides.yaml")]
    ann, ben = "{name: Ann, position: So it is, model: human}", "{name: Ben, position: Not so}"
    (contend.home.parent / "sides.yaml").write_text(
        f"positions:\n- {ann}\n- {ben}\nround_count: 1\n", "utf-8"
    )
    ended = contend("ask", "Why?", "-p", "moderated", *sides, "-m", "openai:m", "--json")
    turns = 0
    while ended.code == 3:
        turns += 1
        assert turns < 8
        ended = contend("resume", ended.json["id"], "--say", f"Statement {turns}.", "--json")
    assert ended.code == 0, ended.err
    said = [turn["phase"] for turn in ended.json["turns"] if turn["status"] == "human"]
    assert said == ["opening", "argument", "rebuttal", "closing"]


REFUSED = {
    "judge of statements": (
        ["-p", "moderated", "-s", "judge_model=human"],
        "Judge cannot be a person",
    ),
    "role of a forecast": (["-p", "forecast", "-s", "judge_model=human"], "cannot be a person in"),
    "fallback": (
        ["-s", "skeptic_fallbacks=[human]"],
        "A person cannot be a fallback model (Skeptic)",
    ),
    "own fallbacks": ([*HUMAN, "-s", "skeptic_fallbacks=[openai:m]"], "are never used"),
    "name": (["-s", "skeptic_model=human:ann"], "Write 'human' alone"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_person_is_refused_where_only_a_model_can_sit(
    case: str, contend: Command, models: ModelServer
) -> None:
    options, said = REFUSED[case]
    outcomes = ["--outcome", "yes: It opens", "--outcome", "no: It does not"]
    given = [*options, *(outcomes if "forecast" in options else [])]
    ended = contend("ask", "Why?", "-m", "openai:m", *given)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert not models.calls


def test_human_seat_does_not_change_the_models_of_the_others(contend: Command) -> None:
    plan = contend("ask", "Why?", *HUMAN, "--dry-run", "--json").json
    models = {seat["id"]: seat["model"] for seat in plan["seats"]}
    assert models.pop("skeptic") == "human"
    assert set(models.values()) == {"openai:gpt-5-mini"}
