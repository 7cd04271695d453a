import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contend.graph.errors import BadInput, QuestionTooLong
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings, data_home
from contend.graph.values import HUMAN, NOT_DEBATING, Document, Image, Seat
from contend.models.embeddings import EMBEDDED_EMBEDDING
from contend.models.keys import load_stored_keys
from contend.models.providers import weights
from contend.models.providers.registry import (
    API_KEYS,
    ModelSpec,
    Provider,
    check_models,
    explain_ollama_default,
    parse_spec,
    provider_of,
)
from contend.models.tokens import estimate_tokens

_HOSTED = {"openai": "openai:gpt-5-mini", "openrouter": "openrouter:openai/gpt-5-mini"}
# Tokens needed for instructions, the latest turns and the answer; in a small window, half of it.
_DEBATE_ROOM = 12_288


@dataclass(frozen=True)
class SeatPlan:
    seats: list[Seat]
    notice: str
    embedding_model: str


@dataclass(frozen=True)
class UsableModel:
    spec: str
    provider: str


async def choose_embedding(settings: DebateSettings, seats: list[Seat]) -> str:
    wanted = str(parse_spec(settings.embedding_model))
    if "embedding_model" in settings.model_fields_set:
        return wanted
    by_ollama = any(parse_spec(seat.model).provider == "ollama" for seat in seats)
    return wanted if by_ollama and _has_pulled(wanted, await _list_pulled()) else EMBEDDED_EMBEDDING


async def choose_seats(settings: DebateSettings) -> SeatPlan:
    # Load keys here, because Python programs and `langgraph dev` have not done so.
    await asyncio.to_thread(load_stored_keys)
    chosen, notice = await _choose_models(settings)
    seats = [write_specs_in_full(seat) for seat in chosen]
    seats, about_judge = await _choose_judge(seats, settings)
    notices = " ".join(filter(None, (notice, about_judge)))
    return SeatPlan(seats, notices, await choose_embedding(settings, seats))


async def _choose_models(settings: DebateSettings) -> tuple[list[Seat], str]:
    # If the user chose no models, use the protocol's defaults if Ollama has them, or else a hosted
    # model if there is a key, or else the built-in one. If the user chose some, use the first of
    # them for the other seats.
    seats = settings.build_seats()
    named = [seat for seat in seats if settings.has_chosen_model(seat)]
    if len(named) == len(seats):
        return seats, "All models chosen by you."
    pulled = await _list_pulled()
    wanted = [seat for seat in seats if seat not in named and seat.role != "judge"]
    named_models = [seat for seat in named if not seat.is_human]
    if not named_models and not (
        pulled and all(_has_pulled(seat.model, pulled) for seat in wanted)
    ):
        model, why = _choose_without_ollama()
        return [seat if seat in named else _set_model(seat, model) for seat in seats], why
    spare = (named_models or wanted or seats[-1:])[0].model
    chosen = [
        s if s in named or _has_pulled(s.model, pulled) else _set_model(s, spare) for s in seats
    ]
    if not named_models:
        return chosen, "No models chosen; using the default models from Ollama."
    others = [new for old, new in zip(seats, chosen, strict=True) if old not in named]
    names = ", ".join(seat.name for seat in others)
    models = ", ".join(dict.fromkeys(seat.model for seat in others))
    return chosen, f"No model chosen for {names}; using {models}."


async def _choose_judge(seats: list[Seat], settings: DebateSettings) -> tuple[list[Seat], str]:
    """Give the judge a model that no debater uses, if possible. Return the seats and a notice."""
    judge = next((seat for seat in seats if seat.role == "judge"), None)
    debaters = [seat for seat in seats if seat.role not in NOT_DEBATING]
    sharing = [seat.name for seat in debaters if judge and seat.model == judge.model]
    if judge is None or not sharing or settings.has_chosen_model(judge):
        return seats, ""
    if other := await _other_model({seat.model for seat in debaters}):
        chosen = [_set_model(seat, other) if seat is judge else seat for seat in seats]
        return chosen, f"The judge is {other}, because no debater uses it."
    if parse_spec(judge.model).provider == "embedded":  # the warning above the answer covers this
        return seats, ""
    return seats, (
        f"The judge uses the same model as {', '.join(sharing)}; choose another with "
        f"{settings.model_option(judge)}."
    )


