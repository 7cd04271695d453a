from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from contend.graph.protocols.base import PromptValues
from contend.graph.readings import Point
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Turn
from contend.graph.values import Seat, TemplateUse
from contend.models.cache_marks import STABLE
from contend.models.seats import is_small
from contend.models.tokens import BYTES_PER_TOKEN, estimate_tokens
from contend.nodes.prompting.answers import latest_answers
from contend.nodes.prompting.points import list_points
from contend.nodes.prompting.truncate import (
    Excerpt,
    fit_items,
    keep_beginning,
    keep_ending,
    room_for_prompt,
    split_room,
)
from contend.nodes.prompting.values import PromptContent, fence_mark, prompt_text, turns_in_history
from contend.prompts import fence, placeholders, render
from contend.retrieval.documents import Passage
from contend.retrieval.images import Picture

# The size of the fence around an answer, in bytes.
_FENCE_ROOM = 64
_HISTORIES = {*("history", "own_position", "current_round", "exchanges", "neutral_earlier")}


@dataclass(frozen=True)
class Material:
    passages: tuple[Passage, ...] = ()
    pictures: tuple[Picture, ...] = ()


NOTHING_MORE = Material()


@dataclass(frozen=True)
class Prompt:
    messages: list[BaseMessage]
    left_out: list[Turn]
    passages: tuple[Passage, ...] = ()  # those that are in the prompt
    passages_left_out: int = 0
    templates_left_out: tuple[TemplateUse, ...] = ()
    shortened: tuple[str, ...] = ()  # the labels of answers whose beginnings are not in the prompt
    too_long: bool = False


def build_prompt(
    state: DebateState,
    settings: DebateSettings,
    seat: Seat,
    part: str,
    debate_id: str,
    tag: str,
    material: Material = NOTHING_MORE,
) -> Prompt:
    room = room_for_prompt(seat, settings)
    asked = placeholders(prompt_text(seat, settings, part))
    takes_templates = asked & {"templates", "template_hint"}
    given = _templates_for(state, settings, seat) if takes_templates else ()
    templates = fit_items(given, room, lambda use: use.text)
    nearest = material.passages if "passages" in asked else ()
    passages = fit_items(nearest, room, lambda passage: passage.text)
    content = PromptContent(state, settings, seat, part, debate_id, tag, room, templates, passages)
    if asked & {"answers", "others"}:
        content = _with_answers(content, room, others_only="others" in asked)
    turns = turns_in_history(state)
    # The latest two turns always stay; without a history there is nothing to leave out.
    most = max(0, len(turns) - 2) if asked & _HISTORIES else 0

    @cache
    def messages(left_out: int) -> list[BaseMessage]:
        return content.messages(turns[left_out:], material.pictures)

    def fits(left_out: int) -> bool:
        return room is None or estimate_tokens(*(each.text for each in messages(left_out))) <= room

    # Use bisection, because there may be hundreds of turns and each try fills the whole prompt.
    fewest = 0 if fits(0) else bisect_left(range(most), True, key=fits)
    system, asking = messages(fewest)
    stable = content.stable_characters(turns[fewest:], asking.text)
    marks = {} if stable is None else {STABLE: stable}
    return Prompt(
        [system, asking.model_copy(update={"additional_kwargs": marks})],
        turns[:fewest],
        passages,
        passages_left_out=len(nearest) - len(passages),
        templates_left_out=given[len(templates) :],
        shortened=content.shortened(),
        too_long=not fits(fewest),
    )


def _templates_for(
    state: DebateState, settings: DebateSettings, seat: Seat
) -> tuple[TemplateUse, ...]:
    chosen = settings.template_seats or settings.opening_seats
    return state["retrieval"].templates if seat.id in chosen else ()


def _with_answers(content: PromptContent, room: int | None, *, others_only: bool) -> PromptContent:
    own = content.seat.id
    wanted = [t for t in latest_answers(content.state) if not others_only or t.seat != own]
    if limit := content.strategy.excerpt_characters(content.part):
        return replace(content, answers=tuple((t, keep_beginning(t.text, limit)) for t in wanted))
    if room is None:
        return replace(content, answers=tuple((turn, Excerpt(turn.text)) for turn in wanted))
    # Measure the prompt with every answer left out, to keep room for the notes about omissions.
    bare = replace(content, answers=tuple((turn, Excerpt("", 100, 101)) for turn in wanted))
    taken = sum(len(message.text.encode()) for message in bare.messages([], ()))
    left = BYTES_PER_TOKEN * room - taken - _FENCE_ROOM * len(wanted)
    sizes = {turn.seat: len(turn.text.encode()) for turn in wanted}
    # A debater needs all of its own answer to improve it.
    whole = 0 if is_small([content.seat]) else sizes.pop(own, 0)
    given = dict(zip(sizes, split_room([*sizes.values()], left - whole), strict=True))
    fitted = ((turn, keep_ending(turn.text, given.get(turn.seat, whole))) for turn in wanted)
    return replace(content, answers=tuple(fitted))


def extraction_prompt(
    seat: Seat,
    speech: str,
    known: list[Point],
    debate_id: str,
    small_prompt: str = "shared/small/extract",
) -> list[BaseMessage]:
    if is_small([seat]):
        return [HumanMessage(render(small_prompt, {"speech": lambda: speech}))]
    mark = fence_mark(debate_id)
    fenced: Callable[[str, str], str] = partial(fence, mark=mark)
    values: PromptValues = {
        "mark": lambda: mark,
        "speech": lambda: fenced("statement", speech),
        "known_points": lambda: f"## Earlier points\n{list_points(known, fenced)}" if known else "",
    }
    return [
        SystemMessage(render("shared/data", values)),
        HumanMessage(render("shared/extract", values)),
    ]
