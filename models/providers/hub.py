import io
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

PREFIX = "hf:"
_LEAST_PARTS = 3  # owner, repository, file


class HubFailed(Exception):
    pass


def hub_path(name: str, home: Path) -> Path:
    parts = name.removeprefix(PREFIX).split("/")
    strange = any(each.strip() in ("", ".", "..") or "\\" in each for each in parts)
    if len(parts) < _LEAST_PARTS or strange or not name.endswith(".gguf"):
        raise ValueError(f"{name} is not of the form hf:OWNER/REPO/FILE.gguf.")
    return home.joinpath("models", "hf", *parts)


def downloaded(home: Path) -> list[str]:
    folder = home / "models" / "hf"
    files = (each.relative_to(folder).as_posix() for each in sorted(folder.rglob("*.gguf")))
    return [f"{PREFIX}{each}" for each in files]


def download(name: str, folder: Path, on_progress: Callable[[int, int], None]) -> Path:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import hf_hub_download
    from tqdm import tqdm  # type: ignore[import-untyped]

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it would log every retry

    class Reporting(tqdm):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **{**named, "file": io.StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> None:
            super().update(n)
            on_progress(int(self.n), int(self.total or self.n or 1))

    owner, repository, file = name.split("/", 2)
    try:
        found = hf_hub_download(
            f"{owner}/{repository}", file, local_dir=folder, tqdm_class=Reporting
        )
    except (OSError, ValueError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise HubFailed(why) from error
    return Path(found)
