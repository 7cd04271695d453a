"""Many debates while every fifth call fails in one of eighteen ways."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cli.support import ROOT, Command, debaters
from tests.models.test_tracing import LangSmith
from tests.support.floor_server import floor_script
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer, Reply, Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DEBATES = int(os.environ.get("CONTEND_FAULT_DEBATES", "40"))
SHARE = 0.2
KEYS = {"OPENAI_API_KEY": "sk-canary-0123456789abcdef", "LANGSMITH_API_KEY": "canary-traces-0123"}
CANARY = b"canary"
# Begins every answer that is not sent to its end.
CUT = "CUTSHORT "
HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>"
SPEAKERS: dict[str, Any] = {
    "moderated": floor_script(),
    "forecast": forecasters(),
    **dict.fromkeys(("adversarial", "forum", "refine"), debaters()),
}

Fault = Callable[[Reply, Request], Reply]


def cut(**how: Any) -> Fault:
    return lambda reply, _: replace(reply, text=CUT + reply.text, **how)


def refusal(status: int, **headers: str) -> Fault:
    """Return an error that repeats the key, as some providers do."""

    def refuse(_: Reply, request: Request) -> Reply:
        key = request.headers.get("authorization", "")
        error = {"error": {"message": f"No, {key}.", "type": "error", "code": None}}
        if request.shape == "ollama":
            return Reply(status=status, error={"error": f"No, {key}."}, headers=headers)
        return Reply(status=status, error=error, headers=headers)

    return refuse


def overload(reply: Reply, request: Request) -> Reply:
    """Replace the rest of the answer with an error."""
    error: Any = {"message": "overloaded", "code": 503}
    if request.shape == "ollama":
        error = "server busy, please try again"
    return replace(reply, text=CUT + reply.text, error={"error": error})


FAULTS: dict[str, Fault] = {
    "error 500": refusal(500),
    "error 502": lambda _reply, _: Reply(status=502, error=HTML),
    "error 503": refusal(503),
    "timeout 408": refusal(408),
    "limit with a time": refusal(429, **{"Retry-After": "0"}),
    "limit without a time": refusal(429),
    "cut in the middle": cut(cut_after=2),
    "cut before the answer": cut(cut_after=0),
    "ended in the middle": cut(end_early_after=2),
    "ended before the answer": cut(end_early_after=0),
    "stalled before the answer": cut(stall_after=0),
    "stalled in the middle": cut(stall_after=1),
    "malformed JSON": cut(garble_after=1),
    "too long": cut(finish="length"),
    "no finish reason": cut(finish=None),
    "empty": lambda reply, _: replace(reply, text=""),
    "only thinking": lambda reply, _: replace(reply, text="<think>Let me see."),
    "error in the stream": overload,
}


def speak(request: Request) -> Reply:
    if request.schema:
        return Reply("{}")  # what was asked for once more, in a form
    if "Your last reply was too long" in request.user:
        request = replace(request, messages=request.messages[:-1])
    said = SPEAKERS[request.model](request)
    return Reply(said) if isinstance(said, str) else said


class Faults:
    """Fail about every fifth call, with a fixed random seed."""

    def __init__(self) -> None:
        self.chance = random.Random(20)  # noqa: S311 - no secret
        self.injected: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        reply = speak(request)
        if self.chance.random() >= SHARE:
            return reply
        name = list(FAULTS)[self.injected.total() % len(FAULTS)]
        self.injected[name] += 1
        return FAULTS[name](reply, request)


@pytest.fixture
def langsmith() -> Iterator[LangSmith]:
    with LangSmith() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_every_debate_ends_done_or_with_a_named_error(tmp_path: Path, langsmith: LangSmith) -> None:
    faults, home = Faults(), tmp_path / "home"
    with ModelServer(faults, models=list(SPEAKERS)) as models:
        contend = Command(home, models)
        contend.env |= KEYS | {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{langsmith.server_port}",
        }
        ran = subprocess.run(
            [sys.executable, "-m", "tests.faults.many_debates", str(DEBATES), "--short-timeouts"],
            env=contend.env,
            cwd=ROOT,
            capture_output=True,
            timeout=1700,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-4000:].decode()
        ended = json.loads(ran.stdout)["ended"]
        _report(ended, faults, len(models.calls))
        exported = _export(contend, tmp_path / "exports")
    failed = [each for each in ended if each["status"] == "failed"]
    assert Counter(each["status"] for each in ended) == {
        **({"failed": len(failed)} if failed else {}),
        "done": DEBATES - len(failed),
    }
    # A late first token is not asked for again, so how many fail by it is a matter of chance: few
    # debates may have too many.
    bounded = [each for each in failed if DEBATES >= 500 or each["kind"] != "first_token"]
    assert len(bounded) < DEBATES / 10
    assert all(f"{each['protocol']}): " in each["error"] for each in failed), failed
    assert len(faults.injected) == len(FAULTS) == 18
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    shown = [ran.stdout, ran.stderr, *exported]
    assert not any(CUT.encode() in part for part in exported), "a truncated turn was accepted"
    assert len(langsmith.bodies) > DEBATES / 10, "there were traces"
    for part in (*files, *shown, *langsmith.bodies):
        assert CANARY not in part, part[max(0, part.index(CANARY) - 200) :][:400]


def _export(contend: Command, folder: Path) -> list[bytes]:
    """Export the debates in alternating formats."""
    folder.mkdir()
    listed = contend.here("list", "--json", "--limit", str(DEBATES)).json
    assert len(listed) == DEBATES
    for number, debate in enumerate(listed):
        form = ("md", "json")[number % 2]
        file = folder / f"{number}.{form}"
        ended = contend.here("export", debate["id"], "--format", form, "--output", str(file))
        assert ended.code == 0, ended.err
    return [path.read_bytes() for path in folder.iterdir()]


def _report(ended: list[dict[str, Any]], faults: Faults, calls: int) -> None:
    """Print the numbers, which pytest shows with -s or if the test fails."""
    by_protocol = Counter((each["protocol"], each["status"]) for each in ended)
    degraded = Counter(what for each in ended for what in set(each["degraded"]))
    kinds = Counter(each.get("kind") for each in ended if each["status"] == "failed")
    lines = [
        f"{len(ended)} debates, {calls} calls, {faults.injected.total()} faults",
        *map(str, (faults.injected, by_protocol, degraded, kinds)),
        *(str(each["error"]) for each in ended if each["status"] != "done"),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
