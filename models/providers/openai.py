import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai.chat_models.base import ChatOpenAI
from openai import (
    APIStatusError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
    Timeout,
)
from pydantic import SecretStr

from contend.graph.errors import BadInput
from contend.models.failures import first_line, scrub
from contend.models.keys import check_key, how_to_correct, missing_key
from contend.models.providers.connections import pooled, ssl_context
from contend.models.providers.openai_stream import THOUGHTS, Completions
from contend.models.providers.registry import (
    API_KEYS,
    Opened,
    Options,
    Provider,
    raise_refusals,
    unknown_model,
)
from contend.models.providers.response_hooks import watch_client

CHECK_TIMEOUT = 10.0
_MOST_LISTED = 8

Ability = Literal["image_inputs", "tool_calling", "reasoning_output"]


@dataclass(frozen=True)
class Service:
    label: str
    address_variable: str
    default_address: str
    key_path: str = ""  # path to check the key at, if the list of models needs no key
    listed_as: Callable[[str], str] = lambda name: name  # the name its list may use instead

    def base_url(self) -> str:
        given = os.environ.get(self.address_variable, "").strip()
        if given and not _is_address(given):
            _, at, rest = given.rpartition("@")  # there may be a password before the @
            raise BadInput(
                f"{self.address_variable} is not a valid address: "
                f"{first_line(repr(f'***@{rest}' if at else rest))}. "
                "Write it like https://HOST:PORT/v1, or unset it."
            )
        return given or self.default_address


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0  # `port` may raise ValueError too
    except ValueError:
        return False
    is_plain = text.isprintable() and " " not in text
    return is_plain and has_host and parts.scheme in ("http", "https")


