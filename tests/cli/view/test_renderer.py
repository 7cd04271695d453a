"""Rendering of events on terminals of several widths and in append-only output."""

from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from contend.debates.events import Event
from contend.graph.readings import Conviction, Decision
from contend.graph.settings import ForecastSettings
from contend.graph.state import Elimination
from tests.cli.screen import Show, asked, chunk, complete, event, opened, pieces, troubled
from tests.support.floor import moderated_settings
from tests.support.forecasting import forecast_settings
from tests.support.scripted import forum_settings, refine_settings, scripted_settings
from tests.support.states import turn

ANN = "Keep it together until somebody has counted what the parts would cost."
BEN = "Split off the billing, which changes every week, and leave the rest as it is."
RULE_80 = "─────────────────────────────── Initial answers ────────────────────────────────"


def two(width: int, **more: Any) -> Show:
    return Show(width, settings=refine_settings(("Ann", "Ben")), **more)


def at_once(number: int = 0) -> list[Event]:
    start = opened(number, "ann", "ben", at_once=True)
    return [start, *asked("ann", "ben", number=number)]


class TestParallelTurns:
    def test_parallel_turns_are_shown_side_by_side(self) -> None:
        show = two(80)(*at_once(), chunk("ben", "Split off the", 0))
        show.clock.now = 3.0
        assert show.now == (
            f"{RULE_80}\n"
            "\n"
            "Ann · scripted:ann                     │ Ben · scripted:ben\n"
            "· waiting · 3 s                        │ ⠋ writing · 3 s\n"
            "                                       │ Split off the"
        )
        show(complete("ben", BEN, 0), chunk("ann", ANN[:30], 0))
        assert "✓ done · 1.2 s · 5 tokens" in show.now
        show(complete("ann", ANN, 0))
        assert show.left == (
            f"{RULE_80}\n"
            "\n"
            "Ann · scripted:ann                     │ Ben · scripted:ben\n"
            "Keep it together until somebody has    │ Split off the billing, which changes\n"
            "counted what the parts would cost.     │ every week, and leave the rest as it\n"
            "5 tokens · 1.2 s                       │ is.\n"
            "                                       │ 5 tokens · 1.2 s"
        )

    def test_scoring_during_arguments_does_not_change_the_display(self) -> None:
        """The judge argues and scores other arguments at the same time."""
        show = Show(120, settings=forecast_settings(roles=("optimist", "pessimist", "judge")))
        judge = {"seat": "judge", "model": "scripted:judge", "role": "judge"}

        def argues(piece: str) -> Event:
            return event("seat_chunk", 1, piece, **judge, phase="propose")

        def scores(piece: str) -> Event:
            return event("judge_chunk", 1, piece, **judge, phase="score")

        others = ("optimist", "pessimist")
        show(opened(1, *others, "judge", at_once=True), *asked(*others), argues(""))
        show(argues("On the whole "), complete("optimist", "It opens.\n"))
        before = show.now
        show(scores(""), scores("Sound."), complete("judge", "Sound.", phase="score"))
        assert show.now == before
        show(troubled("judge", "retried", "500", restart=True, phase="score"))
        assert "On the whole" in show.now
        show(argues("it does."), complete("judge", "On the whole it does."))
        show(complete("pessimist", "It does not.\n"))
        assert "On the whole it does." in show.left
        assert "not finished" not in show.left
        assert "Sound." not in show.left

    def test_parallel_turns_are_stacked_on_a_narrow_terminal(self) -> None:
        show = two(60)(*at_once(), chunk("ben", "Split off the", 0))
        assert show.now.splitlines()[1:] == [
            "",
            "Ann · scripted:ann  · waiting · 0 s",
            "",
            "Ben · scripted:ben  ⠋ writing · 0 s",
            "  Split off the",
        ]
        show(complete("ben", BEN, 0), complete("ann", ANN, 0))
        assert show.left.splitlines()[1:] == [
            "",
            "Ann · scripted:ann",
            "  Keep it together until somebody has counted what the parts",
            "  would cost.",
            "  5 tokens · 1.2 s",
            "",
            "Ben · scripted:ben",
            "  Split off the billing, which changes every week, and leave",
            "  the rest as it is.",
            "  5 tokens · 1.2 s",
        ]

    def test_output_that_cannot_be_redrawn_is_only_appended(self) -> None:
        show = two(120, terminal=False)
        printed = len(show.out.getvalue())
        show(*at_once(), chunk("ann", "Keep", 0), chunk("ben", "Split", 0))
        assert "Keep" not in show.out.getvalue()
        show(complete("ben", BEN, 0))
        assert show.out.getvalue().endswith(f"\nBen · scripted:ben\n  {BEN}\n  5 tokens · 1.2 s\n")
        show(complete("ann", ANN, 0), event("round_complete", 0))
        shown = show.out.getvalue()[printed:]
        assert shown.endswith(f"\nAnn · scripted:ann\n  {ANN}\n  5 tokens · 1.2 s\n")
        assert "│" not in shown
        assert "\x1b" not in shown

    def test_failed_seat_shows_its_previous_answer(self) -> None:
        show = two(83)(*at_once(1), chunk("ben", "A draft", 1))
        show(troubled("ben", "retried", "500.", restart=True))
        assert "! Ben: trying again (500). The turn starts over." in show.now
        assert "↻ trying again · 0 s" in show.now
        show(troubled("ben", "failed", "500", restart=True))
        assert "✗ failed" in show.now
        show(complete("ann", ANN))
        assert "✓ done" in show.now
        show(troubled("ben", "kept_previous", "500"), complete("ben", BEN, status="kept_previous"))
        assert show.left.endswith(
            "  ! Ben: trying again (500). The turn starts over.\n"
            "  ! Ben: previous answer kept (500).\n"
            "\n"
            "Ann · scripted:ann                       │ Ben · scripted:ben\n"
            "Keep it together until somebody has      │ an earlier answer, kept because the call\n"
            "counted what the parts would cost.       │ failed\n"
            "5 tokens · 1.2 s"
        )

    def test_seat_that_skips_the_round_gets_no_column(self) -> None:
        show = two(60)(*at_once(), complete("ann", ANN, 0))
        show(
            troubled("ben", "failed", "500", 0, restart=True), troubled("ben", "sat_out", "500", 0)
        )
        assert show.left.count("Ben") == 1
        assert show.left.endswith("would cost.\n  5 tokens · 1.2 s")

    def test_failure_that_the_error_does_not_mention_is_shown(self) -> None:
        show = two(60)(*at_once())
        for seat in ("ann", "ben"):
            show(troubled(seat, "failed", "500", 0, restart=True))
        show(event("error", 0, "Ann (scripted:ann): 500"))
        assert show.left.endswith("  ! Ben: gave up (500).")
        assert "! Ann" not in show.left

    def test_judge_that_speaks_first_is_shown_alone(self) -> None:
        show = two(80)(opened(1, "ann", "ben", at_once=True, first=["judge"]))
        assert show.now.endswith("⠋ Judge is thinking · 0 s")
        show(*asked("judge", phase="critique"), chunk("judge", "Be con", phase="critique"))
        assert show.now.endswith("Judge · scripted:judge\n  Be con")
        show(chunk("judge", "crete.", phase="critique"))
        show(complete("judge", "Be concrete.", phase="critique"))
        assert show.now.endswith("  Be concrete.\n  5 tokens · 1.2 s")
        show(*asked("ann", "ben"))
        assert "│ · waiting · 0 s" in show.now

    def test_columns_are_redrawn_below_a_message(self) -> None:
        show = two(80)(*at_once(), chunk("ann", "Keep it ", 0))
        show.renderer.sections.break_line()
        show.console.print("Finishing the current turn.")
        show.renderer.sections.resume_waiting()
        assert show.now.splitlines()[1:] == [
            "Finishing the current turn.",
            "",
            "Ann · scripted:ann                     │ Ben · scripted:ben",
            "⠋ writing · 0 s                        │ · waiting · 0 s",
            "Keep it",
        ]

    def test_pause_keeps_unfinished_turns(self) -> None:
        show = two(80)(*at_once(), complete("ben", "Split.", 0), chunk("ann", "Keep it to", 0))
        show(event("paused", 0))
        assert show.left.endswith(
            "Ann · scripted:ann                     │ Ben · scripted:ben\n"
            "Keep it to                             │ Split.\n"
            "not finished                           │ 5 tokens · 1.2 s"
        )
        narrow = two(50)(*at_once(), complete("ben", "Split.", 0), chunk("ann", "Keep it to", 0))
        narrow(event("paused", 0))
        assert "Ann · scripted:ann\n  Keep it to\n  not finished\n\nBen" in narrow.left

    @pytest.mark.parametrize("width", [40, 60, 79, 120, 200])
    def test_resize_redraws_the_columns(self, width: int) -> None:
        show, fresh = two(100), two(width)
        show(*at_once(), chunk("ann", ANN * 3, 0), chunk("ben", BEN, 0))
        assert "│" in show.now
        show.resize(width)
        fresh(*at_once(), chunk("ann", ANN * 3, 0), chunk("ben", BEN, 0))
        below = [each.now.partition("Ann ·")[2] for each in (show, fresh)]
        assert below[0] == below[1]
        for each in (show, fresh):
            each(complete("ann", ANN, 0), complete("ben", BEN, 0))
        below = [each.left.partition("Ann ·")[2] for each in (show, fresh)]
        assert below[0] == below[1]
        assert show.left.count("Ann ·") == 1

    def test_resumed_debate_shows_earlier_turns_of_the_round(self) -> None:
        show = Show(120)(event("resumed", 1), *asked("ben", "cyd"), complete("ann", ANN))
        assert "\nAnn · scripted:ann\n  Keep it" in show.now
        assert "Ben · scripted:ben" in show.now
        show(complete("ben", BEN), complete("cyd", "So do I."))
        assert show.left.count("Cyd · ") == 1

    def test_chunks_before_the_seats_are_announced_get_columns(self) -> None:
        show = two(80)(event("round_start", 0), chunk("ben", "Split off", 0))
        assert "Ben · scripted:ben  ⠋ writing" in show.now
        show(chunk("ann", "Keep it", 0), complete("ben", BEN, 0), complete("ann", ANN, 0))
        assert "│ Split off the billing, which changes" in show.left


