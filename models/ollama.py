"""Models served by Ollama (OLLAMA_HOST)."""

from httpx import HTTPError, Timeout
from ollama import AsyncClient, ResponseError

from graph.errors import BadInput
from models.providers import Opened, Options, Provider, unknown_model

# Ollama's own default window is small and cuts a longer prompt without a word.
WINDOW = 16_384
CHECK_TIMEOUT = 5.0


def provider(_: str) -> Provider:
    """The provider for `ollama:` specs."""
    return Provider(open=_open, check=_check, window=lambda _: WINDOW, is_free=True)


async def pulled_models() -> list[str]:
    """The models a running Ollama has; raises BadInput when none is running."""
    client = AsyncClient(timeout=CHECK_TIMEOUT)
    try:
        listed = await client.list()
    except (HTTPError, ConnectionError, ResponseError) as error:
        raise BadInput(
            "Ollama is not running or not reachable. Start it with `ollama serve`, set "
            "OLLAMA_HOST, or name another model with --model."
        ) from error
    finally:
        await client.close()  # type: ignore[no-untyped-call]
    return [model.model for model in listed.models if model.model]


def has_model(name: str, pulled: list[str]) -> bool:
    """Whether a name is pulled; a name without a tag means its latest."""
    return name in pulled or f"{name}:latest" in pulled


async def _check(names: list[str]) -> None:
    pulled = await pulled_models()
    for name in names:
        if not has_model(name, pulled):
            raise unknown_model("ollama", name, pulled, f"Get it with `ollama pull {name}`.")


def _open(name: str, options: Options) -> Opened:
    from langchain_ollama import ChatOllama  # a second to import; listing models needs none of it

    model = ChatOllama(
        model=name,
        temperature=options.temperature,
        num_ctx=options.context_tokens or WINDOW,
        client_kwargs={"timeout": Timeout(options.total_timeout, connect=options.connect_timeout)},
    )
    client = model._async_client
    return Opened(model, client.close if client else None)
