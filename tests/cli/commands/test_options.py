import sys
from io import StringIO

import pytest

from contend.cli.commands.options import loading_note


@pytest.mark.parametrize(
    ("is_terminal", "is_hidden", "shown"),
    [(True, False, "Loading …\r\x1b[2K"), (True, True, ""), (False, False, "")],
)
def test_loading_note_is_shown_on_a_terminal_and_removed(
    is_terminal: bool, is_hidden: bool, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    with loading_note(is_hidden=is_hidden):
        assert stream.getvalue() == shown.removesuffix("\x1b[2K")
    assert stream.getvalue() == shown
