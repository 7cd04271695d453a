import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from contend.graph.errors import BadInput


def check_writable(base: Path) -> None:
    """Create the output folder; raise BadInput if the folder is not writable."""
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Do not trust the permissions: to root, even /proc looks writable.
        with tempfile.TemporaryDirectory(dir=base):
            pass
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(
            f"The output folder {base} cannot be written: {why}. Choose another with "
            "--set output_dir=PATH."
        ) from error


def find_folder(base: Path, started: str, debate_id: str) -> Path | None:
    return next((p for p in _candidates(base, started, debate_id) if _is_of(p, debate_id)), None)


def make_folder(base: Path, started: str, debate_id: str, fill: Callable[[Path], None]) -> Path:
    found = find_folder(base, started, debate_id)
    if found is not None:
        fill(found)
        return found
    own, with_id = _candidates(base, started, debate_id)
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Renamed when complete; after a crash, the draft with this name is reused.
    draft = with_id.with_name(f".{with_id.name}.new")
    draft.mkdir(mode=0o700, exist_ok=True)
    fill(draft)
    try:
        return draft.rename(own)
    except OSError:  # another debate started in the same second
        return draft.rename(with_id)


def _candidates(base: Path, started: str, debate_id: str) -> tuple[Path, Path]:
    stamp = datetime.fromisoformat(started).astimezone(UTC)
    name = f"{stamp:%Y-%m-%dT%H-%M-%S}_debate"
    day = base / f"{stamp:%Y-%m-%d}"
    return day / name, day / f"{name}_{debate_id[:8]}"


def _is_of(folder: Path, debate_id: str) -> bool:
    return any(debate_id in index.read_text("utf-8") for index in folder.glob("index.*"))
