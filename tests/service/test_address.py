"""Finding the address of a running service."""

import json
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from contend.service.address import ServiceState, page_of, published_address, running_service

DEBATE = "1c2d3e4f-0000-4000-8000-000000000000"


class _Service(BaseHTTPRequestHandler):
    answer: tuple[int, str] = (404, "")  # set by each test

    def do_GET(self) -> None:
        is_asked = self.path in (f"/api/v1/debates/{DEBATE}", "/readyz")
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
def test_finds_only_a_service_that_has_the_debate(
    port: int, status: int, body: str, is_found: bool
) -> None:
    _Service.answer = (status, body)
    with published_address("127.0.0.1", port):
        found = page_of(DEBATE)
    assert found == (f"http://127.0.0.1:{port}/#/debates/{DEBATE}" if is_found else None)
    assert page_of(DEBATE) is None


@pytest.mark.parametrize("host", ["a b", "a\n", ".", "a" * 300, "\ud800", "\0", ""])
def test_an_invalid_host_is_not_running(host: str) -> None:
    with published_address(host, 1):
        assert page_of(DEBATE) is None


@pytest.mark.parametrize("port", ["-1", "0", "99999", "1e999", '"x"', "null"])
def test_an_invalid_port_is_not_running(port: str, tmp_path: Path) -> None:
    file = tmp_path / "home" / "service.json"
    file.parent.mkdir()
    file.write_text(f'{{"host": "127.0.0.1", "port": {port}}}')
    assert page_of(DEBATE) is None


PROBE = "2027-03-01T09:31:00+00:00"
OUTAGE = {"provider": "openai", "since": "2027-03-01T09:30:00+00:00", "next_probe": PROBE}


@pytest.mark.parametrize(
    ("status", "body", "problem", "down"),
    [
        (200, {"status": "ready"}, None, []),
        (
            200,
            {"status": "ready", "providers_down": [OUTAGE]},
            None,
            [("openai", datetime.fromisoformat(PROBE))],
        ),
        (503, {"error": "stopping", "detail": "It stops."}, "It stops.", []),
    ],
)
def test_reports_the_state_of_a_running_service(
    port: int, status: int, body: object, problem: str | None, down: list[tuple[str, datetime]]
) -> None:
    _Service.answer = (status, json.dumps(body))
    with published_address("127.0.0.1", port):
        found = running_service()
    assert found == ServiceState(f"http://127.0.0.1:{port}", problem, down)


@pytest.mark.parametrize(
    "body",
    ["", "[]", '"ready"', "{}", '{"error": 1}', '{"status": "ready", "providers_down": [1]}'],
)
def test_another_program_is_not_taken_for_the_service(port: int, body: str) -> None:
    _Service.answer = (200, body)
    with published_address("127.0.0.1", port):
        assert running_service() is None
    assert running_service() is None
