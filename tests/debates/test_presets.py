"""Bundled and user presets, and their precedence."""

from pathlib import Path
from typing import Any

import pytest

from contend import create_debate
from contend.debates.presets import (
    DEFAULT_PROTOCOL,
    find_preset,
    preset_names,
    presets_folder,
    usable_presets,
)
from contend.debates.settings_sources import Configured, configure
from contend.graph.errors import BadInput
from contend.graph.settings import SETTINGS
from contend.models.prices import price_of
from contend.models.providers.registry import parse_spec
from contend.models.seats import models_of


def _write(name: str, text: str) -> Path:
    presets_folder().mkdir(parents=True)
    path = presets_folder() / f"{name}.yaml"
    path.write_text(text)
    return path


def _configured(preset: str, protocol: str = "adversarial", **flags: Any) -> Configured:
    return configure(protocol, flags, None, None, {}, find_preset(preset))


@pytest.mark.parametrize("protocol", SETTINGS)
@pytest.mark.parametrize("name", ["cheap", "frontier", "local"])
def test_shipped_presets_fit_every_protocol(name: str, protocol: str) -> None:
    settings = _configured(name, protocol).settings
    seats = settings.build_seats()
    assert all(settings.has_chosen_model(seat) for seat in seats)
    judges = {seat.model for seat in seats if seat.role == "judge"}
    assert len(judges) == 1
    assert not judges & {seat.model for seat in seats if seat.role != "judge"}
    prices = [price_of(parse_spec(model), {}) for model in models_of(seats)]
    assert all(prices) or name == "local"


def test_three_presets_ship_in_alphabetical_order() -> None:
    assert preset_names() == ["cheap", "frontier", "local"]
    assert all(find_preset(name).description for name in preset_names())


def test_preset_overrides_config_file_but_not_flags(tmp_path: Path) -> None:
    _write("mine", "model: ollama:a\nmax_rounds: 4\nmin_rounds: 2\n")
    config = tmp_path / "config.yaml"
    config.write_text("max_rounds: 9\nmax_retries: 1\n")
    flags = {"min_rounds": "1", "judge_model": "ollama:b"}
    found = configure("adversarial", flags, None, config, {}, find_preset("mine"))
    assert found.sources["max_rounds"] == "preset mine"
    values = found.settings.model_dump()
    assert [values[name] for name in ("max_rounds", "min_rounds", "max_retries")] == [4, 1, 1]
    assert [values[name] for name in ("skeptic_model", "judge_model")] == ["ollama:a", "ollama:b"]


def test_a_user_preset_replaces_the_bundled_one() -> None:
    path = _write("local", "model: ollama:mine\nprotocol: refine\n")
    found = find_preset("local")
    assert (found.path, found.protocol, found.model) == (path, "refine", "ollama:mine")


def test_ignores_settings_of_other_protocols_but_refuses_unknown_ones() -> None:
    path = _write("mine", "skeptic_model: ollama:a\nmax_debate_rounds: 1\n")
    assert _configured("mine").sources == {"skeptic_model": "preset mine"}
    assert _configured("mine", "refine").sources == {"max_debate_rounds": "preset mine"}
    path.write_text("max_round: 3\n")
    with pytest.raises(BadInput, match=r"'max_round' \(preset mine\). Did you mean 'max_rounds'"):
        _configured("mine")


@pytest.mark.parametrize("name", ["../local", "/etc/passwd", "LOCAL", "", "loca"])
def test_refuses_an_unknown_preset_and_lists_the_known_ones(name: str) -> None:
    with pytest.raises(BadInput, match=r"There is no preset .* Known: cheap, frontier, local"):
        find_preset(name)


@pytest.mark.parametrize("text", ["- a\n", "model: [a]\n", "protocol: 3\n", "a: b: c\n"])
def test_error_names_the_file_of_an_invalid_preset(text: str) -> None:
    path = _write("mine", text)
    with pytest.raises(BadInput, match=str(path)):
        find_preset("mine")


def test_an_invalid_preset_does_not_hide_the_others() -> None:
    _write("mine", "a: b: c\n")
    assert [each.name for each in usable_presets()] == ["cheap", "frontier", "local"]


def test_a_preset_cannot_be_combined_with_a_model() -> None:
    with pytest.raises(BadInput, match="Give either a preset or a model"):
        configure("adversarial", {}, "openai:a", None, {}, find_preset("local"))


def test_python_api_accepts_a_preset_and_uses_its_protocol() -> None:
    _write("mine", "model: ollama:a\nprotocol: refine\nmax_debate_rounds: 1\n")
    debate = create_debate("Why?", preset="mine", max_debate_rounds=2)
    assert debate.settings.protocol == "refine"
    assert debate.settings.model_dump()["max_debate_rounds"] == 2
    assert create_debate("Why?", preset="local").settings.protocol == DEFAULT_PROTOCOL
