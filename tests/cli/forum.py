"""A forum over real HTTP: the scripted cast behind the model server, and how to tell its calls."""

import re
from collections.abc import Callable

from tests.cli.support import QUESTION
from tests.support.model_server import ModelServer, Reply, Request, Script
from tests.support.scripted import Cast, as_sent, asked_for

MODELS = ["ann", "ben", "cyd", "judge"]
# Both shapes at one table.
SEATS = ["--seat", "Ann=openai:ann", "--seat", "Ben=ollama:ben", "--seat", "Cyd=openai:cyd"]
QUICK = ["--set", "retry_wait=0.01", "--set", "max_retries=0", "--set", "idle_timeout=20"]
ASK = ["ask", QUESTION, "-p", "forum", *SEATS, *QUICK, "--set", "judge_model=openai:judge"]
BY_CONCESSION = ["--set", "judge_mode=self_convergence"]

Change = Callable[[Request, Reply], Reply]


def staged(cast: Cast, change: Change = lambda _, reply: reply) -> Script:
    """The cast as the server's script; `change` makes replies late, broken or different."""

    return lambda request: change(request, Reply(cast.say(as_sent(request))))


def what(request: Request) -> str:
    """What a call asks for."""
    return "report" if request.schema else asked_for(request)


def asked(models: ModelServer) -> list[tuple[str, str]]:
    """Who was asked for what, in the order in which the calls came in."""
    return [(call.request.model, what(call.request)) for call in models.calls]


def heard(request: Request) -> list[tuple[str, int]]:
    """Whose speech of which round a speaker was shown."""
    return [(name, int(n)) for name, n in re.findall(r"(\w+) argues in round (\d)", request.user)]
