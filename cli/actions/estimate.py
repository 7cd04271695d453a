from contend.cli import database
from contend.cli.actions.ask import Request, plan_debate
from contend.cli.exit_codes import OK
from contend.cli.view.console import Output
from contend.cli.view.plan import print_estimate


def estimate_question(asked: Request, output: Output) -> int:
    print_estimate(plan_debate(asked, output), database.past(asked.protocol), output)
    return OK
