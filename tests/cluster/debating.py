"""Scripted models for debates of every protocol, whose calls can be held."""

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.cli.support import debaters
from tests.support.floor_server import floor_script
from tests.support.forecasting import forecasters
from tests.support.model_server import Call, ModelServer, Reply, Request, Script
from tests.support.protocols import ask_in

# Without the time that it takes to install Aegra and to start the workers.
IN_CLUSTER = [pytest.mark.slow, pytest.mark.timeout(900, func_only=True)]
_SCRIPTS: dict[str, Script] = {"floor": floor_script(), "forecast": forecasters()}
_OTHERS = debaters()
# A forecast that is held must not be late.
_PATIENT = {"forecast": ["--set", "overall_timeout=600"]}
_OWN_MODEL = {"moderated": "openai:floor", "forecast": "openai:forecast"}
NAMES = ["m", "ann", "ben", "cyd", "judge", *_SCRIPTS]


class Debaters:
    """Mark each reply; while held, let no call finish."""

    def __init__(self) -> None:
        self.server: ModelServer | None = None
        self.may_speak = threading.Event()
        self.may_speak.set()
        self.most = 0
        """The number of calls that may finish while the script is held."""
        self._most_of_each = 0
        self.unrated: set[str] = set()
        """The debates whose judge fails."""
        self._debates: dict[int, str] = {}
        """The debate of each request."""
        self._marks: dict[str, str] = {}
        """The debate of each mark."""

    def __call__(self, request: Request) -> Reply:
        reply = _SCRIPTS.get(request.model, _OTHERS)(request)
        said = reply if isinstance(reply, Reply) else Reply(reply)
        name = self._debates[request.index] = self._name(request)
        if name in self.unrated and "You are the judge" in request.instructions:
            return Reply(status=401)
        self._marks[mark(request)] = name
        # Where a record keeps it: before a decision, and after words that are one.
        words = [mark(request), said.text]
        text = " ".join(words if "```" in said.text else reversed(words))
        return replace(said, text=text, until=lambda: self._may_finish(name))

    def _name(self, request: Request) -> str:
        """Return the debate's name from its question, or from a known mark."""
        if found := re.search(r"Debate (\w+):", request.text):
            return found[1]
        return next((name for each, name in self._marks.items() if each in request.text), "")

    def _may_finish(self, name: str) -> bool:
        if self.may_speak.is_set() or len(self.finished()) < self.most:
            return True
        return len(self.finished(name)) < self._most_of_each

    def finished(self, name: str | None = None) -> list[Call]:
        """Return the finished calls, of one debate or of all."""
        done = [call for call in self._calls() if call.completed]
        return [call for call in done if name in (None, self._debates[call.request.index])]

    def waiting(self) -> set[str]:
        """Return the debates that have a call in flight."""
        return {
            self._debates.get(call.request.index, "")
            for call in self._calls()
            if call.ended is None
        }

    @contextmanager
    def held(self, most_of_each: int) -> Iterator[None]:
        """Let each debate finish only this many calls."""
        self.most, self._most_of_each = 0, most_of_each
        self.may_speak.clear()
        try:
            yield
        finally:
            self._most_of_each = 0
            self.may_speak.set()

    def wait_for_call(self) -> None:
        """Wait until a debate has a call in flight."""
        assert self.server
        self.server.wait_until(lambda: bool(self.waiting()), "a call in flight")

    def marks_of(self, name: str) -> set[str]:
        """Return the marks of a debate's calls."""
        return {each for each, of in self._marks.items() if of == name}

    def times_made(self) -> Counter[str]:
        return Counter(mark(call.request) for call in self._calls())

    def finished_since(self, before: Counter[str]) -> Counter[str]:
        """Count the answers of each call that was not made before."""
        done = Counter(mark(call.request) for call in self.finished())
        return Counter({each: times for each, times in done.items() if each not in before})

    def _calls(self) -> list[Call]:
        return list(self.server.calls) if self.server else []


def mark(request: Request) -> str:
    """Return a mark that identifies a call and is equal for a repeated call."""
    same = re.sub(r"[0-9a-f]{6,}", "", f"{request.model} {request.text}")  # without its secret
    return f"({hashlib.sha256(same.encode()).hexdigest()[:16]})"


def command(protocol: str, name: str) -> list[str]:
    """Return the command of a short debate whose question starts with this name."""
    _, question, *options = ask_in(protocol)
    model = _OWN_MODEL.get(protocol, "openai:m")
    chosen = [model if option == "openai:m" else option for option in options]
    return ["ask", f"Debate {name}: {question}", *chosen, *_PATIENT.get(protocol, [])]