async def _other_model(used: set[str]) -> str | None:
    specs = [parse_spec(model) for model in used]
    local = [spec.name for spec in specs if spec.provider == "ollama"]
    if not local:
        return None
    from contend.models.providers.ollama import similar_model  # slow to import

    try:
        found = await similar_model(local)
    except BadInput:  # preflight explains the error
        return None
    return f"ollama:{found}" if found else None


async def preflight(
    seats: list[Seat],
    settings: DebateSettings,
    question: str,
    *,
    documents: Sequence[Document] = (),
    images: Sequence[Image] = (),
) -> list[str]:
    """Raise BadInput for anything that would fail after the first paid call. Return notices."""
    await asyncio.to_thread(load_stored_keys)
    for key in settings.prices:
        parse_spec(key)
    try:
        notices = await check_models(models_of(seats))
    except BadInput as refused:
        if not (explained := await _explain_bare_names(settings)):
            raise
        raise BadInput(" ".join([*explained, str(refused)])) from refused
    for seat in seats:
        _check_person(seat, settings)
        _check_length(seat, settings, question)
        if seat.tools:
            _check_tools(seat, settings, documents)
    check_image_support(seats, settings, images)
    return notices


async def _explain_bare_names(settings: DebateSettings) -> list[str]:
    explained = []
    for model in dict.fromkeys(models_of(settings.build_seats())):
        if taken := explain_ollama_default(model):
            try:
                await check_models([model])
            except BadInput:
                explained.append(taken)
    return explained


async def usable_models() -> list[UsableModel]:
    ollama = [UsableModel(f"ollama:{name}", "ollama") for name in await _list_pulled()]
    hosted = [UsableModel(model, parse_spec(model).provider) for model in hosted_models()]
    files = weights.embedded_files().items()
    embedded = [
        UsableModel(f"embedded:{name}", "embedded")
        for name, needed in files
        if all(weights.is_pulled(each, data_home()) for each in needed)
        and str(EMBEDDED_EMBEDDING) != f"embedded:{name}"
    ]
    return [*ollama, *hosted, *embedded]


def hosted_models() -> list[str]:
    return [
        model
        for provider, model in _HOSTED.items()
        if os.environ.get(API_KEYS[provider], "").strip()
    ]


def models_of(seats: Iterable[Seat]) -> list[str]:
    return [text for seat in seats for text in (seat.model, *seat.fallback_models)]


def missing_files(specs: Iterable[str]) -> list[weights.Weights]:
    parsed = [parse_spec(text) for text in specs]
    names = dict.fromkeys(spec.name for spec in parsed if spec.provider == "embedded")
    files = [file for name in names for file in weights.embedded_files().get(name, ())]
    return [file for file in files if not weights.is_pulled(file, data_home())]


def window_for(model: str, settings: DebateSettings) -> int | None:
    """Return the maximum total tokens of a prompt and its answer, or None if unlimited."""
    spec = parse_spec(model)
    provider = provider_of(spec)
    wanted = settings.context_tokens or provider.window(spec.name)
    largest = provider.largest_window(spec.name)
    return wanted if wanted is None or largest is None else min(wanted, largest)


def is_small(seats: Iterable[Seat]) -> bool:
    """Return whether any seat's model needs short prompts."""
    specs = [parse_spec(seat.model) for seat in seats]
    return any(provider_of(spec).is_small(spec.name) for spec in specs)


def is_demonstration(seats: list[Seat]) -> bool:
    return any(is_demonstration_model(seat.model) for seat in seats)


def is_demonstration_model(model: str) -> bool:
    spec = parse_spec(model)
    return provider_of(spec).is_demonstration(spec.name)


def check_image_support(
    seats: list[Seat], settings: DebateSettings, images: Sequence[Image]
) -> None:
    """Raise BadInput if a model that would get images is known not to accept them."""
    for seat in (seat for seat in seats if seat.id in settings.opening_seats):
        seen = [image for image in images if strategy_for(settings).sees(seat, image)]
        blind = _first_lacking(seat, lambda provider, name: provider.takes_images(name) is False)
        if seen and blind is not None:
            leave = "Give it no images" if all(image.seats for image in seen) else "Omit --image"
            raise BadInput(
                f"{seat.name}'s model {blind} does not accept images. {leave}, or choose another "
                f"model with --model or {settings.model_option(seat)}."
            )


