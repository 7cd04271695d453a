"""Rendering of whole debates, from the events of the real graphs."""

import os
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from contend.cli.view.turns import TITLED_PHASES
from contend.debates.events import Event
from contend.graph.events import NodeEvent
from contend.graph.settings import DebateSettings
from contend.graph.state import Turn
from tests.cli.screen import DEBATE, Screen, Show
from tests.cli.support import QUESTION, Command, debaters
from tests.support.floor import floor_cast, moderated_settings, ruled, with_block
from tests.support.model_server import ModelServer, Reply
from tests.support.scripted import (
    Cast,
    Line,
    Sent,
    concedes,
    forum_cast,
    forum_settings,
    full_cast,
    play,
    refine_settings,
    refining_cast,
    scripted_settings,
)

Table = tuple[Cast, DebateSettings]


def adversarial() -> Table:
    return full_cast(), scripted_settings(min_rounds=1, max_rounds=2)


def refine() -> Table:
    return refining_cast(), refine_settings(max_debate_rounds=1)


def judged() -> Table:
    return forum_cast(), forum_settings(max_rounds=3)


def conceding() -> Table:
    cast = forum_cast(
        ben={"conviction": concedes("Ann", quote="Ann argues in round 2.")},
        cyd={"conviction": concedes("Ann", argument="")},
    )
    return cast, forum_settings(max_rounds=4, judge_mode="self_convergence")


def displayed() -> Table:
    return forum_cast(), forum_settings(max_rounds=2, judge_mode="display_only")


def moderated() -> Table:
    struck = ruled("personal_attack", "No insults, please.")

    def moderator(sent: Sent) -> str:
        return (
            struck if "review\nThe last statement above: Ann, argument." in sent.user else ruled()
        )(sent)

    checker: dict[str, Line] = {
        "claims": with_block("Listed.", claims=["It is so."]),
        "check": with_block("Checked.", verdict="contradicted", source="", why="It is not."),
    }
    cast = floor_cast(moderator={"request": moderator}, checker=checker)
    return cast, moderated_settings(round_count=1, fact_check=True)


TABLES = [adversarial, refine, judged, conceding, displayed, moderated]
HIDDEN = ("score", "conviction_check", "judge_continue", "request")


def in_envelope(said: NodeEvent) -> Event:
    return {"type": "debate_event", "v": 1, "debate_id": DEBATE, "seq": 1, "ts": "", **said}


def title(turn: Turn, settings: DebateSettings) -> str:
    """Return the expected title of a turn without spaces: name, kind of turn and model."""
    name = next(seat.name for seat in settings.build_seats() if seat.id == turn.seat)
    what = f":{TITLED_PHASES[turn.phase]}" if turn.phase in TITLED_PHASES else ""
    return "".join(f"{name}{what}·{turn.model}".split())


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("table", TABLES)
async def test_every_speech_is_shown_once(
    table: Callable[[], Table], width: int, terminal: bool
) -> None:
    cast, settings = table()
    played = await play(cast, settings=settings)
    show = Show(width, terminal=terminal, settings=settings)
    show(*(in_envelope(each) for each in played.events))
    said = "".join(show.left.split())
    heard = [turn for turn in played.turns if turn.phase not in HIDDEN]
    # On a terminal the signs of Markdown are rendered.
    words = re.sub(r"\W", "", said)
    assert all(re.sub(r"\W", "", turn.text) in words for turn in heard)
    titles = [title(turn, settings) for turn in heard if turn.model]
    assert {each: said.count(each) for each in titles} == Counter(titles)
    assert "waiting" not in said
    assert "thinking" not in said
    assert ("\x1b" in show.out.getvalue()) == terminal


@pytest.mark.parametrize("width", [40, 80, 200])
async def test_a_request_of_the_moderator_takes_one_line(width: int) -> None:
    settings = moderated_settings(round_count=1)
    words = "Ann, you have the floor.\n\n" + "Please speak to the point. " * 9
    cast = floor_cast(moderator={"request": ruled(text=words)})
    played = await play(cast, settings=settings)
    show = Show(width, settings=settings)(*(in_envelope(each) for each in played.events))
    (first, *_) = lines = [each for each in show.left.splitlines() if "have the floor" in each]
    assert first.startswith("Moderator: Ann, you")
    assert len(lines) == len([turn for turn in played.turns if turn.phase == "request"])
    assert all(len(each) <= width and each.endswith("…") for each in lines)
    assert show.left.count("Please speak") == len(lines) * first.count("Please speak")


