import os
import struct
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from contend.cli.view.console import StreamConsole
from contend.cli.view.format import cost, one_line, plain
from contend.cli.view.wrap import WordWrapper
from contend.debates.exports.wording import duration

TEXT = """# A title that is long enough to be wrapped

A paragraph with an emoji 🧱 and **bold** words that goes on.

1. An item whose second line hangs below its text
   - and one below it that hangs deeper

```python
def untouched():   # however long this line of code may become in the end
```

| a table | is | not | wrapped | either |

日本語のテキストは文字ごとに折り返されます。


The end.
"""


def _wrapped(pieces: list[str], width: int = 30, *, on_screen: bool = False) -> str:
    out: list[str] = []
    wrapper = WordWrapper(width, lambda text, _: out.append(text), on_screen=on_screen)
    for piece in pieces:
        wrapper.feed(piece)
    wrapper.finish()
    return "".join(out)


def test_text_is_wrapped_at_words_with_indents() -> None:
    assert _wrapped([TEXT]) == (
        "  # A title that is long\n"
        "  enough to be wrapped\n"
        "\n"
        "  A paragraph with an emoji 🧱\n"
        "  and **bold** words that goes\n"
        "  on.\n"
        "\n"
        "  1. An item whose second line\n"
        "     hangs below its text\n"
        "     - and one below it that\n"
        "       hangs deeper\n"
        "\n"
        "  ```python\n"
        "  def untouched():   # however long this line of code may become in the end\n"
        "  ```\n"
        "\n"
        "  | a table | is | not | wrapped | either |\n"
        "\n"
        "  日本語のテキストは文字ごとに\n"
        "  折り返されます。\n"
        "\n"
        "  The end.\n"
    )


WIDE = """```python
def untouched():   # however long this line may become
    return "https://example.org/a/rather/long/address"
```
| a table | is | broken | at | words |
- See https://example.org/a/rather/long/address
"""


@given(st.lists(st.integers(0, len(WIDE)), max_size=6))
def test_wide_lines_on_a_screen_continue_at_the_indent(cuts: list[int]) -> None:
    ends = sorted({0, len(WIDE), *cuts})
    assert _wrapped([WIDE[a:b] for a, b in pairwise(ends)], on_screen=True) == (
        "  ```python\n"
        "  def untouched():   # however\n"
        "    long this line may become\n"
        "      return\n"
        '        "https://example.org/a\n'
        '        /rather/long/address"\n'
        "  ```\n"
        "  | a table | is | broken | at\n"
        "    | words |\n"
        "  - See\n"
        "    https://example.org/a/rath\n"
        "    er/long/address\n"
    )


def test_text_after_a_cut_continues_on_a_new_indented_line() -> None:
    out: list[str] = []
    wrapper = WordWrapper(30, lambda text, _: out.append(text))
    for piece in ("- One it", "em", " goes on\n", "Next line", "\nThe end"):
        wrapper.feed(piece)
        wrapper.cut()
    wrapper.finish()
    assert "".join(out) == "  - One\n    item goes on\n  Next\n  line\n  The\n  end\n"


@given(st.lists(st.integers(min_value=1, max_value=len(TEXT) - 1), max_size=20))
def test_wrapping_does_not_depend_on_the_pieces(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TEXT)]
    pieces = [TEXT[start:end] for start, end in pairwise(edges)]
    assert _wrapped(pieces) == _wrapped([TEXT])


@given(st.text(st.sampled_from("ab 🧱界é\n\t-"), max_size=200), st.integers(20, 60))
def test_no_word_is_lost_and_no_line_too_long(text: str, width: int) -> None:
    wrapped = _wrapped([text], width)
    assert "".join(wrapped.split()) == "".join(text.split())
    for line in wrapped.splitlines():
        assert cell_len(line) <= width or len(line.split()) == 1


def test_terminal_control_characters_are_removed() -> None:
    hostile = "a\x1b[2Jb\x07\x9b31m\u202ec\r"
    assert plain(hostile) == "a[2Jb31mc"
    assert _wrapped([hostile]) == "  a[2Jb31mc\n"
    assert one_line("a \n\x1b b", 10) == "a b"
    assert one_line("many words in a row", 12) == "many words…"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_console_is_as_wide_as_its_own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl
    import termios

    monkeypatch.delenv("COLUMNS", raising=False)
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 53, 0, 0))
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        assert StreamConsole(terminal).width == 53
    os.close(master)


def test_cost_and_duration_are_readable() -> None:
    assert (cost(None), cost(0), cost(0.01234)) == ("unknown", "free (local)", "$0.0123")
    spans = [duration(ms) for ms in (1_240, 83_000, 3_780_000)]
    assert spans == ["1.2 s", "1 min 23 s", "1 h 3 min"]


def test_cut_between_words_writes_the_last_word() -> None:
    out: list[str] = []
    wrapper = WordWrapper(30, lambda text, _: out.append(text))
    wrapper.feed("The last word")
    wrapper.cut(between_words=True)
    assert "".join(out) == "  The last word\n"