_SERVICES = {
    "openai": Service("openai", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "openrouter": Service(
        "openrouter",
        "OPENROUTER_BASE_URL",
        "https://openrouter.ai/api/v1",
        # Its list of models needs no key.
        key_path="/key",
        # Models are listed without the variants `:online`, `:nitro` and `:floor`.
        listed_as=lambda name: name.partition(":")[0],
    ),
}


def provider(name: str) -> Provider:
    service = _SERVICES[name]
    return Provider(
        open=partial(_open_chat, service),
        check=partial(_check, service),
        has_list_prices=partial(_is_at_default_address, service),
        open_embeddings=partial(_open_embeddings, service),
        takes_images=lambda name: _look_up_ability(name, "image_inputs"),
        takes_tools=lambda name: _look_up_ability(name, "tool_calling"),
        thinks=lambda name: _look_up_ability(name, "reasoning_output"),
    )


@cache
def _look_up_ability(name: str, ability: Ability) -> bool | None:
    profile = ChatOpenAI(
        model=name.rpartition("/")[2],
        api_key=SecretStr("unused"),
        # Without an address, langchain would read the user's, which may be malformed; without
        # clients, it would create its own, each of which reads all certificates again.
        base_url="http://unused",
        http_client=_unused_client(),
        http_async_client=_unused_async_client(),
    ).profile
    return profile.get(ability) if profile else None


class _ThinkingChatOpenAI(ChatOpenAI):
    """A ChatOpenAI that keeps streamed thinking, such as OpenRouter's."""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *given: Any
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(chunk, *given)
        for choice in (chunk.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            thought = next((delta[key] for key in THOUGHTS if delta.get(key)), None)
            if converted and isinstance(thought, str):
                converted.message.additional_kwargs["reasoning_content"] = thought
        return converted


def _open_client(timeout: Timeout) -> DefaultAsyncHttpxClient:
    """Open a separate client per model, because langchain would share one across event loops."""
    client = DefaultAsyncHttpxClient(timeout=timeout, **pooled(httpx2))
    watch_client(client)
    return client


def _open_embeddings(service: Service, name: str, options: Options) -> Opened[Embeddings]:
    from langchain_openai.embeddings.base import OpenAIEmbeddings

    timeout = Timeout(options.total_timeout, connect=options.connect_timeout)
    client = _open_client(timeout)
    model = OpenAIEmbeddings(
        model=name,
        openai_api_key=SecretStr(_key(service)),
        openai_api_base=service.base_url(),
        request_timeout=timeout,
        # Send text, not tokens: other servers refuse tokens, and tokenizing downloads a tokenizer.
        check_embedding_ctx_length=False,
        http_async_client=client,
        http_client=_unused_client(),
    )
    return Opened(model, client.aclose)


def _open_chat(service: Service, name: str, options: Options) -> Opened[BaseChatModel]:
    # The call policy limits the time of a call; a timer here would restart with each token.
    timeout = Timeout(None, connect=options.connect_timeout)
    client = _open_client(timeout)
    model = _ThinkingChatOpenAI(
        model=name,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        api_key=SecretStr(_key(service)),
        base_url=service.base_url(),
        timeout=timeout,
        max_retries=0,
        stream_usage=True,
        # The default of 120 s would cut short a longer idle timeout in the call policy.
        stream_chunk_timeout=None,
        use_responses_api=False,
        http_async_client=client,
        http_client=_unused_client(),
    )
    model.async_client = Completions(model.root_async_client)
    return Opened(model, client.aclose)


@cache
def _unused_client() -> DefaultHttpxClient:
    return DefaultHttpxClient(verify=ssl_context())


@cache
def _unused_async_client() -> DefaultAsyncHttpxClient:
    return DefaultAsyncHttpxClient(verify=ssl_context())


def _key(service: Service) -> str:
    name = API_KEYS[service.label]
    key = os.environ.get(name, "").strip()
    if not key:
        raise missing_key(service.label)
    return check_key(name, key)


async def _check(service: Service, names: list[str]) -> list[str]:
    key, base_url = _key(service), service.base_url()
    try:
        async with AsyncOpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=0,
            timeout=CHECK_TIMEOUT,
            http_client=DefaultAsyncHttpxClient(timeout=CHECK_TIMEOUT, verify=ssl_context()),
        ) as client:
            if service.key_path:
                await _check_key(service, client)
            available = await _list_models(service, client)
    except BadInput:
        raise
    except Exception as error:  # including an address or key that cannot be sent
        address, why = scrub(base_url), first_line(error) or type(error).__name__
        raise BadInput(f"Cannot reach {service.label} at {address}: {why}") from error
    listed = set(available)
    missing = [name for name in names if listed.isdisjoint({name, service.listed_as(name)})]
    if not available or not missing:
        return []
    if _is_compatible_server(service):
        return [_unlisted_notice(name, available, base_url) for name in missing]
    fix = "Check the name and the account's access."
    raise_refusals([unknown_model(service.label, name, available, fix) for name in missing])
    return []


def _is_compatible_server(service: Service) -> bool:
    return service.label == "openai" and not _is_at_default_address(service)


def _is_at_default_address(service: Service) -> bool:
    addresses = (service.base_url(), service.default_address)
    return len({urlsplit(each).hostname for each in addresses}) == 1


def _unlisted_notice(name: str, available: list[str], base_url: str) -> str:
    shown, more = ", ".join(available[:_MOST_LISTED]), len(available) - _MOST_LISTED
    others = f" and {more} more" if more > 0 else ""
    return (
        f"{scrub(base_url)} does not list the model '{name}'; it lists {shown}{others}. "
        "The debate uses the name as given."
    )


async def _check_key(service: Service, client: AsyncOpenAI) -> None:
    try:
        await client.get(service.key_path, cast_to=object)
    except APIStatusError as error:
        if error.status_code == 401:
            raise _refused_key_error(service, error) from error


async def _list_models(service: Service, client: AsyncOpenAI) -> list[str]:
    try:
        answer = await client.models.with_raw_response.list()
    except APIStatusError as error:
        if error.status_code in (401, 403):
            raise _refused_key_error(service, error) from error
        # No list, a rate limit or an outage; the call policy handles the last two.
        return []
    try:
        listed = json.loads(answer.text)
    except ValueError as error:
        raise BadInput(
            f"The server at {scrub(service.base_url())} is not "
            f"{service.label}-compatible: it did not send JSON. Check the address."
        ) from error
    # `{"data": [{"id": ...}]}`, or in some services the list alone.
    models = listed.get("data") if isinstance(listed, dict) else listed
    entries = models if isinstance(models, list) else []
    return [str(each["id"]) for each in entries if isinstance(each, dict) and "id" in each]


def _refused_key_error(service: Service, error: APIStatusError) -> BadInput:
    name, why = API_KEYS[service.label], first_line(error.message).rstrip(".")
    return BadInput(f"{service.label} refused the key in {name}: {why}. {how_to_correct(name)}")
