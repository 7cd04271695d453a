"""Authentication of a running `langgraph dev`."""

from pathlib import Path

import httpx
import pytest

from tests.dev.dev_server import DevServer
from tests.support.model_server import ModelServer, always

pytestmark = pytest.mark.slow

TOKEN = "canary-token-0123456789abcdef"
GOOD, BAD = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": "Bearer another"}
# With this header Studio would come in without our check, and so would everybody.
STUDIO = {"x-auth-scheme": "langsmith"}


def search(server: DevServer, headers: dict[str, str]) -> int:
    answer = httpx.post(f"{server.url}/assistants/search", json={}, headers=headers, timeout=30)
    return answer.status_code


@pytest.mark.parametrize(
    ("host", "token", "expected"),
    [
        ("127.0.0.1", "", {"none": 200, "studio": 200, "bad": 200}),
        ("127.0.0.1", TOKEN, {"none": 401, "studio": 401, "bad": 401, "good": 200}),
        ("0.0.0.0", "", {"none": 401, "studio": 401, "good": 401}),
        ("0.0.0.0", TOKEN, {"none": 401, "studio": 401, "bad": 401, "good": 200}),
    ],
)
def test_requires_the_token_if_set_or_on_a_network(
    tmp_path: Path, host: str, token: str, expected: dict[str, int]
) -> None:
    headers = {"none": {}, "studio": STUDIO, "bad": BAD, "good": GOOD}
    with ModelServer(always("Hello.")) as models:
        server = DevServer(tmp_path, models, host=host, CONTEND_SERVICE_TOKEN=token).start()
        try:
            assert {who: search(server, headers[who]) for who in expected} == expected
            assert httpx.get(f"{server.url}/ok", timeout=30).status_code == 200
        finally:
            server.stop()
    assert TOKEN not in server.log.read_text()
