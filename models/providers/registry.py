"""Opens models by spec, such as `ollama:qwen3:32b`. Imports providers only when needed."""

import asyncio
import difflib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from contend.graph.errors import BadInput
from contend.graph.values import HUMAN

if TYPE_CHECKING:  # commands that only read debates need no model
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

Model_co = TypeVar("Model_co", covariant=True)


@dataclass(frozen=True)
class Options:
    temperature: float | None = None
    connect_timeout: float = 10
    total_timeout: float = 900
    context_tokens: int | None = None
    structured: bool = False
    max_tokens: int | None = None  # token limit for the answer, including thinking


@dataclass(frozen=True)
class Opened(Generic[Model_co]):
    model: Model_co
    close: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True)
class Provider:
    open: "Callable[[str, Options], Opened[BaseChatModel]]"
    check: Callable[[list[str]], Awaitable[list[str] | None]]
    """Raises BadInput if a model is unusable, without paid calls. May return notices."""
    # Tokens for a prompt and its answer together, and the most a user may set; None if unlimited.
    window: Callable[[str], int | None] = lambda _: None
    largest_window: Callable[[str], int | None] = lambda _: None
    is_free: bool = False
    has_list_prices: Callable[[], bool] = lambda: True  # False at a custom address
    is_small: Callable[[str], bool] = lambda _: False  # gets short prompts and few rounds
    is_demonstration: Callable[[str], bool] = lambda _: False  # its scores mean nothing
    reports_finish: bool = True
    """Whether complete answers always have a finish reason. If so, others count as truncated."""
    has_first_token_limit: bool = True  # False for built-in models, which may be slow
    structured_method: str | None = "json_schema"  # None for langchain's default
    open_embeddings: "Callable[[str, Options], Opened[Embeddings]] | None" = None
    # Abilities of a model that was checked; None if unknown.
    takes_images: Callable[[str], bool | None] = lambda _: None
    takes_tools: Callable[[str], bool | None] = lambda _: None
    thinks: Callable[[str], bool | None] = lambda _: None
    caches_marked_parts: bool = False  # whether it caches a prompt only up to marks in it
    history_needs_tools: bool = False
    """Whether tools must be sent with a history of tool calls, even if calls are forbidden."""


API_KEYS = {"openai": "OPENAI_API_KEY", "openrouter": "OPENROUTER_API_KEY"}
# Includes providers with optional packages, and the variable names these packages read.
PROVIDER_KEYS = API_KEYS | {
    "anthropic": "ANTHROPIC_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "nvidia": "NVIDIA_API_KEY",
    "perplexity": "PPLX_API_KEY",
    "together": "TOGETHER_API_KEY",
    "xai": "XAI_API_KEY",
}

# Providers with a module in this folder.
_OWN = {"ollama": "ollama", "openai": "openai", "openrouter": "openai", "embedded": "embedded"}
# Other providers known to init_chat_model; listed here, because importing it takes a second.
_GENERIC = frozenset({
    "anthropic", "anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock",
    "bedrock_converse", "cohere", "deepseek", "fireworks", "google_anthropic_vertex",
    "google_genai", "google_vertexai", "groq", "huggingface", "ibm", "litellm", "meta",
    "mistralai", "nvidia", "perplexity", "together", "upstage", "xai",
})  # fmt: skip
# Prefixes of names often written without a provider; with a tag (`gpt-oss:20b`) they mean Ollama.
_HOSTED_NAMES = {"gpt-": "openai", "claude-": "anthropic", "gemini-": "google_genai"}
_registered: dict[str, Provider] = {}
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, Options], Opened[Any]]] = (
    WeakKeyDictionary()
)
_runs: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


@dataclass(frozen=True)
class ModelSpec:
    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" if self.name else self.provider


def parse_spec(text: str) -> ModelSpec:
    """Parse `provider:model`. Text without a known provider, such as `qwen3:32b`, means Ollama."""
    head, colon, tail = text.strip().partition(":")
    if head == HUMAN:
        if tail:
            raise BadInput(f"Write '{HUMAN}' alone for a seat that a person takes, not '{text}'.")
        return ModelSpec(HUMAN, "")
    known = [*_OWN, *_GENERIC, *_registered]
    if head in known:
        if not tail:
            raise BadInput(f"'{text}' has a provider but no model name. Write {head}:MODEL.")
        return ModelSpec(head, tail)
    # Strict: `llama3`, `mistral` and `deepseek-r1` are Ollama models, not typos.
    nearest = difflib.get_close_matches(head, known, n=1, cutoff=0.9)
    if not head or (colon and nearest):
        hint = f" Did you mean '{nearest[0]}:{tail}'?" if nearest else ""
        raise BadInput(f"Unknown provider '{head}' in the model '{text}'.{hint}")
    hosted = next((p for sign, p in _HOSTED_NAMES.items() if head.startswith(sign)), None)
    if hosted and not colon:
        raise BadInput(
            f"Write a model as PROVIDER:NAME. Did you mean '{hosted}:{head}' (or 'ollama:{head}')?"
        )
    before, _, after = text.strip().partition("/")
    if before in _OWN and after:
        raise BadInput(f"Write a model as PROVIDER:NAME. Did you mean '{before}:{after}'?")
    return ModelSpec("ollama", text.strip())


