import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.models.text import clean, clean_reply


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Why\x00?", "Why?"),
        ("lone \ud800 half", "lone  half"),
        ("emoji 👩‍👩‍👧 stays", "emoji 👩‍👩‍👧 stays"),
        ("\x1b[31m\t\r\n", "\x1b[31m\t\r\n"),
    ],
)
def test_clean_removes_only_characters_that_databases_reject(written: str, kept: str) -> None:
    assert clean(written) == kept


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("  text \n", "text"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[31mred\x1b[0m\x07\x7f\x9b", "[31mred[0m"),
        ("a \u202eb\u2066c\u2069", "a bc"),
        ("tab\tstays", "tab\tstays"),
        ("\x00\ud800", ""),
    ],
)
def test_clean_reply_removes_terminal_control_characters(written: str, kept: str) -> None:
    assert clean_reply(written) == kept


@given(st.text(st.characters(codec=None), max_size=200))
def test_cleaned_text_can_always_be_stored(text: str) -> None:
    assert "\x00" not in clean(text)
    clean(text).encode()
    assert clean(clean(text)) == clean(text)
    assert clean_reply(clean_reply(text)) == clean_reply(text)
