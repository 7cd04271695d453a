import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from contend.cli.view.console import print_message, stdout, write_json
from contend.debates.presets import Preset, find_preset, preset_names, presets_folder
from contend.debates.settings_sources import configure
from contend.graph.settings import DebateSettings, data_home
from contend.models.embeddings import EMBEDDED_EMBEDDING
from contend.models.prices import price_table
from contend.models.providers.registry import API_KEYS
from contend.models.providers.weights import default_chat_model


def print_settings(
    protocol: str,
    flags: dict[str, Any],
    model: str | None,
    file: Path | None,
    preset: Preset | None = None,
    *,
    as_json: bool,
) -> None:
    configured = configure(protocol, flags, model, file, dict(os.environ), preset)
    for notice in configured.notices:
        print_message(f"Note: {notice}", style="warning")
    described = configured.described()
    if as_json:
        write_json({"protocol": protocol, "settings": described})
        return
    for name, each in described.items():
        line = f"{name} = {_as_yaml(each['value'])}  ({each['source']})"
        stdout().print(line, soft_wrap=True)
    settings = configured.settings
    lines = (_chat_line(settings), _embedding_line(settings), _prices_line(settings))
    stdout().print(f"\n{' '.join(lines)}", soft_wrap=True)


def print_presets(*, as_json: bool) -> None:
    presets = [find_preset(name) for name in preset_names()]
    if as_json:
        write_json([_describe_preset(each) for each in presets])
        return
    for each in presets:
        about = each.description or f"Your own, in {each.path}."
        line = f"{each.name} ({each.protocol})  {about}"
        stdout().print(line, soft_wrap=True, markup=False)
    stdout().print(f"\nAdd your own in {presets_folder()}.", soft_wrap=True)


def _describe_preset(preset: Preset) -> dict[str, Any]:
    return {**asdict(preset), "path": str(preset.path)}


def _as_yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("...\n").strip()


def _embedding_line(settings: DebateSettings) -> str:
    if "embedding_model" in settings.model_fields_set:
        return "Embedding model: as set above."
    return (
        f"Embedding model: {settings.embedding_model} if the debate uses Ollama and Ollama has it, "
        f"otherwise {EMBEDDED_EMBEDDING}."
    )


def _prices_line(settings: DebateSettings) -> str:
    table = price_table()
    oldest = min(price.read for price in table.values() if price.read)
    own = "those set above, otherwise " if settings.prices else ""
    return (
        f"Prices: {own}the built-in table ({len(table)} models; the oldest price is from {oldest})."
    )


def _chat_line(settings: DebateSettings) -> str:
    seats = settings.build_seats()
    chosen = [seat.model for seat in seats if settings.has_chosen_model(seat)]
    if len(chosen) == len(seats):
        return "Models: as set above."
    if chosen:
        return f"Models: as set above; other seats use {chosen[0]} if Ollama lacks their default."
    key = next((key for key in API_KEYS.values() if os.environ.get(key, "").strip()), None)
    built_in = f"embedded:{default_chat_model(data_home()).name}"
    other = f"a hosted model ({key} is set)" if key else f"{built_in} (no API key is set)"
    return f"Models: the defaults above if Ollama has them, otherwise {other}."
