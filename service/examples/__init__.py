"""Provides examples for the API's documentation."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def examples_of_operations() -> dict[str, dict[str, Any]]:
    """Return examples by operation, such as `GET /path`: an `answer` and any `request` body."""
    found: dict[str, dict[str, Any]] = _read("api")
    return found


@cache
def example(name: str) -> Any:
    """Return the example named `request` or `result`, or a part of the result such as `round`."""
    if name in ("request", "result"):
        return _read(name)
    result = example("result")
    rounds = result["debate_log"]["rounds"]
    match name:
        case "round":
            return {"round": rounds[0]}
        case "role":
            held = (each for one in rounds for each in one["arguments"])
            return {"arguments": [each for each in held if each["role"] == "historian"]}
    parts = ("consensus_score", "probability_distribution", "disagreement_map")
    return {part: result[part] for part in parts}


def _read(name: str) -> Any:
    return json.loads(files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
