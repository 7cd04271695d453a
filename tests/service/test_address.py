"""How other commands find the page of a running service."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from contend.service.address import page_of, published_address

DEBATE = "1c2d3e4f-0000-4000-8000-000000000000"


class _Service(BaseHTTPRequestHandler):
    answer: tuple[int, str] = (404, "")  # set by each test

    def do_GET(self) -> None:
        is_asked = self.path == f"/api/v1/debates/{DEBATE}"
        status, body = self.answer if is_asked else (404, "")
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), _Service) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "is_found"),
    [
        (200, json.dumps({"id": DEBATE, "question": "Why?"}), True),
        (401, '{"error": "unauthorized", "detail": "A token is required."}', True),
        (401, '{"error": "no_token_set"}', True),
        (404, '{"error": "not_found"}', False),
        (404, json.dumps({"id": DEBATE}), False),
        (200, "<html>Another program</html>", False),
        (200, '{"id": "another"}', False),
        (200, f'"{DEBATE}"', False),
        (200, "[" * 100_000, False),
        (401, '{"error": "log in"}', False),
        (401, "", False),
    ],
)
def test_only_a_service_that_has_the_debate_is_used(
    port: int, status: int, body: str, is_found: bool
) -> None:
    _Service.answer = (status, body)
    with published_address("127.0.0.1", port):
        found = page_of(DEBATE)
    assert found == (f"http://127.0.0.1:{port}/#/debates/{DEBATE}" if is_found else None)
    assert page_of(DEBATE) is None


@pytest.mark.parametrize("host", ["a b", "a\n", ".", "a" * 300, "\ud800", "\0", ""])
def test_a_bad_host_is_not_running(host: str) -> None:
    with published_address(host, 1):
        assert page_of(DEBATE) is None


@pytest.mark.parametrize("port", ["-1", "0", "99999", "1e999", '"x"', "null"])
def test_a_bad_port_is_not_running(port: str, tmp_path: Path) -> None:
    file = tmp_path / "home" / "service.json"
    file.parent.mkdir()
    file.write_text(f'{{"host": "127.0.0.1", "port": {port}}}')
    assert page_of(DEBATE) is None
