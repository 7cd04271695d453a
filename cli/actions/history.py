import asyncio

from rich.table import Table

from contend.cli import database
from contend.cli.view.console import stdout, write_json
from contend.debates.exports.wording import local_time
from contend.debates.history import HistoryStep, describe_step, node_steps

_WIDEST = 160


def print_history(reference: str, *, as_json: bool) -> None:
    with database.existing(reference) as (records, debate):
        steps = asyncio.run(node_steps(records, debate))
    if as_json:
        write_json([describe_step(step) for step in steps])
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("Place", "Time", "Next"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Turns", overflow="fold")
    for step in steps:
        turns = ", ".join(turn.id for turn in step.turns)
        table.add_row(_place(step), local_time(step.at.isoformat()), ", ".join(step.next), turns)
    stdout(widest=_WIDEST).print(table)


def _place(step: HistoryStep) -> str:
    number = "" if step.round is None else f"{step.round}:"
    return f"{number}{'edited' if step.is_edit else step.nodes[0]}"
