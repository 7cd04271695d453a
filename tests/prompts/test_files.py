"""Every prompt file is used, and asks only for values the renderer has."""

import re
from pathlib import Path

import pytest

import prompts
from graph.settings import SETTINGS
from nodes.briefing import _values
from tests.support.scripted import scripted_settings
from tests.support.states import state

FOLDER = Path(prompts.__file__).parent
NAMES = sorted(str(p.relative_to(FOLDER).with_suffix("")) for p in FOLDER.rglob("*.md"))
# The parts each role is asked to play; nodes name them where they speak.
PARTS = {
    "proposer": ("first", "again"),
    "skeptic": ("first", "again"),
    "synthesizer": ("final",),
    "judge": ("score",),
}
# Prompts that nodes.briefing fills by themselves, and what it fills in.
SHARED = {
    "shared/data": {"mark"},
    "shared/extract": {"speech", "known_points"},
    "shared/small/extract": {"speech"},
}


def known_to(name: str) -> set[str]:
    if name in SHARED:
        return SHARED[name]
    if "/control." in name:
        return {"nonce"}
    return set(_values(state(), scripted_settings(), "first", "mark", "tag", []))


@pytest.mark.parametrize("name", NAMES)
def test_every_placeholder_is_one_the_renderer_knows(name: str) -> None:
    assert prompts.placeholders(name) <= known_to(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_brace_is_a_placeholder_or_belongs_to_the_json_form(name: str) -> None:
    text = re.sub(r"```json\n.*?```", "", prompts.load(name), flags=re.DOTALL)
    assert not re.sub(r"\{[a-z_]+\}", "", text).count("{")


def test_every_prompt_file_is_used_and_every_used_one_exists() -> None:
    used = set(SHARED)
    for protocol in SETTINGS:
        for role, parts in PARTS.items():
            for folder in (protocol, f"{protocol}/small"):
                used |= {f"{folder}/{role}", *(f"{folder}/{role}.{part}" for part in parts)}
        used |= {f"{protocol}/control.critique", f"{protocol}/control.score"}
    assert set(NAMES) == used
