import os
from contextlib import suppress
from functools import partial
from typing import Any

from httpx import AsyncClient, HTTPError
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from contend.graph.errors import BadInput
from contend.models.failures import first_line
from contend.models.keys import check_key, how_to_correct, missing_key
from contend.models.providers.registry import PROVIDER_KEYS, Opened, Options, Provider
from contend.models.providers.response_hooks import watch_client

# Providers whose complete streams end with a finish reason, according to their source code.
_REPORT_FINISH = frozenset({
    "anthropic", "bedrock_converse", "deepseek", "fireworks", "google_genai", "groq", "mistralai",
    "together", "xai",
})  # fmt: skip

# Providers that need a key, and for each a free address that answers 401 to a wrong key.
_MODEL_LISTS = {
    "anthropic": "https://api.anthropic.com/v1/models",
    "deepseek": "https://api.deepseek.com/models",
    "fireworks": "https://api.fireworks.ai/inference/v1/models",
    "groq": "https://api.groq.com/openai/v1/models",
    "mistralai": "https://api.mistral.ai/v1/models",
    "together": "https://api.together.xyz/v1/models",
    "xai": "https://api.x.ai/v1/models",
}
# Variables that set another address, where the provider's own keys and prices do not apply.
_OTHER_ADDRESS = ("API_BASE", "API_URL", "BASE_URL", "ENDPOINT")
_CHECK_TIMEOUT = 10.0

# Provider -> the optional dependency of this package that installs it.
_EXTRAS = {
    **{name: name for name in ("anthropic", "deepseek", "fireworks", "groq", "mistralai", "xai")},
    "google_genai": "google-genai",
    **dict.fromkeys(("anthropic_bedrock", "bedrock", "bedrock_converse"), "aws"),
}


def provider(name: str) -> Provider:
    return Provider(
        open=partial(_open, name),
        check=partial(_check, name),
        has_list_prices=lambda: not _has_other_address(name),
        reports_finish=name in _REPORT_FINISH,
        structured_method=None,
        caches_marked_parts=name == "anthropic",
        takes_tools=partial(_takes_tools, name),
        history_needs_tools=True,  # some providers require this, and none refuse it
    )


def _takes_tools(provider_name: str, name: str) -> bool | None:
    model = _open(provider_name, name, Options()).model
    if type(model).bind_tools is BaseChatModel.bind_tools:
        return False
    return model.profile.get("tool_calling") if model.profile else None


def _open(provider_name: str, name: str, options: Options) -> Opened[BaseChatModel]:
    wanted = {"temperature": options.temperature, "max_tokens": options.max_tokens}
    given: dict[str, Any] = {key: value for key, value in wanted.items() if value is not None}
    given |= {"max_retries": 0, "timeout": options.total_timeout}
    model = init_chat_model(name, model_provider=provider_name, **given)
    if hasattr(model, "stream_chunk_timeout"):
        model.stream_chunk_timeout = None  # the call policy has its own
    for client_name in ("root_async_client", "_async_client"):  # OpenAI's, Anthropic's
        if client := getattr(getattr(model, client_name, None), "_client", None):
            watch_client(client)
    return Opened(model)


async def _check(provider_name: str, names: list[str]) -> None:
    """Raise BadInput if a package or key is missing, or a model cannot be opened."""
    for name in names:
        try:
            _open(provider_name, name, Options())
        except ImportError as error:
            raise BadInput(_missing_package(provider_name, name, error)) from error
        except Exception as error:
            why = " ".join(filter(None, (_why(error), _key_hint(provider_name))))
            raise BadInput(f"Cannot use {provider_name}:{name}: {why}") from error
    # Check the key, because some models open without a valid key and fail only in the first call.
    if provider_name in _MODEL_LISTS:
        if _key_hint(provider_name):
            raise missing_key(provider_name)
        await _check_key(provider_name)


async def _check_key(provider_name: str) -> None:
    """Raise BadInput if the provider refuses the key. Ignore all other errors."""
    name = PROVIDER_KEYS[provider_name]
    if _has_other_address(provider_name):
        return
    key = check_key(name, os.environ[name].strip())
    headers = {"Authorization": f"Bearer {key}"}
    if provider_name == "anthropic":
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    with suppress(HTTPError, OSError):
        async with AsyncClient(timeout=_CHECK_TIMEOUT) as client:
            answer = await client.get(_MODEL_LISTS[provider_name], headers=headers)
        if answer.status_code == 401:
            raise BadInput(f"{provider_name} refused the key in {name}. {how_to_correct(name)}")


def _has_other_address(provider_name: str) -> bool:
    prefix = PROVIDER_KEYS.get(provider_name, provider_name.upper()).removesuffix("API_KEY")
    named = (name for name in os.environ if name.startswith(prefix))
    return any(name.endswith(_OTHER_ADDRESS) and os.environ[name] for name in named)


def _key_hint(provider_name: str) -> str:
    name = PROVIDER_KEYS.get(provider_name)
    if not name or os.environ.get(name, "").strip():
        return ""
    return f"({name} is not set. Add it with `contend keys set {name}`.)"


def _missing_package(provider_name: str, name: str, error: ImportError) -> str:
    needs = f"{provider_name}:{name} needs a package that is not installed"
    if extra := _EXTRAS.get(provider_name):
        return f"{needs}. Install it with: pip install 'contend[{extra}]'"
    return f"{needs}: {first_line(error)}"


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_line(error.errors(include_input=False)[0]["msg"])
    return first_line(error)
