"""Keeps secrets out of traces sent to LangSmith."""

import re
from typing import Any

from langsmith.run_trees import get_cached_client
from langsmith.utils import tracing_is_enabled

from contend.models.failures import scrub

_ROUND = re.compile(r"r(\d+)\.")


def scrub_traces() -> None:
    """Remove secrets from all traces of this process."""
    if tracing_is_enabled():
        get_cached_client(anonymizer=scrub_data)


def call_metadata(protocol: str, debate: str, seat: str, asked: str) -> dict[str, Any]:
    """Return the metadata that identifies a call in a trace; `asked` begins with the round."""
    round_number = _ROUND.match(asked)
    about = {"debate_id": debate, "protocol": protocol, "seat": seat, "call": asked}
    phase = {"phase": asked.split(".")[1]} if asked.count(".") > 1 else {}
    return about | phase | ({"round": int(round_number[1])} if round_number else {})


def call_title(seat_name: str, asked: str) -> str:
    """Return the name of a call's run in a trace, such as Skeptic, round 2."""
    round_number = _ROUND.match(asked)
    return f"{seat_name}, round {round_number[1]}" if round_number else seat_name


def scrub_data(data: Any) -> Any:
    if isinstance(data, str):
        return scrub(data)
    if isinstance(data, dict):
        return {key: scrub_data(value) for key, value in data.items()}
    return [scrub_data(each) for each in data] if isinstance(data, list) else data
