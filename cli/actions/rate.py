"""Asks the judge again for a score that is missing from a finished debate."""

import asyncio

from langgraph.runtime import RunControl

from contend.cli import database
from contend.cli.actions.ask import TerminalReporter
from contend.cli.exit_codes import MODEL_FAILED, OK, PAUSED
from contend.cli.view.console import print_message
from contend.cli.view.format import resume_command
from contend.debates.exports.wording import sentence
from contend.debates.prepare import check_seats
from contend.debates.record import StoredDebate
from contend.debates.run import run_debate
from contend.graph.errors import BadInput
from contend.graph.state import ids_with_role

_RATED_PROTOCOLS = ("adversarial", "forum", "refine")


def rate_automatically(reference: str) -> int:
    with database.existing(reference) as (records, debate):
        _refuse_unratable(debate)
        if not debate.server:  # which has the judge's model and key
            asyncio.run(_check_judge(debate))
        watch, control = (lambda _: None), RunControl()
        try:
            ended = asyncio.run(run_debate(records, debate, watch, control, rate_again=True))
        except KeyboardInterrupt:
            print_message(f"Paused. Continue with: {resume_command(debate.id)}", "warning")
            return PAUSED
    return _report(ended)


def _refuse_unratable(debate: StoredDebate) -> None:
    name, state = f"Debate {debate.id[:8]}", debate.as_state()
    if debate.status != "done":
        raise BadInput(f"{name} has no answer to rate yet: it is {debate.status}.")
    if debate.protocol not in _RATED_PROTOCOLS or not ids_with_role(state, "judge"):
        hint = f"rate it yourself with: contend rate {debate.id[:8]} RATING."
        raise BadInput(f"{name} has no judge that rates its answer; {hint}")
    if rated := state.get("auto_score"):
        raise BadInput(f"The judge has already rated debate {debate.id[:8]}: {rated.score:g}.")


async def _check_judge(debate: StoredDebate) -> None:
    state = debate.as_state()
    state["seats"] = [seat for seat in state["seats"] if seat.role == "judge"]
    await check_seats(state, debate.settings_to_run(), TerminalReporter(quiet=False), fetch=True)


def _report(ended: StoredDebate) -> int:
    state = ended.as_state()
    if rated := state.get("auto_score"):
        by = f"by {rated.judge_model}"
        print_message(f"Rated debate {ended.id[:8]} {rated.score:g} of 10, {by}.")
        return OK
    failures = [each.why for each in state.get("degraded", []) if each.what == "not_rated"]
    why = sentence(ended.error or failures[-1])
    print_message(f"Error: {why} Try again with: contend rate {ended.id[:8]} --auto", "error")
    return MODEL_FAILED
