import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from contend.cli import database
from contend.cli.actions.ask import Request, TerminalReporter, read_question, run_stored
from contend.cli.view.console import Output
from contend.debates.fork import Edit, FollowUp, ForkPoint, fork_debate, reply_of
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.errors import BadInput
from contend.graph.settings import SETTINGS


@dataclass(frozen=True)
class Fork:
    debate: str
    at: str
    changes: dict[str, Any]
    edit: str
    text_file: Path | None
    say: str


def fork_and_run(wanted: Fork, output: Output) -> int:
    if bool(wanted.at) == bool(wanted.edit):
        raise BadInput("Give either --at ROUND[:PHASE] or --edit TURN as the start of the fork.")
    if wanted.text_file and not wanted.edit:
        raise BadInput("--text-file works only with --edit.")
    with database.existing(wanted.debate) as (records, parent):
        where = _edit(records, parent, wanted) if wanted.edit else ForkPoint.parse(wanted.at)
        reporter = TerminalReporter(quiet=output.quiet)
        changes, say = wanted.changes, wanted.say
        forked = asyncio.run(fork_debate(records, parent, where, changes, say, reporter))
        place = f"turn {wanted.edit}" if wanted.edit else wanted.at
        notice = f"Forked from debate {parent.id[:8]} at {place}."
        return run_stored(records, forked, output, notice, wanted.say)


def ask_again(reference: str, request: Request, output: Output) -> int:
    question = read_question(request.question or "")
    with database.existing(reference) as (records, parent):
        one_model = (
            SETTINGS[parent.protocol].settings_for_model(request.model) if request.model else {}
        )
        changes = one_model | request.flags
        reporter = TerminalReporter(quiet=output.quiet)
        forked = asyncio.run(fork_debate(records, parent, FollowUp(), changes, question, reporter))
        notice = f"Continues debate {parent.id[:8]} with your question."
        return run_stored(records, forked, output, notice, question)


def _edit(records: Repository, parent: StoredDebate, wanted: Fork) -> Edit:
    before = asyncio.run(reply_of(records, parent, wanted.edit))
    text = _read(wanted.text_file) if wanted.text_file else _open_editor(before)
    if text is None or text.strip() == before.strip():
        raise BadInput(f"Turn {wanted.edit} was not changed, so nothing was forked.")
    return Edit(wanted.edit, text)


def _open_editor(text: str) -> str | None:
    try:
        return click.edit(text, extension=".md")
    except click.ClickException as error:
        raise BadInput(
            f"{error.message.rstrip('.')}. Set EDITOR to your editor, or use --text-file."
        ) from error


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"Cannot read {path} as text (--text-file).") from error