WORDS = st.text(st.sampled_from("abcde 界🧱-\n`|"), max_size=60)


@settings(max_examples=60)
@given(
    texts=st.lists(WORDS, min_size=2, max_size=8),
    cuts=st.lists(st.integers(1, 60), max_size=4),
    order=st.randoms(use_true_random=False),
    width=st.integers(40, 200),
    terminal=st.booleans(),
)
def test_parallel_turns_keep_all_text_and_fit_the_width(
    texts: list[str], cuts: list[int], order: Any, width: int, terminal: bool
) -> None:
    names = "Ann", "Ben", "Cyd", "Dan", "Eve", "Fay", "Gus", "Hal"
    seats = [name.lower() for name in names[: len(texts)]]
    show = Show(width, terminal=terminal, settings=refine_settings(names[: len(texts)]))
    show(opened(0, *seats, at_once=True), *asked(*seats, number=0))
    speaking = [
        [*(chunk(seat, piece, 0) for piece in pieces(text, cuts) if piece), complete(seat, text, 0)]
        for seat, text in zip(seats, texts, strict=True)
    ]
    order.shuffle(speaking)
    for together in zip_longest(*speaking):
        show(*(each for each in together if each))
    left = show.left
    assert all(cell_len(line) <= width for line in left.splitlines())
    assert [left.count(f"{name} · ") for name in names[: len(texts)]] == [1] * len(texts)
    said = sorted("".join(sign for sign in left if sign in "界🧱"))
    assert said == sorted("".join(sign for text in texts for sign in text if sign in "界🧱"))


