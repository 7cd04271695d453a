"""Authentication of `langgraph dev`."""

from typing import Any

import pytest
from langgraph_sdk import Auth

from contend.service.auth import TOKEN_VARIABLE
from contend.service.dev_auth import RememberConnection, authenticate

TOKEN = "a-long-service-token"


def scope(reached: str = "127.0.0.1", authorization: str = "") -> dict[str, Any]:
    headers = [(b"authorization", authorization.encode())] if authorization else []
    return {"type": "http", "server": (reached, 2024), "headers": headers}


@pytest.fixture(autouse=True)
def bound_to_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setenv("LANGGRAPH_API_URL", "http://127.0.0.1:2024")


@pytest.mark.parametrize("reached", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
async def test_local_requests_need_no_token(reached: str) -> None:
    assert await authenticate(scope(reached)) == {"identity": "local"}


@pytest.mark.parametrize(
    ("bound", "reached"),
    [
        ("http://0.0.0.0:2024", "127.0.0.1"),
        ("http://[::]:2024", "::1"),
        ("https://name.trycloudflare.com", "127.0.0.1"),
        ("http://127.0.0.1:2024", "192.168.1.7"),
        ("http://127.0.0.1:2024", ""),
    ],
)
async def test_requests_from_other_machines_need_the_token(
    bound: str, reached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_API_URL", bound)
    with pytest.raises(Auth.exceptions.HTTPException, match=f"Set {TOKEN_VARIABLE}") as refused:
        await authenticate(scope(reached))
    assert refused.value.status_code == 401
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert await authenticate(scope(reached, f"Bearer {TOKEN}")) == {"identity": "token"}


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
async def test_local_requests_need_the_token_if_one_is_set(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    with pytest.raises(Auth.exceptions.HTTPException, match="valid service token"):
        await authenticate(scope(authorization=given))


async def through_aegra(connection: dict[str, Any]) -> Auth.types.MinimalUserDict:
    """Authenticate as Aegra does, which passes only the headers."""
    found: list[Auth.types.MinimalUserDict] = []
    texts = {name.decode(): value.decode() for name, value in connection["headers"]}

    async def route(*_: Any) -> None:
        found.append(await authenticate(texts))

    await RememberConnection(route)(connection, None, None)  # type: ignore[arg-type]
    return found[0]


async def test_aegra_accepts_local_requests() -> None:
    assert await through_aegra(scope()) == {"identity": "local"}


@pytest.mark.parametrize("header", ["headers", "server", "type"])
async def test_headers_cannot_make_a_remote_request_local(header: str) -> None:
    stranger = scope("192.168.1.7")
    stranger["headers"] = [(header.encode(), b"127.0.0.1")]
    with pytest.raises(Auth.exceptions.HTTPException):
        await through_aegra(stranger)


async def test_aegra_requires_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert await through_aegra(scope("10.0.0.1", f"Bearer {TOKEN}")) == {"identity": "token"}
    with pytest.raises(Auth.exceptions.HTTPException):
        await through_aegra(scope("127.0.0.1", "Bearer another"))