def explain_ollama_default(text: str) -> str:
    """Return why a spec without a provider means Ollama, or an empty string for other specs."""
    head, colon, tail = text.strip().partition(":")
    if head == "ollama" or parse_spec(text).provider != "ollama":
        return ""
    why = f"there is no provider '{head}'" if colon else "it has no provider"
    said = f"'{text.strip()}' was taken for an Ollama model, because {why}."
    nearest = difflib.get_close_matches(head, [*_OWN, *_GENERIC], n=1, cutoff=0.8)
    if colon and nearest:
        return f"{said} Did you mean '{nearest[0]}:{tail}'?"
    return (
        f"{said} Write a model as PROVIDER:NAME; providers are {', '.join(_OWN)}, and others if "
        "installed, such as anthropic."
    )


def provider_of(spec: ModelSpec) -> Provider:
    if spec.provider in _registered:
        return _registered[spec.provider]
    name = HUMAN if spec.provider == HUMAN else _OWN.get(spec.provider, "generic")
    module = importlib.import_module(f"contend.models.providers.{name}")
    provider: Provider = module.provider(spec.provider)
    _registered[spec.provider] = provider
    return provider


def register(name: str, provider: Provider) -> None:
    _registered[name] = provider


def open_model(spec: ModelSpec, options: Options) -> "BaseChatModel":
    opener = provider_of(spec).open
    model: BaseChatModel = _open_once(str(spec), options, lambda: opener(spec.name, options))
    return model


def open_embeddings(spec: ModelSpec, options: Options) -> "Embeddings":
    opener = provider_of(spec).open_embeddings
    if opener is None:
        raise BadInput(f"The provider '{spec.provider}' has no embedding models here ({spec}).")
    model: Embeddings = _open_once(f"embed {spec}", options, lambda: opener(spec.name, options))
    return model


def open_shared(name: str, opener: Callable[[], Opened[Model_co]]) -> Model_co:
    shared: Model_co = _open_once(name, Options(), opener)
    return shared


def _open_once(name: str, options: Options, opener: Callable[[], Opened[Any]]) -> Any:
    opened = _open.setdefault(asyncio.get_running_loop(), {})
    if (name, options) not in opened:
        opened[name, options] = opener()
    return opened[name, options].model


@asynccontextmanager
async def open_models() -> AsyncIterator[None]:
    """Keep models open during a run. When the event loop's last run ends, close them all."""
    loop = asyncio.get_running_loop()
    _runs[loop] = _runs.get(loop, 0) + 1
    try:
        yield
    finally:
        _runs[loop] -= 1
        if not _runs[loop]:
            await close_models()


async def close_models() -> None:
    # Remove the models before closing them, so that a run that starts meanwhile opens new ones.
    for opened in _open.pop(asyncio.get_running_loop(), {}).values():
        if opened.close:
            # An error while closing must not affect other connections or the debate.
            with suppress(Exception):
                await opened.close()


async def check_models(specs: Iterable[str]) -> list[str]:
    parsed = sorted({parse_spec(text) for text in specs}, key=str)
    notices: list[str] = []
    refused: list[BadInput] = []
    for _, group in groupby(parsed, key=lambda spec: spec.provider):
        first, *others = group
        names = [first.name, *(spec.name for spec in others)]
        try:
            notices += await provider_of(first).check(names) or []
        except BadInput as error:
            refused.append(error)
    raise_refusals(refused)
    return notices


def raise_refusals(refused: Sequence[BadInput]) -> None:
    """Raise one BadInput for all refused models, if any."""
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise BadInput(" ".join(str(each) for each in refused)) from refused[0]


def unknown_model(provider: str, name: str, available: Iterable[str], fix: str) -> BadInput:
    nearest = difflib.get_close_matches(name, list(available), n=1, cutoff=0.5)
    hint = f" Did you mean '{provider}:{nearest[0]}'?" if nearest else ""
    return BadInput(f"{provider} has no model '{name}'.{hint} {fix}")