def _check_person(seat: Seat, settings: DebateSettings) -> None:
    if seat.is_human and seat.fallback_models:
        raise BadInput(f"{seat.name} is a person, so its fallback models are never used.")
    if HUMAN in seat.fallback_models:
        raise BadInput(f"A person cannot be a fallback model ({seat.name}).")
    if seat.is_human and seat.role not in strategy_for(settings).roles_for_people:
        raise BadInput(
            f"{seat.name} cannot be a person in {settings.protocol}: this role must decide in a "
            "form that only models write, or in time. Choose a model with "
            f"{settings.model_option(seat)}."
        )


def _check_tools(seat: Seat, settings: DebateSettings, documents: Sequence[Document]) -> None:
    if not strategy_for(settings).most_tool_calls:  # a service client may define any seats
        raise BadInput(f"{settings.protocol} does not support tools; remove those of {seat.name}.")
    unable = _first_lacking(seat, lambda provider, name: provider.takes_tools(name) is False)
    if unable is not None:
        raise BadInput(
            f"{seat.name}'s model {unable} cannot use tools ({', '.join(seat.tools)}). Remove "
            "the tools of this seat, or choose another model for it."
        )
    shown = any(strategy_for(settings).sees(seat, document) for document in documents)
    if "search_documents" in seat.tools and not shown:
        raise BadInput(
            f"{seat.name} has the tool search_documents, but no documents to search. Add some "
            "with --docs or in the docs of this seat, or remove the tool."
        )


def _first_lacking(seat: Seat, lacks: Callable[[Provider, str], bool]) -> ModelSpec | None:
    specs = map(parse_spec, models_of([seat]))
    return next((spec for spec in specs if lacks(provider_of(spec), spec.name)), None)


def _check_length(seat: Seat, settings: DebateSettings, question: str) -> None:
    window, tokens = window_for(seat.model, settings), estimate_tokens(question)
    if window is None or tokens <= window - min(_DEBATE_ROOM, window // 2):
        return
    spec, needed = parse_spec(seat.model), min(2 * tokens, tokens + _DEBATE_ROOM)
    rounded, largest = -(-needed // 1024) * 1024, provider_of(spec).largest_window(spec.name)
    raising = f", raise the limit with --set context_tokens={min(rounded, largest or rounded)}"
    can_raise = largest is None or needed <= largest
    raise QuestionTooLong(
        f"The question is too long for {seat.name}'s model {spec}, which has a context window of "
        f"{window:,} tokens.",
        f"Shorten it{raising if can_raise else ''}, or choose a model with a larger window.",
    )


def _choose_without_ollama() -> tuple[str, str]:
    if hosted := hosted_models():
        key = API_KEYS[parse_spec(hosted[0]).provider]
        return hosted[0], f"No model chosen; using {hosted[0]}, because {key} is set."
    chosen = weights.default_chat_model(data_home())
    model = f"embedded:{chosen.name}"
    notice = f"No API key and no Ollama models found; using the built-in model {model}."
    if not weights.is_pulled(chosen, data_home()) and chosen.name != weights.SMALLEST:
        notice += f" A smaller one is --model embedded:{weights.SMALLEST}."
    elif chosen.name == weights.SMALLEST and weights.can_run_default(data_home()):
        notice += f" `contend models pull {weights.DEFAULT}` downloads a better one (1.1 GB)."
    return model, notice


async def _list_pulled() -> list[str]:
    from contend.models.providers.ollama import pulled_models  # slow to import

    try:
        return await pulled_models()
    except BadInput:
        return []


def _has_pulled(model: str, pulled: list[str]) -> bool:
    from contend.models.providers.ollama import has_model

    spec = parse_spec(model)
    return spec.provider == "ollama" and has_model(spec.name, pulled)


def _set_model(seat: Seat, model: str) -> Seat:
    return seat.model_copy(update={"model": model})


def write_specs_in_full(seat: Seat) -> Seat:
    model, *fallbacks = (str(parse_spec(text)) for text in models_of([seat]))
    return seat.model_copy(update={"model": model, "fallback_models": tuple(fallbacks)})
