"""`contend ask` from the question to the answer, in each of its output modes."""

import json
from dataclasses import replace

from contend.cli.commands.options import PROTOCOLS
from contend.graph.settings import SETTINGS
from tests.cli.support import ANSWER, ASK, QUESTION, SHORT, Command, debaters
from tests.support.model_server import ModelServer, Reply


def test_help_truncates_no_sentence_and_lists_the_protocols(contend: Command) -> None:
    assert "..." not in contend.here("--help").out.partition("Debates:")[2]
    listed = " ".join(contend.here("ask", "--help").out.split())
    assert (
        "Debate protocol: adversarial, forecast, forum, moderated or refine (default: adversarial"
        in listed
    )
    assert sorted(SETTINGS) == PROTOCOLS


def test_default_output_shows_the_whole_debate(contend: Command, models: ModelServer) -> None:
    ended = contend.ask()
    assert (ended.code, ended.err) == (0, "")
    out = ended.out
    shown = [
        QUESTION,
        "adversarial · 1 to 2 rounds · debate ",
        "Proposer     openai:m",
        "All models chosen by you.",
        "Estimate: 4 to 6 calls, about 6k to 20k tokens, cost unknown (no price for\n"
        "openai:m); likely 5 calls, 11k tokens.",
        "─ Round 1 of at most 2 ─",
        "Proposer · openai:m\n  This is proposal 1",
        "Skeptic · openai:m\n  This is critique 1 🔍",
        "Open: 🔴 1 🟡 0 🟢 0",
        "🔴 S1 The cost is never estimated.",
        "─ Round 2 of at most 2 ─",
        "Open: 🔴 0 🟡 0 🟢 0",
        "✅ S1 The cost is never estimated.",
        "The rounds ended: all 2 rounds were used.",
        "─ Answer ─",
        "Synthesizer · openai:m\n  # Answer\n\n  Keep the monolith 🧱",
        "─ Done ─",
        "after 2 rounds: all rounds were used",
        "7.65 of 10 (correctness 8, completeness 7, clarity 9, depth 6)",
        "unknown\nTime",
        "contend show ",
        "--format md",
        "contend rate ",
        "your own rating, 1 to 10",
    ]
    places = [out.find(text) for text in shown]
    assert -1 not in places, shown[places.index(-1)]
    assert places == sorted(places)
    assert "nonce" not in out
    assert "\x1b" not in out
    assert len(models.calls) == 6


def test_json_is_one_document_and_progress_goes_to_stderr(contend: Command) -> None:
    ended = contend.ask("--json")
    record = ended.json
    assert ended.code == 0
    assert record["final_answer"] == ANSWER
    assert (record["status"], record["stop_reason"]) == ("done", "max_rounds")
    assert [turn["phase"] for turn in record["turns"]][-2:] == ["synthesize", "score"]
    assert "This is proposal 1" in ended.err

    shown = contend.here("show", record["id"][:6], "--json")
    assert shown.json == record


def test_events_are_one_per_line_in_order(contend: Command) -> None:
    ended = contend.ask_here("--events")
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert (ended.code, ended.err) == (0, "")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["event"] == "debate_start"
    assert events[-1]["event"] == "complete"
    assert events[-1]["content"] == ANSWER
    assert events[-1]["metadata"] == {"model": "openai:m", "role": "synthesizer"}
    assert {event["type"] for event in events} == {"debate_event"}


def test_quiet_prints_the_answer_alone(contend: Command) -> None:
    ended = contend.ask("--quiet")
    assert (ended.code, ended.out) == (0, f"{ANSWER}\n")
    assert ended.err.startswith("Caution: The judge uses the same model as Proposer and Skeptic")


def test_question_from_stdin_reaches_the_model_as_written(
    contend: Command, models: ModelServer
) -> None:
    odd = "Why does {history} \x1b[31m stay {{as}} written 🧱?"
    arguments = ["-m", "ollama:m", *SHORT, "--set", "max_rounds=1"]
    ended = contend("ask", "-", *arguments, stdin=f"{odd}\n", CONTEND_RETRY_WAIT="0.5")
    assert ended.code == 0
    assert odd in models.calls[0].request.text
    assert "\x1b" not in ended.out
    assert "free (local)" in ended.out


def test_output_fits_narrow_and_dumb_terminals(contend: Command) -> None:
    ended = contend.ask_here(COLUMNS="60", TERM="dumb", CONTEND_NO_SUCH="1")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert max(len(line) for line in ended.out.splitlines()) <= 60
    assert ended.err == ("Note: CONTEND_NO_SUCH is not a setting of adversarial and was ignored.\n")


def test_retry_is_reported_and_restarts_the_turn(contend: Command, models: ModelServer) -> None:
    def cut_once(role: str, number: int, reply: Reply) -> Reply:
        first = len(models.calls) == 1
        return replace(reply, cut_after=3, chunk_delay=0.05) if first else reply

    models.script = debaters(cut_once)
    ended = contend.ask_here()
    assert ended.code == 0
    unwrapped = " ".join(ended.out.split())
    assert "! Proposer: trying again (openai:m: " in unwrapped
    assert "The turn starts over." in unwrapped
    assert "Notice" in unwrapped


def test_unparsable_critiques_are_not_shown_as_zero_objections(
    contend: Command, models: ModelServer
) -> None:
    def unreadable(role: str, number: int, reply: Reply) -> Reply:
        return Reply("Well, well.") if role in ("skeptic", "extraction") else reply

    models.script = debaters(unreadable)
    ended = contend.ask_here("--set", "max_rounds=1")
    said = " ".join(ended.out.split())
    assert "Objections could not be parsed" in said
    assert "! Skeptic: verdict not readable (could not parse the verdict of Skeptic" in said


def test_closing_the_output_pipe_pauses_the_debate(contend: Command) -> None:
    with contend.start(*ASK) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        code = process.wait(200)
    assert code == 3
    assert "contend resume" in err
    assert "Traceback" not in err
