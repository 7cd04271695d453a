import json

import pytest

from contend.cli.view.console import write_json


def test_json_output_escapes_terminal_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = {"text": "a\x1b]52;\x9b\u202eb\nc"}
    write_json(written)
    out = capsys.readouterr().out
    assert json.loads(out) == written
    assert not {"\x1b", "\x9b", "\u202e"} & set(out)