class TestSequentialTurns:
    @pytest.mark.parametrize("terminal", [True, False])
    def test_sequential_turns_stream_token_by_token(self, terminal: bool) -> None:
        show = Show(80, terminal=terminal, settings=forum_settings())
        show(opened(2, "ann", "ben", "cyd", at_once=False, first=["ann"]))
        waited = "⠋ Ann is thinking · 0 s" if terminal else ""
        assert show.now.endswith(waited)
        show(*asked("ann", number=2), chunk("ann", "Keep it ", 2), chunk("ann", "together un", 2))
        # A terminal shows the unfinished word below; elsewhere it waits for its end.
        unfinished = " un" if terminal else ""
        assert show.now.endswith(f"Ann · scripted:ann\n  Keep it together{unfinished}")
        show(chunk("ann", "til then.", 2), complete("ann", "Keep it together until then.", 2))
        show(*asked("ben", number=2), chunk("ben", "No ", 2))
        assert show.now.endswith(
            "Ann · scripted:ann\n"
            "  Keep it together until then.\n"
            "  5 tokens · 1.2 s\n"
            "\n"
            "Ben · scripted:ben\n"
            "  No"
        )

    def test_resized_speech_continues_in_the_new_width(self) -> None:
        show = Show(80, settings=forum_settings())(opened(2, "ann", "ben", at_once=False))
        show(*asked("ann", number=2), chunk("ann", "One line.\n", 2))
        show.resize(40)
        show(chunk("ann", "Words that go on beyond forty cells of it.\n", 2))
        assert show.now.endswith("  Words that go on beyond forty cells of\n  it.")

    def test_seat_has_the_same_colour_in_columns_and_speeches(self) -> None:
        show = two(80)(*at_once())
        assert "\x1b[1;35mBen\x1b[0m" in (show.now and show.out.getvalue())
        show(complete("ann", ANN, 0), complete("ben", BEN, 0))
        printed = len(show.out.getvalue())
        show(opened(1, "ann", "ben", at_once=False), *asked("ben"), chunk("ben", "Ben says "))
        assert "\x1b[1;35mBen\x1b[0m" in show.out.getvalue()[printed:]

    @pytest.mark.parametrize(
        ("phase", "words"),
        [
            ("propose", "Proposer is thinking"),
            ("critique", "Skeptic is thinking"),
            ("synthesize", "Synthesizer is thinking"),
            ("score", "Judge is rating the answer"),
            ("judge_continue", "Judge is deciding whether to continue"),
        ],
    )
    def test_waiting_line_names_the_seat_that_was_asked(self, phase: str, words: str) -> None:
        seat = words.partition(" ")[0].lower()
        show = Show(80, settings=scripted_settings())(*asked(seat, phase=phase))
        show.clock.now = 7
        assert show.now.endswith(f"{words} · 7 s")
        show(chunk(seat, "Well ", phase=phase))
        heard = phase not in ("score", "judge_continue")
        assert ("Well" in show.now) == heard
        assert (words in show.now) != heard
        assert "thinking" not in show.left

    def test_waiting_line_says_that_a_forecast_judge_scores_arguments(self) -> None:
        show = Show(80, settings=ForecastSettings())(*asked("judge", phase="score"))
        assert "Judge is scoring the arguments" in show.now

    def test_retry_shows_the_waiting_line_again(self) -> None:
        show = Show(80, settings=scripted_settings())(*asked("proposer"), chunk("proposer", "So "))
        show(troubled("proposer", "retried", "500", restart=True))
        assert "The turn starts over.\n" in show.now
        assert show.now.endswith("Proposer is thinking · 0 s")

    @pytest.mark.parametrize("terminal", [True, False])
    def test_speech_is_shown_while_the_verdict_block_streams(self, terminal: bool) -> None:
        show = Show(80, terminal=terminal, settings=scripted_settings())
        show(*asked("skeptic", phase="critique"))
        words = chunk("skeptic", "The cost is **guessed**.", phase="critique")
        words["metadata"]["deciding"] = True
        show(words)
        waiting = "\n⠋ reading the Skeptic's verdict · 0 s" if terminal else ""
        said = "guessed." if terminal else "**guessed**."
        assert show.now.endswith(f"  The cost is {said}{waiting}")
        show(complete("skeptic", "The cost is **guessed**.", phase="critique"))
        assert show.left.count("The cost is") == 1
        assert show.left.endswith(f"  The cost is {said}\n  5 tokens · 1.2 s")

    def test_a_finished_block_stays_while_the_next_is_written(self) -> None:
        show = Show(80, settings=forum_settings())(opened(2, "ann", "ben", at_once=False))
        show(*asked("ann", number=2), chunk("ann", "## So\n\n- one\n- *two*\n\nAnd **th", 2))
        assert show.now.endswith("  So\n\n   • one\n   • two\n\n  And **th")
        assert show.left.endswith("   • two")

    def test_raw_mode_does_not_render_markdown(self) -> None:
        show = Show(80, settings=forum_settings(), is_raw=True)
        show(opened(2, "ann", "ben", at_once=False), *asked("ann", number=2))
        show(chunk("ann", "## So\n\n- *one*\n", 2))
        assert show.now.endswith("  ## So\n\n  - *one*")

    @pytest.mark.parametrize(
        ("seconds", "terminal", "rings"), [(61, True, True), (61, False, False), (59, True, False)]
    )
    def test_a_bell_rings_after_a_long_debate(
        self, seconds: float, terminal: bool, rings: bool
    ) -> None:
        show = Show(80, terminal=terminal, settings=forum_settings())
        show.clock.now += seconds
        show.renderer.ring_after(60)
        assert ("\a" in show.out.getvalue()) == rings

    def test_index_is_shown_without_model_and_usage(self) -> None:
        show = Show(80, settings=forum_settings(judge_mode="display_only"))
        usage = {"output_tokens": None}
        show(complete("index", "# Positions", phase="synthesize", model="", usage=usage))
        show(event("final_complete", 1, "# Positions", model="", status="ok"))
        assert show.left.splitlines()[1:] == ["", "Index", "  Positions"]
        assert "─ Answer ─" in show.left


