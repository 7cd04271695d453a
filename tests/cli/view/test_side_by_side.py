"""Layout and content of turns shown side by side."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, split_text
from rich.text import Text

from contend.cli.view.seats import SeatTable
from contend.cli.view.side_by_side import LEAST_WIDTH, Columns, column_width, join_columns, per_row
from contend.cli.view.turns import ShownTurn
from contend.graph.values import Seat
from tests.cli.screen import Clock, pieces

TERMINALS = (40, 80, 120, 200)
CODE = "```python\ndef answer(question):    # longer than any lane that there is room for here\n```"
CHINESE = "四人のチームには、サービスを分ける余裕はありません。まず境界を明確にすべきです。"
ADDRESS = "https://example.org/" + "a" * 150
LONG = (
    f"# Title\n\n1. An item that goes on for a while.\n\n{CODE}\n\n{CHINESE} 🧱\n{ADDRESS}\n\nEnd."
)


def speech(seat: str, text: str, status: str = "ok") -> ShownTurn:
    return ShownTurn(seat, f"scripted:{seat}", "propose", text, status, 5, 1200)


def lanes_of(*names: str, clock: Clock | None = None, is_raw: bool = False) -> Columns:
    seats = [Seat(id=n.lower(), name=n, role="debater", model=f"scripted:{n}") for n in names]
    lanes = Columns(SeatTable(seats), clock or Clock(), is_raw=is_raw)
    lanes.add(seat.id for seat in seats)
    return lanes


def shown(lines: Sequence[Text]) -> str:
    return "\n".join(line.plain for line in lines)


def eight(text: str) -> Columns:
    lanes = lanes_of(*"ABCDEFGH")
    for lane in lanes.in_order():
        lane.feed(text, "scripted:model")
    return lanes


@pytest.mark.parametrize(
    ("count", "columns"),
    [
        # By terminal: 40, 80, 120 and 200 cells.
        (2, (1, 2, 2, 2)),
        (3, (1, 1, 3, 3)),
        (4, (1, 1, 2, 4)),
        (5, (1, 1, 3, 5)),
        (6, (1, 1, 3, 3)),
        (8, (1, 1, 3, 4)),
    ],
)
def test_number_of_columns_depends_on_the_terminal_width(
    count: int, columns: tuple[int, ...]
) -> None:
    assert tuple(per_row(count, width) for width in TERMINALS) == columns


@given(st.integers(1, 8), st.integers(20, 400))
def test_columns_fit_the_width_and_stay_readable(count: int, width: int) -> None:
    columns = per_row(count, width)
    each = column_width(columns, width)
    assert 1 <= columns <= count
    assert columns * each + 3 * (columns - 1) <= width
    assert columns == 1 or LEAST_WIDTH <= each <= 100


def test_streaming_turns_are_shown_side_by_side() -> None:
    clock = Clock()
    lanes = lanes_of("Ann", "Ben", "Cyd", clock=clock)
    lanes["ann"].feed("First words\n\n- an item of a list that is longer than a lane\n", "openai:m")
    lanes["cyd"].feed("Cyd is", "scripted:Cyd")
    lanes["cyd"].finish(speech("cyd", "Cyd is done."))
    clock.now = 61.0
    assert shown(lanes.frame(114, 20)) == (
        "\n"
        "Ann · openai:m                       │ Ben · scripted:Ben                   │"
        " Cyd · scripted:cyd\n"
        "⠋ writing · 1 min 1 s                │ · waiting · 1 min 1 s                │"
        " ✓ done · 1.2 s · 5 tokens\n"
        "First words                          │                                      │"
        " Cyd is done.\n"
        "\n"
        " • an item of a list that is longer\n"
        "   than a lane"
    )


def test_streaming_turns_are_stacked_on_a_narrow_terminal() -> None:
    lanes = lanes_of("Ann", "Ben")
    lanes["ann"].feed("Words of Ann that do not fit into one line here, ", "openai:a-long-model")
    lanes["ben"].report_problem("failed", restart=True)
    assert shown(lanes.frame(40, 20)) == (
        "\n"
        "Ann · openai:a-long-mo…  ⠋ writing · 0 s\n"
        "  Words of Ann that do not fit into one\n"
        "  line here,\n"
        "\n"
        "Ben · scripted:Ben  ✗ failed"
    )


@pytest.mark.parametrize(
    ("what", "restart", "state", "is_settled"),
    [
        ("retried", True, "↻ trying again · 0 s", False),
        ("fell_back", True, "↻ trying again · 0 s", False),
        ("failed", True, "✗ failed", False),
        ("sat_out", False, "– skipped this round", True),
        ("not_asked", False, "✗ failed", True),
        ("history_shortened", False, "⠋ writing · 0 s", False),
    ],
)
def test_problem_of_a_seat_is_shown_in_its_column(
    what: str, restart: bool, state: str, is_settled: bool
) -> None:
    lanes = lanes_of("Ann")
    lanes["ann"].feed("Void. ", "scripted:Ann")
    lanes["ann"].report_problem(what, restart=restart)
    void = restart or is_settled
    assert shown(lanes.frame(60, 20)) == f"\nAnn · scripted:Ann  {state}" + "\n  Void." * (not void)
    assert lanes.is_settled is is_settled


def test_kept_answer_is_labelled() -> None:
    lanes = lanes_of("Ann", "Ben")
    lanes["ann"].report_problem("failed", restart=True)
    assert not lanes.is_settled
    lanes["ann"].finish(speech("ann", "As before.", "kept_previous"))
    lanes["ben"].finish(speech("ben", "New."))
    assert lanes.is_settled
    assert "↩ kept previous answer" in shown(lanes.frame(90, 20))
    assert shown(lanes.columns(90)) == (
        "\n"
        "Ann · scripted:ann                          │ Ben · scripted:ben\n"
        "an earlier answer, kept because the call    │ New.\n"
        "failed                                      │ 5 tokens · 1.2 s"
    )


def test_unfinished_turn_keeps_its_text() -> None:
    lanes = lanes_of("Ann", "Ben", "Cyd")
    lanes["ann"].feed("Half a", "scripted:Ann")
    lanes["ben"].report_problem("sat_out", restart=False)
    lanes["cyd"].finish(speech("cyd", "All."))
    assert [line.split("│") for line in shown(lanes.columns(114)).splitlines()[2:]] == [
        ["Half a".ljust(37), " skipped this round".ljust(38), " All."],
        ["not finished".ljust(37), " ".ljust(38), " 5 tokens · 1.2 s"],
    ]


def test_columns_follow_the_order_of_the_seats() -> None:
    lanes = Columns(SeatTable([Seat(id=i, name=i, role="", model="") for i in "abc"]), Clock())
    lanes.add("c")
    lanes.add("ba")
    assert [lane.seat for lane in lanes.in_order()] == ["a", "b", "c"]


@pytest.mark.parametrize("width", TERMINALS)
@pytest.mark.parametrize("height", [5, 10, 24, 50])
def test_eight_columns_fit_every_terminal(width: int, height: int) -> None:
    lines = eight(LONG * 3).frame(width, height)
    assert len(lines) <= height
    assert max(line.cell_len for line in lines) <= width
    assert all(line.plain == line.plain.rstrip() for line in lines)
    rows = 8 // per_row(8, width)
    if height >= 4 * rows:
        assert all(f"{name} · scripted:model" in shown(lines) for name in "ABCDEFGH")


def test_live_columns_show_the_last_lines() -> None:
    lanes = lanes_of("Ann")
    lanes["ann"].feed("".join(f"Line {n}\n" for n in range(100)), "scripted:Ann")
    assert shown(lanes.frame(60, 6)).splitlines()[2:] == [
        "  Line 96",
        "  Line 97",
        "  Line 98",
        "  Line 99",
    ]


@given(st.lists(st.integers(1, len(LONG)), max_size=8), st.lists(st.sampled_from(TERMINALS)))
def test_streamed_text_looks_the_same_for_any_chunks_and_resizes(
    cuts: list[int], widths: list[int]
) -> None:
    once, bit_by_bit = lanes_of("Ann", "Ben"), lanes_of("Ann", "Ben")
    once["ann"].feed(LONG, "scripted:Ann")
    for place, piece in enumerate(pieces(LONG, cuts)):
        bit_by_bit["ann"].feed(piece, "scripted:Ann")
        if place < len(widths):
            bit_by_bit.frame(widths[place], 30)
    assert shown(bit_by_bit.frame(90, 30)) == shown(once.frame(90, 30))


TEXTS = st.text(st.sampled_from("ab 🧱界é\n\t-#`|1.語é"), max_size=120).filter(
    lambda text: "```" not in text  # what follows names a language, which is not shown
)


@given(st.lists(TEXTS, min_size=2, max_size=8), st.integers(75, 220), st.booleans())
def test_no_word_is_lost_and_no_line_too_wide(texts: list[str], width: int, is_raw: bool) -> None:
    lanes = lanes_of(*"ABCDEFGH"[: len(texts)], is_raw=is_raw)
    for lane, text in zip(lanes.in_order(), texts, strict=True):
        lane.finish(speech(lane.seat, text))
    lines = lanes.columns(width)
    columns = per_row(len(texts), width)
    assert bool(lines) == (columns > 1)
    if not lines:
        return
    assert max(cell_len(line.plain) for line in lines) <= width
    for lane, text in zip(lanes.in_order(), texts, strict=True):
        said = "".join(line.plain for line in lane.column(column_width(columns, width))[1:-1])
        if is_raw:
            assert "".join(said.split()) == "".join(text.split())
        else:
            assert [sign for sign in said if sign in "ab語"] == [s for s in text if s in "ab語"]


CELLS = TEXTS.map(lambda text: " ".join(text.split())[:18])


@given(st.lists(st.lists(CELLS, max_size=5), max_size=5))
def test_every_cell_starts_at_its_column(columns: list[list[str]]) -> None:
    width = 40
    lines = join_columns([[Text(cell) for cell in column] for column in columns], width)
    assert len(lines) == max(map(len, columns), default=0)
    for place, column in enumerate(columns):
        for line, cell in zip(lines, column, strict=False):
            _, from_here = split_text(line.plain + " " * 250, place * (width + 3))
            assert from_here.startswith(cell)


def test_terminal_control_characters_are_removed() -> None:
    lanes = lanes_of("Ann", "Ben")
    hostile = "a\x1b[2Jb\x07\u202ec\r\n"
    lanes["ann"].feed(hostile, "m\x1b[31m")
    lanes["ben"].finish(speech("ben", hostile))
    for lines in (lanes.frame(90, 20), lanes.columns(90)):
        assert "a[2Jbc" in shown(lines)
        assert not set("\x1b\x07\u202e\r") & set(shown(lines))


def test_a_seat_keeps_its_colour() -> None:
    lanes = lanes_of("Ann", "Ben")
    live, left = lanes.frame(90, 20)[1], lanes.columns(90)[1]
    for line in (live, left):
        assert [str(s.style) for s in line.spans if "title" in str(s.style)] == [
            "seat0.title",
            "seat1.title",
        ]
