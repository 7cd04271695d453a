"""Provides examples for the API's documentation: one request and the result."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def example(name: str) -> Any:
    """Return the example request, the result, or a part of the result, such as `round`."""
    if name in ("request", "result"):
        text = files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
        return json.loads(text)
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
