"""Stored settings stay readable in releases with tighter limits or other names."""

from typing import Any

import pytest
from pydantic import ValidationError

from contend.graph.settings import SETTINGS, read_stored

SIDES = [{"name": f"Side {number}", "position": f"We do {number}."} for number in range(9)]
LONG = "An advocate with a name that is longer than this release allows"

TOO_TIGHT: list[tuple[str, dict[str, Any]]] = [
    ("adversarial", {"max_rounds": 99, "min_rounds": 60}),
    ("adversarial", {"min_rounds": 9, "max_rounds": 3}),
    ("adversarial", {"budget": -5, "min_similarity": 7.5}),
    ("forum", {"custom_format_prompt": "{nonsense}", "max_rounds": 0}),
    ("forecast", {"max_argument_length": 9, "roles": ["optimist"]}),
    ("moderated", {"round_count": 21, "closing_statement_max_tokens": 900_000}),
    ("moderated", {"scoring_weights": {"logical_coherence": 7.0}}),
]


def as_json(settings: Any, names: Any) -> dict[str, Any]:
    dumped = settings.model_dump(mode="json")
    return {name: dumped[name] for name in names}


@pytest.mark.parametrize(("protocol", "stored"), TOO_TIGHT)
def test_values_beyond_a_limit_are_read_unchanged(protocol: str, stored: dict[str, Any]) -> None:
    model = SETTINGS[protocol]
    with pytest.raises(ValidationError):
        model.model_validate(stored)
    found = read_stored(model, stored | {"of_another_release": 1})
    assert as_json(found, stored) == stored
    assert found.model_fields_set == {*stored}
    assert found.pause == "never"


@pytest.mark.parametrize("sides", [SIDES, [{"name": LONG}, SIDES[0]]])
def test_advocates_beyond_a_limit_are_read_unchanged(sides: list[dict[str, Any]]) -> None:
    found = read_stored(SETTINGS["moderated"], {"positions": sides, "round_count": 1})
    read = found.model_dump(mode="json")["positions"]
    assert [side["name"] for side in read] == [side["name"] for side in sides]
    assert found.build_seats()[1].name == sides[0]["name"]


@pytest.mark.parametrize(
    "stored",
    [
        {"debate_format": "shouting"},
        {"positions": [{"position": "Nobody says this."}]},
        {"positions": "none"},
        {"round_count": "many"},
        {"statement_max_seconds": []},
    ],
)
def test_invalid_stored_value_becomes_the_default(stored: dict[str, Any]) -> None:
    model = SETTINGS["moderated"]
    found = read_stored(model, stored | {"max_round_count": 7})
    assert as_json(found, stored) == as_json(model(), stored)
    assert found.model_fields_set == {"max_round_count"}
