"""Settings of seats: ids, chosen models and rounds."""

import math

import pytest
from pydantic import ValidationError

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import (
    SETTINGS,
    AdversarialSettings,
    DebateSettings,
    ForumSettings,
    RefineSettings,
    SeatChoice,
    first_duplicate_position,
)
from tests.support.scripted import refine_settings


def seats(*names: str) -> tuple[SeatChoice, ...]:
    return tuple(SeatChoice(name=name, model="ollama:m") for name in names)


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["Ann", "Ben"], ["ann", "ben"]),
        (["The Economist", "the_sceptic!"], ["the-economist", "the-sceptic"]),
        (["A b", "a-b", "A/B"], ["a-b", "a-b-2", "a-b-3"]),
        (["千问", "🧱", "…"], ["千问", "seat", "seat-2"]),
        (["Judge", "User", "Embedding"], ["judge-2", "user-2", "embedding-2"]),
        (["a 2", "a", "a?"], ["a-2", "a", "a-3"]),
    ],
)
def test_seat_ids_are_unique_slugs(names: list[str], ids: list[str]) -> None:
    settings = RefineSettings(seats=seats(*names))
    assert [seat.id for seat in settings.build_seats()] == [*ids, "judge"]
    assert settings.opening_seats == tuple(ids)


def test_default_seats_have_their_models() -> None:
    table = [(seat.id, seat.role, seat.model) for seat in RefineSettings().build_seats()]
    assert table == [
        ("debater-1", "debater", "ollama:qwen3:32b"),
        ("debater-2", "debater", "ollama:llama3.3:70b"),
        ("debater-3", "debater", "ollama:gemma3:27b"),
        ("judge", "judge", "ollama:gemma3:27b"),
    ]


@pytest.mark.parametrize("schema", SETTINGS.values(), ids=SETTINGS)
class TestChosenModels:
    def test_no_model_is_chosen_by_default(self, schema: type[DebateSettings]) -> None:
        settings = schema()
        assert not any(settings.has_chosen_model(seat) for seat in settings.build_seats())

    def test_one_model_is_chosen_for_every_seat(self, schema: type[DebateSettings]) -> None:
        settings = schema.model_validate(schema.settings_for_model("openai:one"))
        assert {seat.model for seat in settings.build_seats()} == {"openai:one"}
        assert all(settings.has_chosen_model(seat) for seat in settings.build_seats())

    def test_chosen_models_are_stored_as_chosen(self, schema: type[DebateSettings]) -> None:
        chosen = {seat.id: f"openai:{seat.id}" for seat in schema().build_seats()}
        stored = schema().with_models(chosen).model_dump(mode="json")
        again = schema.model_validate(stored)
        assert {seat.id: seat.model for seat in again.build_seats()} == chosen
        assert all(again.has_chosen_model(seat) for seat in again.build_seats())


def test_models_of_seats_and_judge_are_chosen_separately() -> None:
    settings = RefineSettings(seats=seats("Ann", "Ben"))
    assert [settings.has_chosen_model(seat) for seat in settings.build_seats()] == [
        True,
        True,
        False,
    ]
    settings = RefineSettings(judge_model="ollama:m")
    assert [settings.has_chosen_model(seat) for seat in settings.build_seats()] == [
        False,
        False,
        False,
        True,
    ]


def test_model_option_shows_how_to_choose_a_model() -> None:
    ann, *_, judge = refine_settings().build_seats()
    assert refine_settings().model_option(ann) == "--seat 'Ann=PROVIDER:NAME'"
    assert refine_settings().model_option(judge) == "--set judge_model=PROVIDER:NAME"
    proposer = AdversarialSettings().build_seats()[0]
    assert AdversarialSettings().model_option(proposer) == "--set proposer_model=PROVIDER:NAME"


@pytest.mark.parametrize("count", [0, 1, 9])
def test_too_few_or_too_many_seats_are_refused(count: int) -> None:
    with pytest.raises(ValidationError, match=f"2 to 8 seats, not {count}"):
        RefineSettings(seats=seats(*(f"s{n}" for n in range(count))))


@pytest.mark.parametrize("count", [2, 8])
def test_smallest_and_largest_number_of_seats_are_accepted(count: int) -> None:
    settings = RefineSettings(seats=seats(*(f"s{n}" for n in range(count))))
    assert len(settings.build_seats()) == count + 1


def test_template_seats_must_be_answering_seats() -> None:
    assert RefineSettings().template_seats is None
    assert RefineSettings(template_seats=("debater-2",)).template_seats == ("debater-2",)
    with pytest.raises(ValidationError, match="names 'judge'"):
        RefineSettings(template_seats=("judge",))


@pytest.mark.parametrize(
    ("settings", "rounds"),
    [
        (AdversarialSettings(), (3, 5)),
        (RefineSettings(), (2, 2)),
        (RefineSettings(max_debate_rounds=7), (7, 7)),
        (RefineSettings(enable_debate=False), (0, 0)),
    ],
)
def test_strategy_has_the_configured_rounds(
    settings: DebateSettings, rounds: tuple[int, int]
) -> None:
    assert strategy_for(settings).rounds == rounds


@pytest.mark.parametrize("protocol", SETTINGS)
@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_infinite_and_nan_settings_are_refused(protocol: str, number: float) -> None:
    """JSON, in which settings are stored, has no such numbers, and PostgreSQL refuses them."""
    with pytest.raises(ValidationError):
        SETTINGS[protocol].model_validate({"total_timeout": number})


def test_only_equal_positions_are_duplicates() -> None:
    assert first_duplicate_position(["Use 10²", "Use 102"]) is None
    assert first_duplicate_position(["It does.", " it  does"]) == "It does."


@pytest.mark.parametrize(
    ("settings", "adapted"),
    [
        (AdversarialSettings(), {"min_rounds": 2, "max_rounds": 2, "templates": False}),
        (AdversarialSettings(max_rounds=4), {"min_rounds": 3, "max_rounds": 4, "templates": False}),
        (AdversarialSettings(templates=True), {"max_rounds": 2, "templates": True}),
        (ForumSettings(), {"max_rounds": 2, "templates": False}),
        (RefineSettings(), {"max_debate_rounds": 2, "templates": False}),
    ],
)
def test_small_models_default_to_two_rounds_without_templates(
    settings: DebateSettings, adapted: dict[str, object]
) -> None:
    found = settings.adapted_to_small_models()
    assert {name: getattr(found, name) for name in adapted} == adapted
