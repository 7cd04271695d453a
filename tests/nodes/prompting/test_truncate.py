"""Long answers: equal shares of the room, whole paragraphs, the newest first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.nodes.prompting.truncate import keep_beginning, keep_ending, split_room


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
def test_shares(sizes: list[int], room: int, given_to_each: list[int]) -> None:
    assert split_room(sizes, room) == given_to_each


@given(st.lists(st.integers(0, 500), max_size=8), st.integers(-10, 2000))
def test_shares_never_exceed_the_room_and_leave_none_unused(sizes: list[int], room: int) -> None:
    got = split_room(sizes, room)
    assert sum(got) <= max(0, room)
    assert all(mine <= size for mine, size in zip(got, sizes, strict=True))
    if sum(sizes) <= max(0, room):
        assert got == sizes
    else:
        cut = [mine for mine, size in zip(got, sizes, strict=True) if mine < size]
        assert max(cut) - min(cut) <= 1


def test_what_fits_is_left_as_it_is() -> None:
    text = "One.\n\n\nTwo.  \n \nThree."
    assert keep_ending(text, len(text)).text == text
    assert keep_ending(text, len(text)).note == ""


def test_the_last_paragraphs_are_kept_whole() -> None:
    text = "First paragraph.\n\nSecond one,\nof two lines.\n\nThird."
    found = keep_ending(text, 40)
    assert found.text == "Second one,\nof two lines.\n\nThird."
    assert found.note.startswith("(The first 1 of its 3 paragraphs are left out")


def test_no_later_paragraph_is_skipped_for_an_earlier_one() -> None:
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
        ("No sentence ends here", 15, "No sentence"),
        ("Version 1.5 is out. More.", 22, "Version 1.5 is out."),
        ("x" * 30, 10, "x" * 10),
    ],
)
def test_an_excerpt_ends_with_a_sentence_and_is_marked(
    text: str, characters: int, kept: str
) -> None:
    excerpt = keep_beginning(text, characters)
    whole = kept == text
    note = "" if whole else f"(An excerpt: the first {len(kept)} of {len(text)} characters.)"
    assert (excerpt.text, excerpt.note) == (kept, note)