CONVINCED = {
    "kind": "conviction",
    "convinced": True,
    "convinced_by": "ann",
    "argument": "Nobody is left to watch two services at night.",
    "quote": "nobody watches",
    "quote_found": True,
    "reasoning": "The nights settle it.",
    "read_from": "block",
}
FIRM = CONVINCED | {
    "convinced": False,
    "convinced_by": None,
    "reasoning": "Costs are not answered.",
}
LEFT = {key: CONVINCED[key] for key in ("convinced_by", "argument", "quote", "quote_found")}


def conviction(seat: str, reading: Any, number: int = 2) -> Event:
    text = "NOT CONVINCED" if reading is FIRM else "CONVINCED: Ann"
    return complete(seat, text, number, "conviction_check", assessment=reading)


def checked() -> list[Event]:
    """Return events in which Ben concedes to Ann in round 2 and round 3 starts without him."""
    seats = ("ann", "ben", "cyd")
    return [
        *asked(*seats, number=2, phase="conviction_check"),
        chunk("ben", "CONVINCED: ", 2, "conviction_check"),
        conviction("ann", FIRM),
        conviction("ben", CONVINCED),
        conviction("cyd", None),
        troubled("cyd", "unreadable", "it could not be read, so it stays", 2),
        event("model_eliminated", 2, "The nights settle it.", seat="ben", **LEFT),
        event("convergence_status", 2, eliminated=["ben"], remaining=["ann", "cyd"]),
        event("round_complete", 2, points=[]),
        event("judge_decision", 2, "continue", decision="continue", by_model=False),
        opened(3, "ann", "cyd", at_once=False, first=["ann"]),
    ]


