"""Prints the steps of a debate."""

import asyncio
from typing import Any

from rich.table import Table

from contend.cli import database
from contend.cli.view.console import stdout, write_json
from contend.debates.exports.wording import local_time
from contend.debates.history import HistoryStep, opened_graph, read_history
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository

_WIDEST = 160


def print_history(reference: str, *, as_json: bool) -> None:
    with database.existing(reference) as (records, debate):
        steps = [step for step in asyncio.run(_steps(records, debate)) if step.is_of_node]
    if as_json:
        write_json([_as_json(step) for step in steps])
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("Place", "Time", "Next"):
        table.add_column(heading, no_wrap=True)
    table.add_column("Turns", overflow="fold")
    for step in steps:
        turns = ", ".join(turn.id for turn in step.turns)
        table.add_row(_place(step), local_time(step.at.isoformat()), ", ".join(step.next), turns)
    stdout(widest=_WIDEST).print(table)


async def _steps(records: Repository, debate: StoredDebate) -> list[HistoryStep]:
    async with opened_graph(debate) as graph:
        return await read_history(graph, debate.id, records.origin(debate.id))


def _place(step: HistoryStep) -> str:
    """Return where a step is, as `contend fork --at` takes it."""
    number = "" if step.round is None else f"{step.round}:"
    return f"{number}{step.nodes[0]}"


def _as_json(step: HistoryStep) -> dict[str, Any]:
    return {
        "checkpoint": step.checkpoint,
        "round": step.round,
        "nodes": list(step.nodes),
        "next": list(step.next),
        "turns": [turn.id for turn in step.turns],
        "at": step.at.isoformat(),
    }
