"""Downloads the weights of the built-in models."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from contend.cli.view.console import print_message, stderr
from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.providers import weights
from contend.models.providers.registry import parse_spec, unknown_model
from contend.models.providers.weights import Weights


def pull_embedding(spec: str) -> None:
    parsed = parse_spec(spec)
    if parsed.provider == "embedded":
        _pull_files(parsed.name)


def show_download(file: Weights, *, quiet: bool) -> AbstractContextManager[weights.Progress]:
    if not quiet and file.size > 1_000_000:
        megabytes = round(file.size / 1e6)
        print_message(f"Downloading {file.name} ({megabytes} MB, {file.licence}), once ...")
    return progress(file.name, DownloadColumn(), quiet=quiet)


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
    """Show a progress bar from the first step on."""
    screen = stderr()
    counted = columns or (MofNCompleteColumn(), TimeRemainingColumn())
    shown = (TextColumn("{task.description}"), BarColumn(), *counted)
    off = quiet or not screen.is_terminal
    with Progress(*shown, console=screen, transient=True, disable=off) as bar:
        task = bar.add_task(what, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def pull_named(name: str | None) -> str:
    defaults = [weights.DEFAULT, weights.DEFAULT_EMBEDDING]
    wanted = [name.removeprefix("embedded:")] if name else defaults
    paths = []
    for each in wanted:
        _pull_files(each)
        paths.append(f"{each} is ready: {weights.weights_path(_files(each)[0], data_home())}")
    return "\n".join(paths)


def _files(name: str) -> tuple[Weights, ...]:
    files = weights.embedded_files()
    if name not in files:
        raise unknown_model("embedded", name, files, f"Known: {', '.join(files)}.")
    return files[name]


def is_unharmed(name: str) -> bool:
    """Whether the files of a downloaded model still have their checksums."""
    return all(weights.is_intact(file, data_home()) for file in _files(name))


def known_models() -> list[dict[str, Any]]:
    return [
        {
            "spec": f"embedded:{name}",
            "use": "embedding" if name in weights.EMBEDDINGS else "chat",
            "size": sum(file.size for file in _files(name)),
            "licence": _files(name)[0].licence,
            "pulled": all(weights.is_pulled(file, data_home()) for file in _files(name)),
        }
        for name in (*weights.KNOWN, *weights.EMBEDDINGS)
    ]