@pytest.mark.parametrize("what", ["failed", "sat_out"])
def test_next_speaker_is_shown_alone_after_another_gave_up(what: str) -> None:
    show = Show(120, settings=forum_settings())
    show(opened(2, "ann", "ben", "cyd", at_once=False, first=["ann"]), *asked("ben", number=2))
    show(troubled("ben", what, "500", 2, restart=what == "failed", phase="propose"))
    show(*asked("cyd", number=2), chunk("cyd", "I hold it.", 2), complete("cyd", "I hold it.", 2))
    assert "not finished" not in show.left
    assert show.left.endswith("Cyd · scripted:cyd\n  I hold it.\n  5 tokens · 1.2 s")


class TestConcessions:
    STANDING = (
        "  Ann does not concede: Costs are not answered.\n"
        "  Ben concedes to Ann: The nights settle it.\n"
        "  Cyd could not be parsed, stays in\n"
        "  ! Cyd: verdict not readable (it could not be read, so it stays).\n"
        "  ✗ Ben is out: conceded to Ann\n"
        "    Nobody is left to watch two services at night.\n"
        "\n"
        "───────────────────────────── Round 3 of at most 5 ─────────────────────────────\n"
        "  Still in: Ann and Cyd\n"
        "  ✗ Ben conceded to Ann in round 2: Nobody is left to watch two services at nig…"
    )

    @pytest.mark.parametrize("terminal", [True, False])
    def test_concessions_are_shown_and_repeated_in_the_next_round(self, terminal: bool) -> None:
        show = Show(80, terminal=terminal, settings=forum_settings())
        show(opened(2, "ann", "ben", "cyd", at_once=False), *checked())
        assert show.left.endswith(self.STANDING)
        assert "CONVINCED" not in show.left

    def test_conviction_checks_are_shown_in_columns(self) -> None:
        show = Show(120, settings=forum_settings())(*checked()[:4])
        assert "│ ⠋ writing · 0 s" in show.now
        show(conviction("ann", FIRM))
        assert "│ CONVINCED:" in show.now

    def test_eliminated_seat_is_struck_through(self) -> None:
        show = Show(80, settings=forum_settings())(opened(2, "ann", "ben", at_once=False))
        show(*checked())
        assert show.out.getvalue().count("\x1b[9;35mBen\x1b[0m") == 2

    def test_second_question_about_a_concession_is_shown(self) -> None:
        show = Show(120, settings=forum_settings())(*checked()[:7])
        before = show.left
        show(*asked("ben", "cyd", number=2, phase="conviction_check"))
        assert "Ben · scripted:ben" in show.now
        show(conviction("cyd", FIRM), troubled("ben", "failed", "500", 2, restart=True))
        show(troubled("ben", "not_asked", "500; it stays", 2))
        assert show.left[len(before) :].splitlines()[1:] == [
            "  ! Ben: could not be asked whether it concedes (500; it stays).",
            "  Cyd does not concede: Costs are not answered.",
        ]

    def test_round_without_concessions_is_reported(self) -> None:
        show = Show(80, settings=forum_settings())(*asked("ann", number=2))
        show(event("convergence_status", 2, eliminated=[], remaining=["ann", "ben", "cyd"]))
        assert show.left.endswith("Nobody conceded; still in: Ann, Ben and Cyd.")

    def test_long_argument_takes_two_lines_and_a_missing_quote_is_reported(self) -> None:
        show = Show(60, settings=forum_settings())
        entry = LEFT | {"argument": "word " * 60, "quote_found": False}
        show(event("model_eliminated", 2, "Why.", seat="ben", **entry))
        head, *why = show.left.splitlines()
        assert head == "  ✗ Ben is out: conceded to Ann"
        assert len(why) == 2
        assert why[-1].endswith("… (the quote was not found)")

    @pytest.mark.parametrize(
        ("reading", "words"),
        [
            (CONVINCED, "Ben concedes to Ann: The nights settle it."),
            (CONVINCED | {"reasoning": ""}, "Ben concedes to Ann: Nobody is left to watch two"),
            (CONVINCED | {"convinced_by": None}, "Ben is convinced, but names no other seat"),
            (FIRM | {"reasoning": "", "argument": ""}, "Ben does not concede"),
        ],
    )
    def test_conviction_is_summarised_in_one_line(self, reading: Any, words: str) -> None:
        show = Show(80, terminal=False, settings=forum_settings())(conviction("ben", reading))
        assert f"\n  {words}" in show.left


