from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from contend.cli import database
from contend.cli.view.console import print_message, stdout, write_json
from contend.cli.view.format import counted, plain
from contend.debates.compare import Comparison, compare
from contend.graph.errors import BadInput

_WIDEST = 160
_STYLES = {"both": "", "first": "removed", "second": "added"}
_SIGNS = {"first": ("[-", "-]"), "second": ("{+", "+}")}


def print_comparison(first: str, second: str, *, as_json: bool) -> None:
    with database.existing(first) as (records, debate):
        other = records.find(second)
    if debate.id == other.id:
        raise BadInput("These are the same debate. Give the ids of two debates.")
    found = compare(debate.as_json(), other.as_json())
    if as_json:
        write_json({"first": debate.id, "second": other.id, **asdict(found)})
        return
    _print(found, debate.id[:8], other.id[:8])


def _print(found: Comparison, first: str, second: str) -> None:
    screen = stdout(widest=_WIDEST)
    screen.print(_shared(found.shared_turns), style="muted")
    for change in found.turns:
        screen.print(Text(f"{change.turn}: {change.change}"))
    if found.facts:
        table = Table(box=None, pad_edge=False)
        for heading in ("", first, second):
            table.add_column(heading, overflow="fold")
        for fact in found.facts:
            table.add_row(Text(fact.name), Text(plain(fact.first)), Text(plain(fact.second)))
        screen.print()
        screen.print(table)
    screen.print()
    if all(where == "both" for where, _ in found.answer):
        print_message("The answers are the same.")
        return
    screen.print(Text("Answer", style="heading"))
    screen.print(_answer(found))


def _shared(turns: int) -> str:
    if turns == 1:
        return "The first turn is the same."
    return (
        f"The first {counted(turns, 'turn')} are the same."
        if turns
        else "They have no turns in common."
    )


def _answer(found: Comparison) -> Text:
    text = Text()
    for where, words in found.answer:
        before, after = _SIGNS.get(where, ("", ""))
        bare = plain(words).rstrip()
        space = words[len(words.rstrip()) :] or (" " if where != "both" else "")
        text.append(f"{before}{bare}{after}", style=_STYLES[where]).append(space)
    return text
