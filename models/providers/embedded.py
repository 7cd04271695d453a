from __future__ import annotations

import asyncio
import atexit
import importlib
import os
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.failures import first_line
from contend.models.providers import hub
from contend.models.providers.gguf import MAGIC, read_header
from contend.models.providers.minilm import open_minilm
from contend.models.providers.registry import Opened, Options, Provider, raise_refusals
from contend.models.providers.response_hooks import watch_client
from contend.models.providers.weights import KNOWN, SMALLEST, weights_path

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_openai import ChatOpenAI

_LEAST_CONTEXT = 128
# Context window per slot: the default model's, which fits into memory for larger models too.
_WINDOW = 8192
# The smallest model can serve two seats in parallel; others may need too much memory.
_SLOTS_SMALLEST = 2
# A model with fewer parameters than this gets short prompts, and turns of a few sentences.
_SMALL = 4_000_000_000

# The fewest and most characters in a sentence, not counting its first and its last two.
_SHORTEST = 24
_LONGEST = 260
_FULL_STOP_BIAS = 1.0
# Prevents loops. A plain repeat penalty would also penalize the full stop.
_DRY = {"dry_multiplier": 0.5, "dry_base": 1.75, "dry_allowed_length": 8, "dry_penalty_last_n": 128}
# The smallest model loops sooner, so its penalty reaches back into the prompt. That would make a
# better model misspell words to avoid repeating them.
_DRY_OF_SMALLEST = {**_DRY, "dry_allowed_length": 3, "dry_penalty_last_n": 256}


class EmbeddedUnavailable(Exception):
    pass


@dataclass(frozen=True)
class _Served:
    server: Any
    url: str
    key: str = field(repr=False)


# Sentences per turn for a small model, with enough tokens even if every character is a token.
_FEWEST_SENTENCES, _SENTENCES_OF_SMALLEST, _SENTENCES = 2, 4, 8
_TOKENS_PER_SENTENCE = 300
_STRUCTURED_TOKENS = 1024
# At 0 a small model loops, even with a schema.
_STRUCTURED_TEMPERATURE = 0.2

_servers: dict[Path, _Served] = {}
_lock = threading.Lock()


def provider(_: str) -> Provider:
    def window(name: str) -> int:
        return context_tokens(find_weights(name, data_home()))

    return Provider(
        open=_open,
        check=_check,
        window=window,
        # The server was started with this window and rejects longer prompts.
        largest_window=window,
        is_free=True,
        has_first_token_limit=False,
        is_small=_is_small,
        is_demonstration=lambda name: name == SMALLEST,
        open_embeddings=lambda name, _: Opened(open_minilm(name)),
        takes_images=lambda _: False,
        takes_tools=lambda _: False,
    )


def _open(name: str, options: Options) -> Opened[BaseChatModel]:
    # A schema limits structured answers; `max_sentences` limits the other answers of small models.
    temperature, max_sentences, max_tokens = options.temperature, None, options.max_tokens
    if options.structured:
        temperature, max_tokens = _STRUCTURED_TEMPERATURE, _STRUCTURED_TOKENS
    elif _is_small(name):
        max_sentences = _SENTENCES_OF_SMALLEST if name == SMALLEST else _SENTENCES
        max_tokens = _TOKENS_PER_SENTENCE * max_sentences
    model = chat_model(
        find_weights(name, data_home()),
        temperature=temperature,
        max_sentences=max_sentences,
        max_tokens=max_tokens,
        timeout=options.total_timeout,
    )
    client = model.http_async_client
    return Opened(model, client.aclose if client else None)


def _is_small(name: str) -> bool:
    try:
        return _is_small_file(find_weights(name, data_home()))
    except (OSError, ValueError):  # the error is reported before a debate starts
        return False


def _is_small_file(path: Path) -> bool:
    if path.stem in KNOWN:
        return True
    parameters = read_header(path).parameters
    return parameters is None or parameters < _SMALL


async def _check(names: list[str]) -> None:
    refused: list[BadInput] = []
    for name in names:
        try:
            path = find_weights(name, data_home())
            await asyncio.to_thread(_serve, path)
        except (ValueError, EmbeddedUnavailable) as error:
            refused.append(BadInput(str(error)))
    raise_refusals(refused)


def find_weights(name: str, home: Path) -> Path:
    if known := KNOWN.get(name):
        return weights_path(known, home)
    if name.startswith(hub.PREFIX):
        path = hub.hub_path(name, home)
        if not path.is_file():
            raise ValueError(f"{name} is not downloaded: run `contend models pull {name}`.")
        return path
    if not name.endswith(".gguf"):
        names = ", ".join(f"embedded:{each}" for each in KNOWN)
        raise ValueError(
            f"{name} is not a built-in model: use {names}, embedded:PATH.gguf "
            "or embedded:hf:OWNER/REPO/FILE.gguf."
        )
    try:
        path = Path(name).expanduser()
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except (OSError, RuntimeError, ValueError) as error:  # unknown ~user, NUL in the name
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"Cannot read {name}: {why}.") from error
    if magic != MAGIC:
        raise ValueError(f"{name} is not a GGUF file.")
    return path


