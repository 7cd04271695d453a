"""Who plays which part: the models the user named, or the best this machine has; then preflight."""

import os
from dataclasses import dataclass

from graph.errors import BadInput
from graph.settings import DebateSettings
from graph.state import Seat
from models import weights
from models.providers import check_models, parse_spec, provider_of

_HOSTED = {
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "OPENROUTER_API_KEY": "openrouter:openai/gpt-5-mini",
}
EMBEDDED = f"embedded:{weights.DEFAULT}"


@dataclass(frozen=True)
class Seating:
    """The seats with their models, and one line that says how the models were chosen."""

    seats: list[Seat]
    notice: str


async def choose_seats(settings: DebateSettings) -> Seating:
    """Keep the models the user named; fill the other seats by what is there.

    With none named: the protocol's own models if a running Ollama has them, else a hosted model
    if there is a key, else the embedded one. With some named: those, for want of a seat's own.
    """
    seats = settings.seats()
    named = [seat for seat in seats if f"{seat.id}_model" in settings.model_fields_set]
    if len(named) == len(seats):
        return Seating(_normal(seats), "Models as named.")
    pulled = await _pulled()
    wanted = [seat for seat in seats if seat not in named and seat.role != "judge"]
    if not named and not (pulled and all(_has(seat.model, pulled) for seat in wanted)):
        model, why = _without_ollama()
        return Seating(_normal([_with(seat, model) for seat in seats]), why)
    spare = named[0].model if named else wanted[0].model
    chosen = [s if s in named or _has(s.model, pulled) else _with(s, spare) for s in seats]
    how = "Models as named; the others from Ollama or shared." if named else "Models from Ollama."
    return Seating(_normal(chosen), how)


async def preflight(seats: list[Seat], settings: DebateSettings, question: str) -> None:
    """Find what would fail before the first call is paid: models, keys, a question too long."""
    await check_models(spec for seat in seats for spec in (seat.model, *seat.fallback_models))
    for seat in seats:
        spec = parse_spec(seat.model)
        window = settings.context_tokens or provider_of(spec).window(spec.name)
        if window is not None and len(question.encode()) // 3 > window // 2:
            raise BadInput(
                f"The question is too long for {seat.name}'s model {spec}, whose window is "
                f"{window:,} tokens. Shorten it, or name a model with a larger window."
            )


def is_demonstration(seats: list[Seat]) -> bool:
    """Whether any seat is played by the demonstration model, whose scores mean nothing."""
    specs = [parse_spec(seat.model) for seat in seats]
    return any(provider_of(spec).is_demonstration(spec.name) for spec in specs)


def _without_ollama() -> tuple[str, str]:
    for key, model in _HOSTED.items():
        if os.environ.get(key, "").strip():
            return model, f"No model named: {model} for every seat, because {key} is set."
    return EMBEDDED, f"No model named, no Ollama with the default models, no key: {EMBEDDED}."


async def _pulled() -> list[str]:
    from models.ollama import pulled_models  # imports a client the embedded path never needs

    try:
        return await pulled_models()
    except BadInput:
        return []


def _has(model: str, pulled: list[str]) -> bool:
    spec = parse_spec(model)
    return spec.provider == "ollama" and bool({spec.name, f"{spec.name}:latest"} & set(pulled))


def _with(seat: Seat, model: str) -> Seat:
    return seat.model_copy(update={"model": model})


def _normal(seats: list[Seat]) -> list[Seat]:
    """Specs in full, so that records and prices name one model in one way."""
    return [
        seat.model_copy(
            update={
                "model": str(parse_spec(seat.model)),
                "fallback_models": tuple(str(parse_spec(f)) for f in seat.fallback_models),
            }
        )
        for seat in seats
    ]