class TestJudgeDecisions:
    def decided(self, decision: str, why: str, **more: Any) -> str:
        show = Show(80, settings=forum_settings())(opened(2, "ann", "ben", at_once=False))
        show(*asked("judge", number=2, phase="judge_continue"))
        show(chunk("judge", "CONTINUE because", 2, "judge_continue"))
        reading = {"kind": "decision", "decision": decision, "reasoning": why}
        show(complete("judge", "CONTINUE because", 2, "judge_continue", assessment=reading))
        show(event("judge_decision", 2, why, decision=decision, by_model=True, **more))
        return show.left

    def test_request_for_another_round_is_shown(self) -> None:
        assert self.decided("continue", "positions still move").endswith(
            "\n\nThe judge asked for another round: positions still move."
        )

    def test_stop_reason_is_shown_without_the_reply_text(self) -> None:
        why = "the judge stopped the debate: nothing new is said"
        told = self.decided("stop", why, reason="judge_stop")
        assert told.endswith(f"\n\nThe rounds ended: {why}.")
        assert "CONTINUE because" not in told

    def test_unreadable_decision_is_not_attributed_to_the_judge(self) -> None:
        assert "another round" not in self.decided("continue", "continue")

    def test_a_long_reason_is_shortened(self) -> None:
        told = self.decided("continue", "word " * 200)
        assert told.endswith("word…")
        assert len(told.splitlines()) < 12

    def test_verdict_has_its_own_section(self) -> None:
        show = Show(80, settings=forum_settings())(opened(2, "ann", "ben", at_once=False))
        show(*asked("judge", phase="verdict"), chunk("judge", "Follow Ann.\n", 2, "verdict"))
        show(complete("judge", "Follow Ann.", 2, "verdict"), event("synthesis_start", seat="judge"))
        show(*asked("judge", phase="synthesize"), chunk("judge", "Keep it.\n", phase="synthesize"))
        show(complete("judge", "Keep it.", phase="synthesize"))
        heads = [line.strip("─ ") for line in show.left.splitlines() if line.startswith("─")]
        assert heads == ["Round 2 of at most 5", "Verdict", "Answer"]
        assert show.left.count("Follow Ann.") == show.left.count("Keep it.") == 1


