import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from contend.cli.view.console import print_message, stderr
from contend.cli.view.format import counted
from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.providers import hub, weights
from contend.models.providers.registry import parse_spec, unknown_model
from contend.models.providers.weights import Weights

_DOWNLOAD = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())


def pull_embedding(spec: str) -> None:
    parsed = parse_spec(spec)
    if parsed.provider == "embedded":
        _pull_files(parsed.name)


def show_download(file: Weights, *, quiet: bool) -> AbstractContextManager[weights.Progress]:
    if not quiet and file.size > 1_000_000:
        for line in describe_download(file):
            print_message(line)
    return progress(file.name, *_DOWNLOAD, quiet=quiet)


def describe_download(file: Weights) -> list[str]:
    """Describe the download, its usual duration and, for some chat models, the alternatives."""
    about = f"{_megabytes(file)}, {file.licence}"
    lines = [f"Downloading {file.name}, once ({about}): {_usual_time(file)} at 10 MB/s."]
    real = "a real model: `contend ask --model PROVIDER:NAME`, for example openai:gpt-5-mini."
    small = weights.KNOWN[weights.SMALLEST]
    if file.name == weights.DEFAULT:
        lines.append(
            f"Instead, the small model ({_megabytes(small)}, only for trying the software): "
            f"`contend ask --model embedded:{small.name}`, or {real}"
        )
    elif file.name == small.name:
        lines.append(f"Instead, {real}")
    return lines


def _megabytes(file: Weights) -> str:
    return f"{round(file.size / 1e6):,} MB"


def _usual_time(file: Weights) -> str:
    seconds = file.size / 10e6
    if seconds < 60:
        return f"about {counted(math.ceil(seconds), 'second')}"
    return f"about {counted(round(seconds / 60), 'minute')}"


def _pull_files(name: str) -> None:
    for file in _files(name):
        if weights.is_pulled(file, data_home()):
            continue
        try:
            with show_download(file, quiet=False) as on_progress:
                weights.pull(file, data_home(), on_progress)
        except weights.WeightsUnavailable as error:
            raise BadInput(str(error)) from error


@contextmanager
def progress(what: str, *columns: ProgressColumn, quiet: bool) -> Iterator[weights.Progress]:
    """Yield a callback that updates a progress bar; the bar appears at the first update."""
    screen = stderr()
    counted = columns or (MofNCompleteColumn(), TimeRemainingColumn())
    shown = (TextColumn("{task.description}"), BarColumn(), *counted)
    off = quiet or not screen.is_terminal
    with Progress(*shown, console=screen, transient=True, disable=off) as bar:
        task = bar.add_task(what, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def pull_named(name: str | None) -> str:
    defaults = [weights.default_chat_model(data_home()).name, weights.DEFAULT_EMBEDDING]
    wanted = [name.removeprefix("embedded:")] if name else defaults
    return "\n".join(f"{each} is ready: {_pulled(each)}" for each in wanted)


def _pulled(name: str) -> Path:
    if name.startswith(hub.PREFIX):
        return _pull_from_hub(name)
    _pull_files(name)
    return weights.weights_path(_files(name)[0], data_home())


def _pull_from_hub(name: str) -> Path:
    try:
        path = hub.hub_path(name, data_home())
        if path.is_file():
            return path
        print_message(f"Downloading {name} from the Hugging Face hub ...")
        with progress(path.name, *_DOWNLOAD, quiet=False) as on_progress:
            return weights.pull_from_hub(name, data_home(), on_progress)
    except (ValueError, weights.WeightsUnavailable) as error:
        raise BadInput(str(error)) from error


def remove_named(name: str) -> str:
    name = name.removeprefix("embedded:")
    try:
        files = (
            [hub.hub_path(name, data_home())]
            if name.startswith(hub.PREFIX)
            else [weights.weights_path(each, data_home()) for each in _files(name)]
        )
    except ValueError as error:
        raise BadInput(str(error)) from error
    found = [each for each in files if each.is_file()]
    if not found:
        raise BadInput(f"{name} is not downloaded. `contend models list` shows what is.")
    freed = sum(each.stat().st_size for each in found)
    for each in found:
        each.unlink()
    return f"Deleted {name}: {round(freed / 1e6):,} MB freed."


def _files(name: str) -> tuple[Weights, ...]:
    files = weights.embedded_files()
    if name not in files:
        raise unknown_model("embedded", name, files, f"Known: {', '.join(files)}.")
    return files[name]


def is_unharmed(name: str) -> bool:
    return all(weights.is_intact(file, data_home()) for file in _files(name))


def known_models() -> list[dict[str, Any]]:
    known = [
        {
            "spec": f"embedded:{name}",
            "use": "embedding" if name in weights.EMBEDDINGS else "chat",
            "size": sum(file.size for file in _files(name)),
            "memory": _files(name)[0].memory,
            "good_for": _files(name)[0].good_for,
            "licence": _files(name)[0].licence,
            "pulled": all(weights.is_pulled(file, data_home()) for file in _files(name)),
        }
        for name in (*weights.KNOWN, *weights.EMBEDDINGS)
    ]
    return [*known, *map(_described, hub.downloaded(data_home()))]


def _described(name: str) -> dict[str, Any]:
    size = hub.hub_path(name, data_home()).stat().st_size
    spec, unknown = f"embedded:{name}", dict.fromkeys(("memory", "licence"))
    return {"spec": spec, "use": "chat", "size": size, "good_for": "", **unknown, "pulled": True}
