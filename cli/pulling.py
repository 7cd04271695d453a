"""Fetching the weights of embedded models, with a progress bar."""

from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from cli.consoles import stderr, tell
from graph.errors import BadInput
from graph.settings import data_home
from graph.state import Seat
from models.providers import parse_spec, unknown_model
from models.weights import (
    DEFAULT,
    KNOWN,
    Weights,
    WeightsUnavailable,
    is_pulled,
    pull,
    weights_path,
)


def pull_missing(seats: list[Seat], *, quiet: bool) -> None:
    """Fetch the weights that the seats need and this machine has not got."""
    specs = [parse_spec(text) for seat in seats for text in (seat.model, *seat.fallback_models)]
    needed = {spec.name for spec in specs if spec.provider == "embedded"}
    for weights in KNOWN.values():
        if weights.name in needed and not is_pulled(weights, data_home()):
            pull_weights(weights, quiet=quiet)


def pull_weights(weights: Weights, *, quiet: bool = False) -> None:
    """Fetch one model file; what cannot be fetched is said in one line."""
    screen = stderr()
    if not quiet:
        megabytes = weights.size // 1_000_000
        tell(f"Fetching {weights.name} ({megabytes} MB, {weights.licence}), once ...")
    try:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            console=screen,
            transient=True,
            disable=quiet or not screen.is_terminal,
        ) as bar:
            task = bar.add_task(weights.name, total=weights.size)
            pull(
                weights,
                data_home(),
                lambda done, total: bar.update(task, completed=done, total=total),
            )
    except WeightsUnavailable as error:
        raise BadInput(str(error)) from error


def pull_named(name: str | None) -> str:
    """Fetch a model by its name or spec; gives a sentence that says where it is."""
    wanted = (name or DEFAULT).removeprefix("embedded:")
    if wanted not in KNOWN:
        raise unknown_model("embedded", wanted, KNOWN, f"Known: {', '.join(KNOWN)}.")
    weights = KNOWN[wanted]
    if not is_pulled(weights, data_home()):
        pull_weights(weights)
    return f"{wanted} is ready: {weights_path(weights, data_home())}"


def known_models() -> list[dict[str, Any]]:
    """The embedded models there are, and which of them are here."""
    return [
        {
            "spec": f"embedded:{weights.name}",
            "size": weights.size,
            "licence": weights.licence,
            "pulled": is_pulled(weights, data_home()),
        }
        for weights in KNOWN.values()
    ]
