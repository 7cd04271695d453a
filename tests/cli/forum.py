"""Scripted forums behind a model server, and helpers that classify their calls."""

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
    """Return the cast as a server script; `change` delays, breaks or edits replies."""

    return lambda request: change(request, Reply(cast.say(as_sent(request))))


def what(request: Request) -> str:
    """Return the purpose of a call."""
    return "report" if request.schema else asked_for(request)


def asked(models: ModelServer) -> list[tuple[str, str]]:
    """Return the model and purpose of each call, in order of arrival."""
    return [(call.request.model, what(call.request)) for call in models.calls]


def heard(request: Request) -> list[tuple[str, int]]:
    """Return the speaker and round of every speech in a prompt."""
    return [(name, int(n)) for name, n in re.findall(r"(\w+) argues in round (\d)", request.user)]