async def test_forum_with_concessions_is_shown_in_order() -> None:
    cast, settings = conceding()
    played = await play(cast, settings=settings)
    show = Show(80, settings=settings)(*(in_envelope(each) for each in played.events))
    shown = show.left
    expected = [
        "─ Round 1 of at most 4 ─",
        "─ Round 2 of at most 4 ─",
        "Cyd argues in round 2.",
        "  Ann does not concede: ",
        "  Ben concedes to Ann: It does.",
        "  Cyd concedes to Ann: It does.",
        "  Cyd does not concede: ",
        "  ! Cyd: a concession taken back (asked for its reasons, it did not repeat that",
        "  ✗ Ben is out: conceded to Ann\n    The costs decide.",
        "─ Round 3 of at most 4 ─",
        "  Still in: Ann and Cyd\n  ✗ Ben conceded to Ann in round 2: The costs decide.",
        "─ Answer ─",
        "Ann · scripted:ann\n  The answer of ann.",
    ]
    places = [shown.find(text) for text in expected]
    assert -1 not in places, expected[places.index(-1)]
    assert places == sorted(places)


WAITED_FOR = [
    (adversarial, ["Proposer", "Skeptic"] * 2 + ["Synthesizer", "Judge"]),
    (refine, ["Judge", "Judge", "Judge"]),
    (judged, ["Ann", "Ben", "Cyd", "Judge", "Ann", "Ben", "Cyd", "Judge", "Judge", "Judge"]),
]


@pytest.mark.parametrize(("table", "names"), WAITED_FOR)
async def test_waiting_line_names_the_next_speaker(
    table: Callable[[], Table], names: list[str]
) -> None:
    cast, settings = table()
    played = await play(cast, settings=settings)
    show = Show(120, settings=settings)
    waited: list[str] = []
    for said in played.events:
        show(in_envelope(said))
        if said["event"].endswith("_chunk") and not said["content"]:
            waited.append(show.now.splitlines()[-1])
    alone = [line.split() for line in waited if " is " in line]
    assert [line[1] for line in alone] == names
    assert len(waited) - len(alone) == sum("│" in line for line in waited)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("width", "columns"), [(80, False), (120, True)])
def test_debate_is_rendered_on_a_real_terminal(
    contend: Command, models: ModelServer, width: int, columns: bool
) -> None:
    models.script = debaters(_slowly)
    seats = [word for name in ("Ann", "Ben", "Cyd") for word in ("--seat", f"{name}=openai:m")]
    rest = ["-s", "judge_model=openai:m", "-s", "max_debate_rounds=1"]
    command = [sys.executable, "-m", "contend", "ask", QUESTION, "-p", "refine", *seats, *rest]
    printed = _on_terminal(command, contend.env | {"TERM": "xterm-256color"}, width)
    screen = Screen(width)
    screen.feed(printed)
    assert "writing · " in printed
    assert ("│" in screen.text) == columns
    assert "writing" not in screen.text
    for number in (0, 1):
        assert screen.text.count(f"This is answer {number} of m.") == 3
    assert screen.text.splitlines()[-1].startswith("  contend rate ")
    assert printed.endswith("\x1b[?25h") or "\x1b[?25l" not in printed.rpartition("\x1b[?25h")[2]


def _slowly(role: str, number: int, reply: Reply) -> Reply:
    return replace(reply, chunk_delay=0.1) if role == "debater" else reply


def _on_terminal(command: list[str], env: dict[str, str], width: int) -> str:
    """Return everything a command writes to a terminal of this width."""
    import fcntl
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    with subprocess.Popen(
        command, env=env, cwd=env["HOME"], stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        read = b""
        while True:
            try:
                read += (piece := os.read(ours, 65536))
            except OSError:  # Linux says so when nobody holds the other end
                break
            if not piece:
                break
    os.close(ours)
    assert running.returncode == 0, read
    return read.decode()
