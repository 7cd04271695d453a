"""How other commands find the page of a running service."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from contend.service.address import page_of, published_address

DEBATE = "1c2d3e4f-0000-4000-8000-000000000000"


class _Service(BaseHTTPRequestHandler):
    statuses: dict[str, int] = {}  # noqa: RUF012 - set by each test

    def do_GET(self) -> None:
        self.send_response(self.statuses.get(self.path, 404))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), _Service) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("status", "is_found"), [(200, True), (401, True), (404, False)])
def test_only_a_service_that_has_the_debate_is_used(port: int, status: int, is_found: bool) -> None:
    _Service.statuses = {f"/api/v1/debates/{DEBATE}": status}
    with published_address("127.0.0.1", port):
        found = page_of(DEBATE)
    assert found == (f"http://127.0.0.1:{port}/#/debates/{DEBATE}" if is_found else None)
    assert page_of(DEBATE) is None
