"""OpenRouter: OpenAI's shape at another address (OPENROUTER_API_KEY)."""

import os

from models.openai import compatible
from models.providers import Provider

ADDRESS = "https://openrouter.ai/api/v1"


def provider(_: str) -> Provider:
    """The provider for `openrouter:` specs."""
    return compatible(
        "openrouter",
        "OPENROUTER_API_KEY",
        lambda: os.environ.get("OPENROUTER_BASE_URL", ADDRESS),
    )
