"""Any other provider that langchain's init_chat_model knows, when its package is installed."""

from functools import partial
from typing import Any

from langchain.chat_models import init_chat_model

from graph.errors import BadInput
from models.providers import Opened, Options, Provider


def provider(name: str) -> Provider:
    """The provider of this name."""
    return Provider(
        open=partial(_open, name),
        check=partial(_check, name),
        reports_finish=False,
        structured_method=None,
    )


def _open(provider_name: str, name: str, options: Options) -> Opened:
    wanted: dict[str, Any] = {"max_retries": 0, "timeout": options.total_timeout}
    if options.temperature is not None:
        wanted["temperature"] = options.temperature
    return Opened(init_chat_model(name, model_provider=provider_name, **wanted))


async def _check(provider_name: str, names: list[str]) -> None:
    """Build the models once: that finds a missing package or key without paying for a call."""
    for name in names:
        try:
            _open(provider_name, name, Options())
        except ImportError as error:
            raise BadInput(
                f"{provider_name}:{name} needs a package that is not installed: {error}"
            ) from error
        except Exception as error:
            raise BadInput(f"{provider_name}:{name} cannot be used: {error}") from error
