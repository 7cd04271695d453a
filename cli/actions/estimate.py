import asyncio

from contend.cli import database
from contend.cli.actions.ask import Request, draft_of
from contend.cli.exit_codes import OK
from contend.cli.view.console import Output
from contend.cli.view.plan import print_estimate
from contend.debates.prepare import plan_debate


def estimate_question(asked: Request, output: Output) -> int:
    planned = asyncio.run(plan_debate(draft_of(asked, output).debate))
    print_estimate(planned, database.past(asked.protocol), output)
    return OK
