import difflib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contend.debates.settings_files import read_mapping
from contend.graph.errors import BadInput
from contend.graph.settings import data_home

DEFAULT_PROTOCOL = "adversarial"
_SHIPPED = Path(__file__).parent / "shipped_presets"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SUFFIX = ".yaml"


@dataclass(frozen=True)
class Preset:
    name: str
    path: Path
    description: str
    protocol: str
    model: str | None
    settings: Mapping[str, Any]


def presets_folder() -> Path:
    return data_home() / "presets"


def find_preset(name: str) -> Preset:
    paths = _paths()
    if name not in paths:
        near = difflib.get_close_matches(name, paths, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise BadInput(
            f"There is no preset '{name}'.{hint} Known: {', '.join(sorted(paths))}. "
            "`contend presets` says where to add one."
        )
    return _read(name, paths[name])


def usable_presets() -> list[Preset]:
    found = []
    for name in preset_names():
        with suppress(BadInput):
            found.append(find_preset(name))
    return found


def preset_names() -> list[str]:
    return sorted(_paths())


def _paths() -> dict[str, Path]:
    folders = (_SHIPPED, presets_folder())
    found = [each for folder in folders for each in sorted(folder.glob(f"*{_SUFFIX}"))]
    return {each.stem: each for each in found if _NAME.fullmatch(each.stem)}


def _read(name: str, path: Path) -> Preset:
    values = {str(key): value for key, value in read_mapping(path).items()}
    own = {key: values.pop(key, None) for key in ("description", "protocol", "model")}
    for key, value in own.items():
        if value is not None and not isinstance(value, str):
            raise BadInput(f"{key} must be text ({path}).")
    protocol = own["protocol"] or DEFAULT_PROTOCOL
    return Preset(name, path, own["description"] or "", protocol, own["model"], values)