class TestModerated:
    def show(self, width: int = 60) -> Show:
        return Show(width, settings=moderated_settings(round_count=1))

    def test_closing_statements_have_their_own_section(self) -> None:
        show = self.show()(opened(1, "ann", "ben", at_once=False))
        show(complete("moderator", "In sum.", phase="summary"))
        show(event("judge_decision", 1, "all were argued", decision="stop"))
        show(complete("moderator", "Ann, close.", phase="request"))
        show(complete("ann", "I close.", phase="closing"))
        show(complete("moderator", "It ends.", phase="end"))
        assert show.left.count("─ Closing statements ─") == 1
        before, after = show.left.split("─ Closing statements ─")
        assert "The rounds ended: all were argued." in before
        assert "Ann, close." in after
        assert "Round" not in after

    def test_pause_names_the_next_phase(self) -> None:
        show = self.show(200)(event("paused", 1, ask={"stop": {"reason": "max_rounds"}}))
        assert "Paused before the closing statements." in show.left

    def test_ruling_without_usage_shows_no_tokens_or_time(self) -> None:
        usage = {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
        show = self.show()(opened(1, "ann", "ben", at_once=False))
        show(complete("moderator", "No insults.", phase="ruling", usage=usage, elapsed_ms=0))
        assert show.left.endswith("  No insults.")


class TestStoredDebate:
    """Output of `contend show`."""

    ENTRY = Elimination(seat="ben", round=2, reasoning="So.", **LEFT)

    def kept(self, *, thinking: bool = False) -> str:
        left = [self.ENTRY.model_dump()]
        show = Show(80, terminal=False, settings=forum_settings(), eliminations=left)
        said = {"role": "debater"}
        decision = Decision(decision="stop", reasoning="nothing new")
        for each in (
            turn("propose", 2, "Keep it.", seat="ann", **said),
            turn("remark", 2, "Mind the cost.", model=""),
            self.decided("ben", "conviction_check", Conviction(**CONVINCED)),
            self.decided("judge", "judge_continue", decision),
            self.decided("judge", "judge_continue", None),
            turn("propose", 3, "As I said.", seat="ann", **said),
            turn("synthesize", 3, "The answer.", seat="ann", **said),
        ):
            show.renderer.turn(each, thinking=thinking)
        show.renderer.eliminations()
        return show.out.getvalue()

    def decided(self, seat: str, phase: str, reading: Any) -> Any:
        values = {"phase": phase, "seat": seat, "role": seat, "assessment": reading}
        return turn("propose", 2, f"All that {seat} said.").model_copy(update=values)

    def test_stored_debate_shows_eliminations_as_they_happened(self) -> None:
        shown = self.kept()
        assert "  Ben    scripted:ben  ✗ conceded to Ann in round 2\n" in shown
        assert (
            "\n"
            "  Ben concedes to Ann: The nights settle it.\n"
            "\n"
            "The judge stopped the debate: nothing new.\n"
            "\n"
            "Could not parse the judge's decision.\n"
            "  ✗ Ben is out: conceded to Ann\n"
            "    Nobody is left to watch two services at night.\n"
            "\n"
            "───────────────────────────── Round 3 of at most 5 ─────────────────────────────\n"
            "  ✗ Ben conceded to Ann in round 2: Nobody is left to watch two services at nig…\n"
            "\n"
            "Ann · "
        ) in shown
        assert shown.count("is out") == shown.count("Ben conceded to Ann in round 2:") == 1
        assert "User\n  Mind the cost.\n\n" in shown
        assert "All that" not in shown

    def test_thinking_option_shows_full_conviction_texts(self) -> None:
        shown = self.kept(thinking=True)
        assert "All that ben said." in shown
        assert "All that judge said." in shown
        assert shown.count("is out") == 1
