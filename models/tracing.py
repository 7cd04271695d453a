"""Keeps secrets out of the traces sent to LangSmith if the user has enabled tracing."""

from typing import Any

from langsmith.run_trees import get_cached_client
from langsmith.utils import tracing_is_enabled

from contend.models.failures import scrub


def scrub_traces() -> None:
    """Remove secrets from everything that is traced in this process."""
    if tracing_is_enabled():
        get_cached_client(anonymizer=scrub_data)


def scrub_data(data: Any) -> Any:
    if isinstance(data, str):
        return scrub(data)
    if isinstance(data, dict):
        return {key: scrub_data(value) for key, value in data.items()}
    return [scrub_data(each) for each in data] if isinstance(data, list) else data
