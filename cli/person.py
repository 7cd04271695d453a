import sys
from collections.abc import Mapping
from typing import Any

from contend.cli.view.console import print_message
from contend.cli.view.format import plain

_HOW_TO_END = "End with Ctrl-D on an empty line. Ctrl-C pauses the debate."


def print_request(asked: Mapping[str, Any]) -> None:
    turn = f"{asked['name']}, it is your turn (round {asked['round']})."
    said = " ".join(filter(None, (turn, asked["problem"], asked["request"])))
    print_message(f"\n{plain(said)}")


def read_answer() -> str:
    if not sys.stdin.isatty():
        return ""
    print_message(_HOW_TO_END)
    try:
        return sys.stdin.buffer.read().decode("utf-8", errors="replace").strip()
    except KeyboardInterrupt:
        return ""
