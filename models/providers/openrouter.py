"""OpenRouter: OpenAI's shape at another address (OPENROUTER_API_KEY)."""

import os

from contend.models.providers.openai import Service, compatible
from contend.models.providers.registry import Provider

ADDRESS = "https://openrouter.ai/api/v1"


def provider(_: str) -> Provider:
    """The provider for `openrouter:` specs."""
    return compatible(
        Service(
            "openrouter",
            lambda: os.environ.get("OPENROUTER_BASE_URL", ADDRESS),
            # Its list of models is open to everyone, also with a wrong key.
            key_path="/key",
            # `:online`, `:nitro`, `:floor` are ways to call a model that is listed without them.
            listed_as=lambda name: name.partition(":")[0],
        )
    )
