"""OpenAI and every server that speaks its chat completions (OPENAI_BASE_URL, OPENAI_API_KEY)."""

import os
from collections.abc import Callable
from functools import cache
from ssl import SSLContext

from httpx2 import create_ssl_context
from langchain_openai import ChatOpenAI
from openai import (
    APIConnectionError,
    APIStatusError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
    Timeout,
)
from pydantic import SecretStr

from graph.errors import BadInput
from models.failures import scrub
from models.providers import Opened, Options, Provider, unknown_model

CHECK_TIMEOUT = 10.0


def provider(_: str) -> Provider:
    """The provider for `openai:` specs."""
    return compatible("openai", "OPENAI_API_KEY", lambda: os.environ.get("OPENAI_BASE_URL"))


def compatible(label: str, key_name: str, base_url: Callable[[], str | None]) -> Provider:
    """A provider for any service of this shape; key and address are read when needed."""

    def open_model(name: str, options: Options) -> Opened:
        return open_chat(name, options, base_url(), SecretStr(_key(label, key_name)))

    async def check(names: list[str]) -> None:
        await _check(label, key_name, base_url(), names)

    return Provider(open=open_model, check=check)


def open_chat(
    name: str,
    options: Options,
    base_url: str | None,
    key: SecretStr,
    extra_body: dict[str, object] | None = None,
) -> Opened:
    """A ChatOpenAI that leaves retries to the call policy and reports usage while streaming."""
    timeout = Timeout(options.total_timeout, connect=options.connect_timeout)
    # Our own client: langchain's default one is shared between event loops.
    client = DefaultAsyncHttpxClient(timeout=timeout, verify=_authorities())
    model = ChatOpenAI(
        model=name,
        temperature=options.temperature,
        api_key=key,
        base_url=base_url,
        timeout=timeout,
        max_retries=0,
        stream_usage=True,
        use_responses_api=False,
        http_async_client=client,
        http_client=_unused_client(),
        extra_body=extra_body,
    )
    return Opened(model, client.aclose)


@cache
def _authorities() -> SSLContext:
    """One for every client: reading the certificates takes longer than all else in opening one."""
    return create_ssl_context()


@cache
def _unused_client() -> DefaultHttpxClient:
    """Langchain would make one for each model, although nothing here calls without await."""
    return DefaultHttpxClient(verify=_authorities())


def _key(label: str, key_name: str) -> str:
    key = os.environ.get(key_name, "").strip()
    if not key:
        raise BadInput(f"{key_name} is not set, and the {label} models need it.")
    return key


async def _check(label: str, key_name: str, base_url: str | None, names: list[str]) -> None:
    key = _key(label, key_name)
    try:
        async with AsyncOpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=0,
            timeout=CHECK_TIMEOUT,
            http_client=DefaultAsyncHttpxClient(timeout=CHECK_TIMEOUT, verify=_authorities()),
        ) as client:
            available = [model.id async for model in client.models.list()]
    except APIConnectionError as error:
        raise BadInput(f"{label} cannot be reached at {_place(base_url)}: {error}") from error
    except APIStatusError as error:
        _refuse(label, key_name, error)
        return
    for name in names:
        if available and name not in available:
            raise unknown_model(label, name, available, "Check the name, or the account's access.")


def _refuse(label: str, key_name: str, error: APIStatusError) -> None:
    """Refuse a rejected key; a service without a model list (404) cannot be checked this way."""
    if error.status_code in (401, 403):
        raise BadInput(f"{label} refused the key in {key_name}: {scrub(error.message)}") from error
    if error.status_code != 404:
        raise BadInput(f"{label} is not usable now: {scrub(error.message)}") from error


def _place(base_url: str | None) -> str:
    return base_url or "its default address"
