"""The Python client, including lost connections."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from contend.service.client import ApiError, DebateClient
from tests.cli.support import ROOT, debaters
from tests.service.test_debates import QUESTION, QUICK, client, models
from tests.service.web.browser import serve_page
from tests.support.model_server import ModelServer

__all__ = ["client", "models"]


def message(seq: int, name: str = "seat_chunk") -> bytes:
    return f"id: {seq}\nevent: {name}\ndata: {json.dumps({'seq': seq, 'event': name})}\n\n".encode()


class Stream(httpx2.SyncByteStream):
    """Send these parts as a response; an exception breaks the connection."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


class Script:
    """Simulate a service that returns these responses in order."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers, self.last_ids = iter(answers), list[str | None]()
        self.waited: list[float] = []
        http = httpx2.Client(base_url="http://x", transport=httpx2.MockTransport(self._answer))
        self.client = DebateClient(http=http, wait=self.waited.append)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.last_ids.append(request.headers.get("Last-Event-ID"))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def events(self) -> list[int]:
        return [event["seq"] for event in self.client.events("some")]


def streamed(*parts: bytes | Exception) -> httpx2.Response:
    return httpx2.Response(200, stream=Stream(*parts))


def refusal(status: int) -> httpx2.Response:
    return httpx2.Response(status, json={"error": "no", "detail": "Not now."})


def test_a_lost_connection_is_resumed_after_the_last_event() -> None:
    script = Script(
        streamed(b": heartbeat\n\n", message(1), message(4), httpx2.ReadError("lost")),
        httpx2.ConnectError("refused"),
        refusal(503),
        streamed(message(5)),
        streamed(message(6, "complete")),
    )
    assert script.events() == [1, 4, 5, 6]
    assert script.last_ids == [None, "4", "4", "4", "5"]
    assert script.waited == [1, 2, 4]


def test_gives_up_on_a_service_that_stays_unreachable() -> None:
    script = Script(*[httpx2.ConnectError("refused")] * 8)
    with pytest.raises(httpx2.ConnectError):
        script.events()
    assert sum(script.waited) == 1 + 2 + 4 + 8 + 16 + 30 + 30


@pytest.mark.parametrize(
    "last", [lambda: streamed(b": heartbeat\n\n"), lambda: httpx2.Response(204)]
)
def test_two_streams_without_events_end_the_watch(last: Callable[[], httpx2.Response]) -> None:
    script = Script(streamed(message(1)), last(), last())
    assert script.events() == [1]


def test_a_refusal_is_raised_with_its_reason() -> None:
    with pytest.raises(ApiError, match="Not now") as refused:
        Script(refusal(404)).events()
    assert (refused.value.status, refused.value.body.error) == (404, "no")
    with pytest.raises(ApiError, match="The answer was 502"):
        Script(httpx2.Response(502, text="<html>")).client.get("some")


def test_every_client_method_works(client: httpx2.Client, tmp_path: Path) -> None:
    debates = DebateClient(http=client)
    notes = tmp_path / "notes.txt"
    notes.write_text("The night shift costs 40,000 a year.")
    settings = QUICK | {"pause": "each_round", "embedding_model": "openai:m"}
    debate = debates.start(QUESTION, settings=settings, documents=[notes], model="openai:m")
    while not any(each["event"] == "paused" for each in debates.events(debate.id, follow=False)):
        pass
    with pytest.raises(ApiError) as refused:
        debates.pause(debate.id)
    assert (refused.value.status, refused.value.body.debate_id) == (409, debate.id)
    assert debates.finish(debate.id, "Enough.").status == "running"
    assert [*debates.events(debate.id)][-1]["event"] == "complete"
    assert debates.rate(debate.id, 8).user_rating == 8
    assert debates.get(debate.id).record["documents"][0]["name"] == "notes.txt"
    assert QUESTION in debates.export(debate.id)
    assert [each.id for each in debates.list(status="done", search="monolith").debates] == [
        debate.id
    ]
    debates.delete(debate.id)
    assert debates.list().debates == []


def test_the_example_in_the_docs_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], models: ModelServer
) -> None:
    page = (ROOT / "docs" / "http-api.md").read_text("utf-8")
    (example,) = (part.split("```")[0] for part in page.split("```python\n")[1:])
    with serve_page(debaters(), monkeypatch) as address:
        assert "http://127.0.0.1:8000" in example
        exec(example.replace("http://127.0.0.1:8000", address), {})  # noqa: S102 - our own
    assert "Keep the monolith" in capsys.readouterr().out
