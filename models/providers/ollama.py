from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import httpx
from httpx import HTTPError, Timeout
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from contend.graph.errors import BadInput
from contend.models.failures import first_line
from contend.models.providers.registry import (
    Opened,
    Options,
    Provider,
    raise_refusals,
    unknown_model,
)
from contend.models.providers.response_hooks import watch_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ollama import AsyncClient, ShowResponse

# Ollama silently truncates prompts to its window, so the window is always set. This is Ollama's own
# default on a machine that can run the default models; a larger window needs more memory.
WINDOW = 32_768
CHECK_TIMEOUT = 5.0

# Ollama's descriptions of its models, by host and name.
_shown: dict[tuple[str, str], ShowResponse] = {}


def provider(_: str) -> Provider:
    return Provider(
        open=_open,
        check=_check,
        window=lambda name: min(WINDOW, _largest_window(name) or WINDOW),
        largest_window=_largest_window,
        is_free=True,
        open_embeddings=_open_embeddings,
        takes_images=lambda name: _is_able(name, "vision"),
        takes_tools=lambda name: _is_able(name, "tools"),
        thinks=lambda name: _is_able(name, "thinking"),
    )


async def pulled_models() -> list[str]:
    return list(await _pulled_sizes())


async def similar_model(used: Iterable[str]) -> str | None:
    """Return the largest chat model that is not in `used` but of comparable size, or None."""
    sizes = await _pulled_sizes()
    taken = {each for name in used for each in (name, f"{name}:latest") if each in sizes}
    if not taken:
        return None
    known = [sizes[name] for name in taken]
    least, most = min(known) / 2, max(known)
    fitting = [name for name in sizes if name not in taken and least <= sizes[name] <= most]
    async with _client() as client:
        for name in sorted(fitting, key=lambda name: (-sizes[name], name)):
            with suppress(Exception):  # skip a model without a description
                if "completion" in ((await client.show(name)).capabilities or ()):
                    return name
    return None


async def _pulled_sizes() -> dict[str, int]:
    async with _client() as client:
        try:
            listed = await client.list()
        except (HTTPError, OSError) as error:
            raise BadInput(
                "Ollama is not running or not reachable. Start it with `ollama serve`, set "
                "OLLAMA_HOST, or choose another model with --model."
            ) from error
        except Exception as error:  # another kind of server may send anything
            raise BadInput(
                f"The server at OLLAMA_HOST is not Ollama "
                f"({first_line(error) or type(error).__name__}). Correct OLLAMA_HOST, "
                "or choose another model with --model."
            ) from error
    return {model.model: int(model.size or 0) for model in listed.models if model.model}


@asynccontextmanager
async def _client() -> AsyncIterator[AsyncClient]:
    try:
        from ollama import AsyncClient  # reads OLLAMA_HOST, which may be malformed

        client = AsyncClient(timeout=CHECK_TIMEOUT)
    except Exception as error:
        raise BadInput(f"OLLAMA_HOST is not a valid address: {first_line(error)}.") from error
    try:
        yield client
    finally:
        await client.close()  # type: ignore[no-untyped-call]


def has_model(name: str, pulled: list[str]) -> bool:
    return name in pulled or f"{name}:latest" in pulled


async def _check(names: list[str]) -> None:
    pulled = await pulled_models()
    raise_refusals(
        [
            unknown_model("ollama", name, pulled, f"Get it with `ollama pull {name}`.")
            for name in names
            if not has_model(name, pulled)
        ]
    )
    async with _client() as client:
        for name in names:
            # The model exists, and can be called even without its description.
            with suppress(Exception):
                _shown[_host(), name] = await client.show(name)


def _is_able(name: str, ability: str) -> bool | None:
    shown = _shown.get((_host(), name))
    return ability in shown.capabilities if shown and shown.capabilities else None


def _largest_window(name: str) -> int | None:
    shown = _shown.get((_host(), name))
    for fact, value in (shown.modelinfo or {}).items() if shown else ():
        if fact.endswith(".context_length") and isinstance(value, int) and value > 0:
            return value
    return None


def _host() -> str:
    return os.environ.get("OLLAMA_HOST", "")


def _client_options(options: Options) -> dict[str, Timeout]:
    return {"timeout": Timeout(options.total_timeout, connect=options.connect_timeout)}


def _open(name: str, options: Options) -> Opened[BaseChatModel]:
    from langchain_ollama import ChatOllama  # slow to import

    from contend.models.providers.connections import pooled
    from contend.models.providers.ollama_stream import PieceClient

    wanted = options.context_tokens or WINDOW
    model = ChatOllama(
        model=name,
        temperature=options.temperature,
        num_ctx=min(wanted, _largest_window(name) or wanted),
        num_predict=options.max_tokens,
        client_kwargs=_client_options(options),
    )
    # The call policy limits the time of a call; a timer here would restart with each token.
    client = PieceClient(timeout=Timeout(None, connect=options.connect_timeout), **pooled(httpx))
    watch_client(client._client)
    model._async_client = client
    return Opened(model, client.close)


def _open_embeddings(name: str, options: Options) -> Opened[Embeddings]:
    from langchain_ollama import OllamaEmbeddings  # slow to import

    model = OllamaEmbeddings(model=name, client_kwargs=_client_options(options))
    client = model._async_client
    return Opened(model, client.close if client else None)
