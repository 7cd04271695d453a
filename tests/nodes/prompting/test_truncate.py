"""Truncation of long texts to whole paragraphs and sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.nodes.prompting.truncate import (
    keep_beginning,
    keep_ending,
    split_room,
    whole_sentences,
)


@pytest.mark.parametrize(
    ("sizes", "room", "given_to_each"),
    [
        ([10, 10, 10], 30, [10, 10, 10]),
        ([10, 10, 10], 100, [10, 10, 10]),
        ([50, 50, 50], 30, [10, 10, 10]),
        ([4, 50, 50], 30, [4, 13, 13]),
        ([50, 4, 20], 60, [36, 4, 20]),
        ([5, 5], 0, [0, 0]),
        ([5, 5], -7, [0, 0]),
        ([], 10, []),
    ],
)
def test_splits_the_room_evenly(sizes: list[int], room: int, given_to_each: list[int]) -> None:
    assert split_room(sizes, room) == given_to_each


@given(st.lists(st.integers(0, 500), max_size=8), st.integers(-10, 2000))
def test_shares_never_exceed_the_room_and_long_texts_get_equal_shares(
    sizes: list[int], room: int
) -> None:
    got = split_room(sizes, room)
    assert sum(got) <= max(0, room)
    assert all(mine <= size for mine, size in zip(got, sizes, strict=True))
    if sum(sizes) <= max(0, room):
        assert got == sizes
    else:
        cut = [mine for mine, size in zip(got, sizes, strict=True) if mine < size]
        assert max(cut) - min(cut) <= 1


def test_a_text_that_fits_is_unchanged() -> None:
    text = "One.\n\n\nTwo.  \n \nThree."
    assert keep_ending(text, len(text)).text == text
    assert keep_ending(text, len(text)).note == ""


def test_the_last_paragraphs_are_kept_whole() -> None:
    text = "First paragraph.\n\nSecond one,\nof two lines.\n\nThird."
    found = keep_ending(text, 40)
    assert found.text == "Second one,\nof two lines.\n\nThird."
    assert found.note.startswith("(The first 1 of its 3 paragraphs are left out")


def test_never_keeps_a_paragraph_before_one_that_is_left_out() -> None:
    found = keep_ending(f"Short.\n\n{'long ' * 50}\n\nEnd.", 60)
    assert (found.text, found.left_out, found.paragraphs) == ("End.", 2, 3)


def test_a_paragraph_is_never_cut() -> None:
    found = keep_ending("x" * 500, 100)
    assert (found.text, found.note) == ("", "(Left out because it does not fit.)")


def test_room_is_counted_in_bytes() -> None:
    assert keep_ending("é" * 10, 10).text == ""
    assert keep_ending("é" * 10, 20).text == "é" * 10


@pytest.mark.parametrize(
    ("text", "characters", "kept"),
    [
        ("One. Two. Three.", 16, "One. Two. Three."),
        ("One. Two. Three.", 12, "One. Two."),
        ('He said "No." Then he left.', 20, 'He said "No."'),
        ("No sentence ends here", 15, "No sentence…"),
        ("Version 1.5 is out. More.", 22, "Version 1.5 is out."),
        ("x" * 30, 10, "x" * 9 + "…"),
        ("It costs 5. Then more.", 15, "It costs 5."),
        ("It ended in 1990. Then more.", 20, "It ended in 1990."),
        ("We had a few, etc. Then we left.", 25, "We had a few, etc."),
        ("So do I. Then more.", 14, "So do I."),
        ("It takes 5 ms. Then more.", 20, "It takes 5 ms."),
        ("Costs fall.\n1. Rent goes up", 17, "Costs fall."),
        ("Costs fall. The plan, e.g. the one in Bremen, works.", 30, "Costs fall."),
        ("1. Costs fall. Rents rise.", 20, "1. Costs fall."),
        ("This is new. No. We think so.", 20, "This is new. No."),
    ],
)
def test_an_excerpt_ends_with_a_sentence_and_is_marked(
    text: str, characters: int, kept: str
) -> None:
    excerpt = keep_beginning(text, characters)
    whole = kept == text
    note = (
        ""
        if whole
        else f"(An excerpt: the first {len(kept.rstrip('…'))} of {len(text)} characters.)"
    )
    assert (excerpt.text, excerpt.note) == (kept, note)


@pytest.mark.parametrize(
    ("text", "characters", "kept"),
    [
        ("1. Costs fall and fall", 12, "1. Costs…"),
        ("12) Costs fall and fall", 12, "12) Costs…"),
        ("a. Costs fall and fall", 12, "a. Costs…"),
        ("iv. Costs fall and fall", 13, "iv. Costs…"),
        ("- 2. Costs fall and fall", 14, "- 2. Costs…"),
        ("**1.** Costs fall and fall", 16, "**1.** Costs…"),
        ("The plan, e.g. the one in Bremen, works.", 30, "The plan, e.g. the one in…"),
        ("As Dr. Smith has said before", 20, "As Dr. Smith has…"),
        ("The U.S. economy grows", 17, "The U.S. economy…"),
        ("See fig. 3 and more", 15, "See fig. 3 and…"),
        ("As Ms. Smith has said before", 20, "As Ms. Smith has…"),
        ("Fees fall: 1. rents", 16, "Fees fall: 1.…"),
        ("1. 长的文字没有空格也要保留", 10, "1. 长的文字没有…"),
    ],
)
def test_list_numbers_and_abbreviations_do_not_end_a_sentence(
    text: str, characters: int, kept: str
) -> None:
    assert keep_beginning(text, characters).text == kept


def test_an_excerpt_is_never_only_a_list_number() -> None:
    kept = keep_beginning("1. " + "word " * 200, 300).text
    assert kept.startswith("1. word word")
    assert 290 < len(kept) <= 300
    assert kept.endswith(" word…")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Costs fall. Rents ri", "Costs fall."),
        ("Costs fall.", "Costs fall."),
        ("1. First the cost falls because the pl", "1. First the cost falls because the…"),
        ("The plan, e.g. the one in Bremen, saves", "The plan, e.g. the one in Bremen,…"),
        ("It was whole ", "It was whole…"),
        ("Perhaps", "Perhaps…"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_trims_an_unfinished_text_to_a_sentence_or_word(text: str, kept: str) -> None:
    assert whole_sentences(text) == kept


@given(st.text(alphabet="ab1.e,g \n)!", max_size=60), st.integers(1, 70))
def test_an_excerpt_is_never_longer_than_its_limit(text: str, characters: int) -> None:
    kept = keep_beginning(text, characters).text
    assert len(kept) <= characters
    assert text.startswith(kept.removesuffix("…"))
