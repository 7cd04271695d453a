"""Which files of embedded models are wanted, and which of them are not here yet."""

from collections.abc import Iterable

from contend.graph.settings import data_home
from contend.graph.values import Seat
from contend.models.providers.registry import parse_spec
from contend.models.providers.weights import EMBEDDINGS, KNOWN, Weights, is_pulled


def embedded_files() -> dict[str, tuple[Weights, ...]]:
    """The files of every embedded model, by its name."""
    return {**{each.name: (each,) for each in KNOWN.values()}, **EMBEDDINGS}


def missing_files(specs: Iterable[str]) -> list[Weights]:
    """The files that these models need and this machine has not got."""
    parsed = [parse_spec(text) for text in specs]
    names = dict.fromkeys(spec.name for spec in parsed if spec.provider == "embedded")
    files = [file for name in names for file in embedded_files().get(name, ())]
    return [file for file in files if not is_pulled(file, data_home())]


def models_of(seats: Iterable[Seat]) -> list[str]:
    """Every model that seats may ask, fallbacks included."""
    return [text for seat in seats for text in (seat.model, *seat.fallback_models)]
