"""What a speaker is told: prompts filled from the state, fitted to the model's window."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from graph.settings import DebateSettings
from graph.state import SEVERITY_MARKS, DebateState, Point, Seat, Turn, turns_of
from models.critiques import all_points
from models.seating import is_demonstration, window_for
from prompts import fence, placeholders, render

_REPLY_SHARE = 4
_LONGEST_REPLY = 4096


@dataclass(frozen=True)
class Brief:
    """The messages for one call, the turns that did not fit, and whether it is still too long."""

    messages: list[BaseMessage]
    left_out: list[Turn]
    too_long: bool = False


def brief(
    state: DebateState, settings: DebateSettings, seat: Seat, part: str, debate_id: str, tag: str
) -> Brief:
    """Fill the seat's system prompt and its prompt for this part of the debate."""
    room = _room(seat, settings)
    turns, left_out = list(state.get("turns", [])), list[Turn]()
    prompt = f"{_folder(seat, settings)}/{seat.role}.{part}"
    fixed = not placeholders(prompt) & {"history", "earlier"}
    while True:
        messages = _messages(state, settings, seat, part, debate_id, tag, turns)
        fits = room is None or estimate_tokens(messages) <= room
        if fits or fixed or len(turns) <= 2:
            return Brief(messages, left_out, too_long=not fits)
        left_out.append(turns.pop(0))


def estimate_tokens(messages: list[BaseMessage]) -> int:
    """A cautious count: three bytes a token is more than most tokenizers need."""
    return sum(len(message.text.encode()) for message in messages) // 3


def points_of(state: DebateState) -> list[Point]:
    """Every objection raised so far, with its latest status."""
    return all_points([turn.assessment for turn in state.get("turns", []) if turn.assessment])


def fence_mark(debate_id: str) -> str:
    """The mark of this debate's fences: the same in every prompt, so that prefixes stay cached."""
    return hashlib.sha256(f"{debate_id}/fence".encode()).hexdigest()[:6]


def _room(seat: Seat, settings: DebateSettings) -> int | None:
    window = window_for(seat.model, settings)
    return None if window is None else window - min(_LONGEST_REPLY, window // _REPLY_SHARE)


def _folder(seat: Seat, settings: DebateSettings) -> str:
    return f"{settings.protocol}/small" if is_demonstration([seat]) else settings.protocol


def _messages(
    state: DebateState,
    settings: DebateSettings,
    seat: Seat,
    part: str,
    debate_id: str,
    tag: str,
    turns: list[Turn],
) -> list[BaseMessage]:
    # A model as small as the demonstration's loses itself in long instructions and in fences.
    # Nothing is decided by its words: what it decides is asked for in a schema.
    folder = _folder(seat, settings)
    mark = "" if is_demonstration([seat]) else fence_mark(debate_id)
    values = _values(state, settings, part, mark, tag, turns)
    return [
        SystemMessage(render(f"{folder}/{seat.role}", values)),
        HumanMessage(render(f"{folder}/{seat.role}.{part}", values)),
    ]


def _values(
    state: DebateState,
    settings: DebateSettings,
    part: str,
    mark: str,
    tag: str,
    turns: list[Turn],
) -> dict[str, Callable[[], str]]:
    """Every value a prompt may ask for; each is made only when one does."""
    data = partial(fence, mark=mark) if mark else _unfenced
    number = state["round"]
    answers, critiques = turns_of(state, "propose"), turns_of(state, "critique")
    left_out = [turn for turn in state.get("turns", []) if turn not in turns]
    latest = answers[-1] if answers else None
    control = {
        "nonce": lambda: tag,
        "data_rule": lambda: render("shared/data", {"mark": lambda: mark}),
    }
    return {
        **control,
        "control": lambda: render(f"{settings.protocol}/control.{_control_of(part)}", control),
        "question": lambda: data("question", state["question"]),
        "templates": lambda: _templates(state, data),
        "remarks": lambda: _remarks(state, data),
        "own_last": lambda: data("answer", answers[-1].text),
        "answer_last": lambda: data("answer", answers[-1].text),
        "critique_last": lambda: data("critique", critiques[-1].text),
        "history": lambda: _history(turns, left_out, data),
        "earlier": lambda: _history([t for t in turns if t is not latest], left_out, data),
        "points": lambda: _points(points_of(state), data),
        "final_answer": lambda: data("answer", state["final_answer"]),
        "round": lambda: str(number),
        "previous_round": lambda: str(number - 1),
        "max_rounds": lambda: str(getattr(settings, "max_rounds", number)),
        "early_stop_score": lambda: f"{getattr(settings, 'early_stop_score', 8):g}",
        "stop_reason": lambda: state["stop"].evidence,
    }


def _unfenced(_label: str, text: str) -> str:
    return text


def _control_of(part: str) -> str:
    return "score" if part == "score" else "critique"


def _templates(state: DebateState, data: Callable[[str, str], str]) -> str:
    chosen = state["retrieval"].templates
    if not chosen:
        return ""
    shown = (f"### {use.title}\n{data('template', use.text)}" for use in chosen)
    return "## Available reasoning templates\n" + "\n\n".join(shown)


def _remarks(state: DebateState, data: Callable[[str, str], str]) -> str:
    said = turns_of(state, "remark")
    if not said:
        return ""
    return "## The user added\n" + "\n".join(data("user", turn.text) for turn in said)


def _history(turns: list[Turn], left_out: list[Turn], data: Callable[[str, str], str]) -> str:
    parts: list[str] = []
    if left_out:
        names = ", ".join(f"round {turn.round} {turn.role}" for turn in left_out)
        parts.append(f"(Left out because the whole does not fit: {names}.)")
    number = 0
    for turn in turns:
        if turn.phase == "remark":
            continue  # they stand apart, as the user's, in every prompt
        if turn.round != number:
            number = turn.round
            parts.append(f"### Round {number}")
        parts.append(f"**{turn.role.capitalize()}:**\n{data(turn.role, turn.text)}")
    return "\n\n".join(parts)


def _points(points: list[Point], data: Callable[[str, str], str]) -> str:
    if not points:
        return "None on record."
    lines = (f"{p.id} {SEVERITY_MARKS[p.severity]} ({p.status}) {p.text}" for p in points)
    return data("points", "\n".join(lines))


def extraction_brief(
    seat: Seat, speech: str, known: list[Point], debate_id: str
) -> list[BaseMessage]:
    """The prompt of the schema-bound call that reads what a speech decided."""
    if is_demonstration([seat]):
        return [HumanMessage(render("shared/small/extract", {"speech": lambda: speech}))]
    mark = fence_mark(debate_id)
    data = partial(fence, mark=mark)
    values: dict[str, Callable[[], str]] = {
        "mark": lambda: mark,
        "speech": lambda: data("statement", speech),
        "known_points": lambda: f"## Earlier points\n{_points(known, data)}" if known else "",
    }
    return [
        SystemMessage(render("shared/data", values)),
        HumanMessage(render("shared/extract", values)),
    ]
