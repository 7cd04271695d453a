"""The state that the page builds from events, tested in Node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

WEB = Path(__file__).parents[3] / "service" / "web"
NODE = shutil.which("node")
RUN = """
const { createState, applyEvent, cautionsOf } = await import(process.argv[1]);
const state = createState("x");
for (const event of JSON.parse(process.argv[2])) applyEvent(state, event);
const turns = state.turns.map(({ text, state, patches }) => ({ text, state, patches }));
const { points, answer, seats, stop, status } = state;
const cautions = cautionsOf(state);
console.log(JSON.stringify({ turns, points, answer, seats, stop, status, cautions }));
"""


@pytest.fixture(autouse=True)
def needs_node() -> None:
    if NODE is None:
        pytest.skip("needs Node")


def state_after(tmp_path: Path, *events: dict[str, Any]) -> dict[str, Any]:
    module = tmp_path / "state.mjs"  # Node takes .js for CommonJS
    module.write_text((WEB / "debate-state.js").read_text("utf-8"), "utf-8")
    numbered = [{"seq": seq, "ts": "", **event} for seq, event in enumerate(events, 1)]
    arguments = ["--input-type=module", "-e", RUN, module.as_uri(), json.dumps(numbered)]
    done = subprocess.run([str(NODE), *arguments], capture_output=True, text=True, check=True)
    built: dict[str, Any] = json.loads(done.stdout)
    return built


def event(name: str, content: str = "", number: int | None = 1, **about: Any) -> dict[str, Any]:
    return {"event": name, "round": number, "content": content, "metadata": about}


SKEPTIC: dict[str, Any] = {"seat": "skeptic", "role": "skeptic", "phase": "critique"}
START = event(
    "debate_start",
    "Why?",
    None,
    protocol="adversarial",
    seats=[{"id": "skeptic", "name": "Skeptic"}],
)


def chunk(text: str, **about: Any) -> dict[str, Any]:
    return event("skeptic_chunk", text, **SKEPTIC, **about)


def critique(number: int, status: str) -> dict[str, Any]:
    point = {"id": "S1", "severity": "critical", "status": status, "text": "No cost."}
    read = {"kind": "critique", "score": 5, "points": [point]}
    about = {**SKEPTIC, "turn": f"r{number}", "status": "ok", "assessment": read}
    return event("seat_complete", "Said.", number, **about)


def test_a_turn_streams_and_ends(tmp_path: Path) -> None:
    writing = state_after(
        tmp_path, START, event("round_start"), chunk(""), chunk("Bad", html="<p>Bad</p>", block=0)
    )
    assert writing["turns"][0] | {"patches": 1} == {"text": "Bad", "state": "writing", "patches": 1}
    assert writing["seats"][0]["state"] == "writing"
    ended = state_after(
        tmp_path, START, event("round_start"), chunk(""), chunk("Bad"), critique(1, "open")
    )
    assert ended["turns"] == [{"text": "Said.", "state": "done", "patches": []}]


def test_only_the_newest_change_of_a_block_is_kept(tmp_path: Path) -> None:
    parts = [
        chunk("a", html="a", block=0),
        chunk("b", html="b", block=1),
        chunk("c", html="c", block=1),
    ]
    state = state_after(tmp_path, START, chunk(""), *parts)
    assert state["turns"][0]["patches"] == [{"block": 0, "html": "a"}, {"block": 1, "html": "c"}]


def test_a_restart_discards_the_streamed_text(tmp_path: Path) -> None:
    restart = event("degraded", "lost", what="retried", seat="skeptic", restart=True)
    state = state_after(tmp_path, START, chunk(""), chunk("Half", html="Half", block=0), restart)
    assert state["turns"] == [{"text": "", "state": "thinking", "patches": []}]


def test_a_point_records_the_turn_that_resolved_it(tmp_path: Path) -> None:
    state = state_after(tmp_path, START, critique(1, "open"), critique(2, "resolved"))
    (point,) = state["points"]
    assert (point["status"], point["raisedIn"], point["settledIn"]) == ("resolved", "t0", "t1")


def test_a_point_keeps_its_text_reviews_and_replies(tmp_path: Path) -> None:
    noted = critique(2, "partial")
    noted["metadata"]["assessment"]["points"][0] |= {"note": "Only half of it."}
    state = state_after(tmp_path, START, critique(1, "open"), noted)
    (point,) = state["points"]
    assert (point["text"], point["status"]) == ("No cost.", "partial")
    assert [(each["round"], each["note"]) for each in point["reviews"]] == [(2, "Only half of it.")]
    assert state["cautions"] == ["1 critical objection is still open: S1."]
    reply = {"round": 2, "seat": "proposer", "text": "Here it is."}
    tracked = {**point, "status": "resolved", "replies": [reply]}
    told = state_after(
        tmp_path, START, critique(1, "open"), event("round_complete", number=2, points=[tracked])
    )
    assert told["points"][0]["replies"] == [reply]
    assert told["cautions"] == []


def test_warns_about_missing_turns_and_a_judge_that_debates(tmp_path: Path) -> None:
    seats = [
        {"id": "ann", "name": "Ann", "role": "debater", "model": "x"},
        {"id": "judge", "name": "Judge", "role": "judge", "model": "x"},
    ]
    start = event("debate_start", "Why?", None, protocol="forum", seats=seats)
    out = event("degraded", "timeout", 2, what="sat_out", seat="ann")
    assert state_after(tmp_path, start, out)["cautions"] == [
        "Turns are missing or were replaced: Ann (round 2).",
        "The judge uses the same model as Ann, so treat its judgment with caution.",
    ]


def test_ignores_a_repeated_event(tmp_path: Path) -> None:
    again = critique(1, "open") | {"seq": 2}
    state = state_after(tmp_path, START, critique(1, "open"), again)
    assert len(state["turns"]) == 1


def test_handles_a_pause_with_a_question_and_the_end(tmp_path: Path) -> None:
    asked = state_after(tmp_path, START, event("paused", "waiting", ask={"round": 1}))
    assert asked["status"] == "paused"
    stop = event("judge_decision", "ready", decision="stop", reason="skeptic_ready")
    done = state_after(
        tmp_path, START, stop, event("final_complete", "Yes."), event("complete", "Yes.")
    )
    assert (done["status"], done["stop"]["reason"], done["answer"]["text"]) == (
        "done",
        "skeptic_ready",
        "Yes.",
    )