def context_tokens(path: Path) -> int:
    if known := KNOWN.get(path.stem):
        return known.context_tokens
    tokens = read_header(path).context_tokens or _WINDOW
    return min(_WINDOW, tokens) if tokens >= _LEAST_CONTEXT else _WINDOW


def chat_model(
    path: Path,
    *,
    temperature: float | None,
    max_sentences: int | None = None,  # for prose, never for JSON
    max_tokens: int | None = None,
    timeout: float | None = None,
) -> ChatOpenAI:
    # Imported here, because they take a second, and commands such as --help must not wait.
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    served = _serve(path)
    client = DefaultAsyncHttpxClient(trust_env=False)
    watch_client(client)
    return ChatOpenAI(
        model=path.stem,
        base_url=f"{served.url}/v1",
        api_key=served.key,
        # Set even though unused; otherwise the user's OPENAI_* and *_PROXY variables would apply.
        organization="embedded",
        openai_proxy="",
        http_client=DefaultHttpxClient(trust_env=False),
        http_async_client=client,
        # A connection that is kept alive would outlive the event loop that opened it.
        default_headers={"Connection": "close"},
        use_responses_api=False,
        max_retries=0,
        stream_usage=True,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout=timeout,
        # The call policy has its own idle timeout.
        stream_chunk_timeout=None,
        extra_body=_request_options(path, max_sentences),
    )


def _request_options(path: Path, max_sentences: int | None) -> dict[str, Any] | None:
    guard = _DRY_OF_SMALLEST if path.stem == SMALLEST else _DRY
    if not max_sentences:
        return guard if _is_small_file(path) else None
    least = min(_FEWEST_SENTENCES, max_sentences)
    grammar = (
        f"root ::= sentence (gap sentence){{{least - 1},{max_sentences - 1}}}",
        'gap ::= " " | "\\n\\n"',
        f"sentence ::= [A-Z] inner{{{_SHORTEST},{_LONGEST}}} last [.!?]",
        "inner ::= other | number other",
        # No lists, markup or labels, which confuse a small model.
        "other ::= [^0-9.!?:\\n\\r\\t*#`|<>_~;()\\\\\\[\\]{}]",
        # Small models count forever if a number may directly follow another and its full stop.
        "number ::= [0-9]{1,9} ([.] [0-9]{1,3})?",
        "last ::= [a-zA-Z%'\"] | number",
        "",
    )
    # The bias nudges the model to end sentences, which keeps them short.
    bias = [[".", _FULL_STOP_BIAS]]
    return {"grammar": "\n".join(grammar), "logit_bias": bias, **guard}


def close() -> None:
    with _lock:
        _servers.clear()


def _serve(path: Path) -> _Served:
    key = path.resolve()
    with _lock:
        if key not in _servers:
            if not _servers:
                # Close before the interpreter unloads modules, while threads can still end.
                atexit.unregister(close)
                atexit.register(close)
            _servers[key] = _start(key)
        return _servers[key]


def _start(path: Path) -> _Served:
    if not path.is_file():
        raise EmbeddedUnavailable(
            f"The model file {path.name} is missing: run `contend models pull`, "
            "or choose another model."
        )
    llama = _import_llama()
    key = secrets.token_urlsafe(32)
    try:
        server = llama.Server(_parameters(llama, path, key))
    except Exception as error:  # C++ code raises many kinds
        raise EmbeddedUnavailable(
            f"Cannot load the model file {path.name}: it may be damaged, unsupported by "
            "llama.cpp, or too large for this machine's memory. Run `contend models pull` again "
            "or choose another model."
        ) from error
    return _Served(server, server.listening_address, key)


def _import_llama() -> Any:
    # Threads that spin for long starve each other when another process is busy; without any
    # spinning, an idle machine generates at a third of its speed. Both are read once, at import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise EmbeddedUnavailable(
            f"The built-in model cannot run here ({first_line(error)}): install what is missing "
            "(libgomp is the package libgomp1 on Debian), or choose another model."
        ) from error


def _parameters(llama: Any, path: Path, key: str) -> Any:
    parameters = llama.CommonParams()
    parameters.model.path = str(path)
    # Otherwise every answer would name its model by the file's path.
    parameters.model_alias = {path.stem}
    parameters.n_parallel = _SLOTS_SMALLEST if path.stem == SMALLEST else 1
    parameters.n_ctx = context_tokens(path) * parameters.n_parallel
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.ui = False
    parameters.endpoint_slots = False
    # Log nothing, because llama.cpp writes its log to the user's terminal.
    parameters.verbosity = -1
    # The default keeps up to 8 GiB of old prompts in memory.
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    return parameters
