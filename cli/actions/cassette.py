from contend.cli import database
from contend.cli.actions.ask import Request, read_question, run_stored
from contend.cli.view.console import Output
from contend.debates.cassettes import Cassette, check_same, start_from_cassette
from contend.graph.errors import BadInput
from contend.graph.settings import SETTINGS

_NOTICE = "This is a recorded debate; no model is called."


def play_cassette(cassette: Cassette, request: Request, output: Output) -> int:
    """Rerun a recorded debate as a new one; raise BadInput if options contradict the recording."""
    protocol = cassette.debate.protocol
    if request.protocol != protocol:
        raise BadInput(f"The recording uses the protocol {protocol}, not {request.protocol}.")
    one_model = SETTINGS[protocol].settings_for_model(request.model) if request.model else {}
    question = None if request.question is None else read_question(request.question)
    check_same(cassette, question, one_model | request.flags)
    with database.records() as records:
        debate = start_from_cassette(records, cassette)
        return run_stored(records, debate, output, _NOTICE)
