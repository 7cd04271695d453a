"""Who plays which part: the models the user named, or the best this machine has; then preflight."""

import os
from dataclasses import dataclass

from graph.errors import BadInput
from graph.settings import DebateSettings
from graph.state import Seat
from models import weights
from models.providers import ModelSpec, check_models, parse_spec, provider_of

_HOSTED = {
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "OPENROUTER_API_KEY": "openrouter:openai/gpt-5-mini",
}
EMBEDDED = f"embedded:{weights.DEFAULT}"
# Tokens beside the question for instructions, the latest turns and the answer; a small window
# gives half of itself.
_DEBATE_ROOM = 12_288


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
    for key in settings.prices:
        parse_spec(key)
    await check_models(spec for seat in seats for spec in (seat.model, *seat.fallback_models))
    for seat in seats:
        _check_length(seat, settings, question)


def window_for(model: str, settings: DebateSettings) -> int | None:
    """Tokens a prompt and its answer may fill together; None when the provider copes."""
    spec = parse_spec(model)
    provider = provider_of(spec)
    wanted = settings.context_tokens or provider.window(spec.name)
    largest = provider.largest_window(spec.name)
    return wanted if wanted is None or largest is None else min(wanted, largest)


def is_demonstration(seats: list[Seat]) -> bool:
    """Whether any seat is played by the demonstration model, whose scores mean nothing.

    A seat that only falls back to it counts once it has spoken: ask is_demonstration_model.
    """
    return any(is_demonstration_model(seat.model) for seat in seats)


def is_demonstration_model(model: str) -> bool:
    """Whether this spec names the demonstration model."""
    spec = parse_spec(model)
    return provider_of(spec).is_demonstration(spec.name)


def _check_length(seat: Seat, settings: DebateSettings, question: str) -> None:
    """Refuse a question that leaves no room for the debate in the seat's window."""
    window, tokens = window_for(seat.model, settings), len(question.encode()) // 3
    if window is None or tokens <= window - min(_DEBATE_ROOM, window // 2):
        return
    spec = parse_spec(seat.model)
    raise BadInput(
        f"The question is too long for {seat.name}'s model {spec}, whose window is "
        f"{window:,} tokens. Shorten it{_wider(spec, tokens)}, or name a model with a larger "
        "window."
    )


def _wider(spec: ModelSpec, tokens: int) -> str:
    """The setting that would make the question fit, if the model can take that much."""
    needed = min(2 * tokens, tokens + _DEBATE_ROOM)
    rounded, largest = -(-needed // 1024) * 1024, provider_of(spec).largest_window(spec.name)
    if largest is not None and needed > largest:
        return ""
    return f", allow more with --set context_tokens={min(rounded, largest or rounded)}"


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
    from models.ollama import has_model

    spec = parse_spec(model)
    return spec.provider == "ollama" and has_model(spec.name, pulled)


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
