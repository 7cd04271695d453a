"""`contend serve --server` runs debates on the workers."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from contend.debates.journal import merge_chunks
from contend.service.address import DEBATES_PREFIX
from deploy.workers import Workers, answers, free_port
from tests.cli.support import Command
from tests.cluster.debating import IN_CLUSTER
from tests.support.model_server import ModelServer

pytestmark = IN_CLUSTER

SEATS = ("proposer", "skeptic", "synthesizer", "judge")
ASKED: dict[str, Any] = {
    "question": "Debate served: Should a team of four split its monolith?",
    "settings": {**{f"{seat}_model": "openai:m" for seat in SEATS}, "max_rounds": 3},
}
# Of one run: ids, times, and what depends on how fast the words arrive.
OF_ONE_RUN = {"ts", "debate_id", "seq"}
ABOUT_ONE_RUN = {"started_at", "ended_at", "tokens_so_far", "elapsed_ms"}


@contextmanager
def served(contend: Command, *options: str) -> Iterator[httpx.Client]:
    port = free_port()
    page = contend.start("serve", "--no-open", "--port", str(port), *options)
    url = f"http://127.0.0.1:{port}"
    try:
        while not answers(f"{url}/healthz"):
            assert page.poll() is None, page.communicate()
        with httpx.Client(base_url=url, timeout=300) as client:
            yield client
    finally:
        page.send_signal(signal.SIGTERM)
        said = page.communicate()
        assert page.returncode == 0, said


def events_of(client: httpx.Client) -> list[dict[str, Any]]:
    """Start a debate and return its events."""
    started = client.post(DEBATES_PREFIX, json=ASKED)
    assert started.status_code == 201, started.text
    with client.stream("GET", f"{DEBATES_PREFIX}/{started.json()['id']}/events") as stream:
        lines = [line.removeprefix("data: ") for line in stream.iter_lines()]
    events: Any = merge_chunks(json.loads(line) for line in lines if line.startswith("{"))
    assert events[-1]["event"] == "complete"
    return [comparable(event) for event in events]


def comparable(event: dict[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in event["metadata"].items() if k not in ABOUT_ONE_RUN}
    kept = {name: value for name, value in event.items() if name not in OF_ONE_RUN}
    return {**kept, "metadata": metadata}


def test_a_debate_on_a_server_has_the_same_events_as_a_local_one(
    contend: Command, workers: Workers, models: ModelServer, tmp_path: Path
) -> None:
    with served(contend) as client:
        local = events_of(client)
    page = Command(tmp_path / "page", models)
    page.env.pop("OPENAI_API_KEY")  # the workers have the key
    with served(page, "--server", ",".join(workers.addresses)) as client:
        there = events_of(client)
    of_server = there[0]["metadata"]["settings"]
    assert of_server.pop("server") == ",".join(workers.addresses)
    assert of_server.pop("ran_on")
    assert there == local
