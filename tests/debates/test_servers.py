"""Error messages for servers that cannot be used."""

import asyncio
import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from contend.debates.servers import ServerAddress, check_server
from contend.graph.errors import BadInput

TOKEN = "a-long-service-token"


class Handler(BaseHTTPRequestHandler):
    """Serve one graph and require a token."""

    graphs: tuple[str, ...] = ("forum",)
    path_of_search = "/assistants/search"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != self.path_of_search:
            self._answer(404, {"detail": "Not Found"})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"message": "unauthorized"})
        else:
            self._answer(200, [{}] if asked["graph_id"] in self.graphs else [])

    def _answer(self, status: int, body: object) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


class Elsewhere(Handler):
    path_of_search = "/other"


def serving(handler: type[Handler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def address() -> Iterator[str]:
    yield from serving(Handler)


@pytest.fixture
def another() -> Iterator[str]:
    yield from serving(Elsewhere)


@pytest.fixture
def nobody() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def refusal(text: str, protocol: str = "forum") -> str:
    with pytest.raises(BadInput) as refused:
        asyncio.run(check_server(ServerAddress(text), protocol))
    return str(refused.value)


@pytest.mark.parametrize("text", ["", "localhost:2024", "ftp://host", "http://", "http://a,"])
def test_refuses_an_invalid_address(text: str) -> None:
    assert "must look like http://HOST:PORT" in refusal(text)


def test_refuses_a_password_in_an_address_without_showing_it() -> None:
    words = refusal("http://me:canary@host:2024")
    assert "CONTEND_SERVICE_TOKEN" in words
    assert "canary" not in words


def test_reports_an_unreachable_server(nobody: str) -> None:
    words = refusal(nobody)
    assert words.startswith(f"The server {nobody} cannot be reached")
    assert words.endswith("Check the address, and that it is running.")


def test_reports_a_server_that_needs_a_token(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs a token. Set CONTEND_SERVICE_TOKEN" in refusal(address)
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
    asyncio.run(check_server(ServerAddress(address), "forum"))


def test_reports_a_server_without_the_graph(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
    assert refusal(address, "refine") == f"The server {address} has no graph 'refine'."


def test_reports_an_address_that_is_not_a_langgraph_server(another: str) -> None:
    assert f"{another} is not a LangGraph server" in refusal(another)


def test_tries_the_next_address_if_one_is_unreachable(
    nobody: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
    asyncio.run(check_server(ServerAddress(f"{nobody}, {address}/"), "forum"))
