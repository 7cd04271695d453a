"""OpenRouter, an OpenAI-compatible service (OPENROUTER_API_KEY)."""

import os

from contend.models.providers.openai import Service, compatible
from contend.models.providers.registry import Provider

ADDRESS = "https://openrouter.ai/api/v1"


def provider(_: str) -> Provider:
    return compatible(
        Service(
            "openrouter",
            lambda: os.environ.get("OPENROUTER_BASE_URL", ADDRESS),
            # Its list of models needs no key.
            key_path="/key",
            # Models are listed without the variants `:online`, `:nitro` and `:floor`.
            listed_as=lambda name: name.partition(":")[0],
        )
    )
