"""Input and output schemas that Studio and other clients read from the graphs."""

from importlib import import_module
from typing import Any

import pytest

from contend.graph.settings import SETTINGS


def graph(protocol: str) -> Any:
    return import_module(f"contend.graph.{protocol}").graph


@pytest.mark.parametrize("protocol", SETTINGS)
def test_input_schema_has_only_the_fields_a_user_can_set(protocol: str) -> None:
    form = graph(protocol).get_input_jsonschema()
    more = ["outcomes", "due"] if protocol == "forecast" else []
    assert list(form["properties"]) == ["question", "documents", "images", *more]
    assert form["required"] == ["question"]
    assert all(field["description"] for field in form["properties"].values())


def test_outcomes_and_due_date_are_typed() -> None:
    form = graph("forecast").get_input_jsonschema()
    assert form["properties"]["outcomes"]["items"] == {"$ref": "#/$defs/Outcome"}
    assert {"type": "string", "format": "date"} in form["properties"]["due"]["anyOf"]


@pytest.mark.parametrize("protocol", SETTINGS)
def test_output_schema_has_the_results(protocol: str) -> None:
    form = graph(protocol).get_output_jsonschema()
    results = ["final_answer", "stop", "auto_score", "verdict", "forecast", "degraded", "trace"]
    assert list(form["properties"]) == results
    assert all(field["description"] for field in form["properties"].values())
