"""What a speaker is told: prompts filled from the state, fitted to the model's window."""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from contend.graph.settings import AdversarialSettings, DebateSettings
from contend.graph.state import (
    SEVERITY_MARKS,
    Assessment,
    DebateState,
    Point,
    QuoteCheck,
    Seat,
    TemplateUse,
    Turn,
    ids_with_role,
    turns_of,
)
from contend.models.replies.critique import all_points
from contend.models.seats import is_demonstration, window_for
from contend.models.tokens import estimate_tokens
from contend.nodes.forecast.prompt_values import ForecastCall, forecast_values
from contend.nodes.forum.prompt_values import concessions_so_far, missing_support, other_labels
from contend.nodes.moderated.prompt_values import ModeratedPrompt, values_of
from contend.nodes.prompting.answers import answers_of, label_of, latest_answers
from contend.nodes.prompting.quotes import is_checked, quote_line
from contend.nodes.prompting.truncate import Excerpt, ending, shares
from contend.prompts import exists, fence, fill, load, placeholders, render
from contend.retrieval.documents import Passage
from contend.retrieval.images import Picture

_REPLY_SHARE = 4
_LONGEST_REPLY = 4096
# Templates may fill this part of a prompt, passages and the checks of quotes as much: the debate
# itself comes first.
_MATERIAL_SHARE = 4
_TOOLS_SHARE = 4
# What the fence around an answer takes, in bytes.
_FENCE_ROOM = 64
# What a user's own prompt has no placeholders for and every speaker must be shown.
_MATERIAL = ("{remarks}", "{quote_checks}", "{passages}")
_HISTORIES = {
    *("history", "earlier", "own_position", "current_round", "exchanges", "neutral_earlier"),
}
_APART = (
    *("remark", "conviction_check", "judge_continue", "verdict"),
    *("positions", "request", "fact_check", "end", "score"),
)

Item = TypeVar("Item")
Fence = Callable[[str, str], str]


@dataclass(frozen=True)
class Material:
    """What a turn is given besides the debate itself."""

    passages: tuple[Passage, ...] = ()
    pictures: tuple[Picture, ...] = ()


NOTHING_MORE = Material()


@dataclass(frozen=True)
class Prompt:
    """The messages for one call, what did not fit, and whether it is still too long."""

    messages: list[BaseMessage]
    left_out: list[Turn]
    passages: tuple[Passage, ...] = ()
    """Those that are in the prompt."""
    passages_left_out: int = 0
    templates_left_out: tuple[TemplateUse, ...] = ()
    shortened: tuple[str, ...] = ()
    """The answers whose beginnings are not in the prompt."""
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
    """Fill the seat's system prompt and its prompt for this part of the debate."""
    room = _room(seat, settings)
    asked = placeholders(_prompt(seat, settings, part))
    takes_templates = asked & {"templates", "template_hint"}
    given = _templates_for(state, settings, seat) if takes_templates else ()
    templates = _fitting(given, room, lambda use: use.text)
    nearest = material.passages if "passages" in asked else ()
    passages = _fitting(nearest, room, lambda passage: passage.text)
    sheet = _PromptValues(state, settings, seat, part, debate_id, tag, room, templates, passages)
    if asked & {"answers", "others"}:
        sheet = _with_answers(sheet, room, others_only="others" in asked)
    turns = speeches(state)
    # The latest two stay in any case; without a history there is nothing to leave out.
    most = max(0, len(turns) - 2) if asked & _HISTORIES else 0

    @cache
    def told(left_out: int) -> list[BaseMessage]:
        return sheet.messages(turns[left_out:], material.pictures)

    def fits(left_out: int) -> bool:
        return room is None or estimate_tokens(*(each.text for each in told(left_out))) <= room

    # By halves: a long debate has hundreds of turns, and every try fills the whole prompt.
    fewest = 0 if fits(0) else bisect_left(range(most), True, key=fits)
    return Prompt(
        told(fewest),
        turns[:fewest],
        passages,
        passages_left_out=len(nearest) - len(passages),
        templates_left_out=given[len(templates) :],
        shortened=sheet.shortened(),
        too_long=not fits(fewest),
    )


def _prompt(seat: Seat, settings: DebateSettings, part: str) -> str:
    """The text of the prompt for a part: the role's, what all share, or the user's own."""
    own, folder = settings.own_prompt(part), _folder(seat, settings)
    if own is None:
        return load(_prompt_name(folder, seat.role, part))
    # The material a user's prompt has no place for stands behind it.
    return "\n\n".join([own, *_MATERIAL, *(["{templates}"] if part == "first" else [])])


def _prompt_name(folder: str, role: str, part: str) -> str:
    """The role's own prompt, else that of all roles of the protocol, else that of all protocols."""
    shared = "shared/small" if folder.endswith("/small") else "shared"
    names = (f"{folder}/{role}.{part}", f"{folder}/all.{part}")
    return next(filter(exists, names), f"{shared}/{role}.{part}")


def _templates_for(
    state: DebateState, settings: DebateSettings, seat: Seat
) -> tuple[TemplateUse, ...]:
    """The templates, if this seat gets any: one bad template must not colour every draft."""
    chosen = settings.template_seats or settings.opening_seats
    return state["retrieval"].templates if seat.id in chosen else ()


def _fitting(
    items: Sequence[Item], room: int | None, text_of: Callable[[Item], str]
) -> tuple[Item, ...]:
    """As many of the first items as may fill their part of the prompt, each of them whole."""
    if room is None:
        return tuple(items)
    left = 3 * room // _MATERIAL_SHARE
    fitting = []
    for item in items:
        left -= len(text_of(item).encode())
        if left < 0:
            break
        fitting.append(item)
    return tuple(fitting)


def _with_answers(
    sheet: "_PromptValues", room: int | None, *, others_only: bool
) -> "_PromptValues":
    """The sheet with the latest answers, each with an equal share of the room that is left."""
    wanted = [t for t in latest_answers(sheet.state) if not others_only or t.seat != sheet.seat.id]
    if room is None:
        return replace(sheet, answers=tuple((turn, Excerpt(turn.text)) for turn in wanted))
    # Measured with every answer left out, so that the notes that say so have their room.
    bare = replace(sheet, answers=tuple((turn, Excerpt("", 100, 101)) for turn in wanted))
    taken = sum(len(message.text.encode()) for message in bare.messages([], ()))
    left = 3 * room - taken - _FENCE_ROOM * len(wanted)
    given = shares([len(turn.text.encode()) for turn in wanted], left)
    fitted = ((turn, ending(turn.text, part)) for turn, part in zip(wanted, given, strict=True))
    return replace(sheet, answers=tuple(fitted))


def points_of(state: DebateState) -> list[Point]:
    """Every objection raised so far, with its latest status."""
    read = [turn.assessment for turn in state.get("turns", [])]
    return all_points([each for each in read if isinstance(each, Assessment)])


def fence_mark(debate_id: str) -> str:
    """The mark of this debate's fences: the same in every prompt, so that prefixes stay cached."""
    return hashlib.sha256(f"{debate_id}/fence".encode()).hexdigest()[:6]


def room_beside_reply(seat: Seat, settings: DebateSettings) -> int | None:
    """Tokens of the seat's window that are left for what it is told; None without a limit."""
    window = window_for(seat.model, settings)
    return None if window is None else window - min(_LONGEST_REPLY, window // _REPLY_SHARE)


def _room(seat: Seat, settings: DebateSettings) -> int | None:
    """What of it a prompt may fill: tools need some for their results."""
    room = room_beside_reply(seat, settings)
    return room if room is None or not seat.tools else room - room // _TOOLS_SHARE


def _folder(seat: Seat, settings: DebateSettings) -> str:
    return f"{settings.protocol}/small" if is_demonstration([seat]) else settings.protocol


@dataclass(frozen=True)
class _PromptValues:
    """Everything a prompt of one turn can be filled with."""

    state: DebateState
    settings: DebateSettings
    seat: Seat
    part: str
    debate_id: str
    tag: str
    room: int | None = None
    """Tokens the prompt may fill; None without a limit."""
    templates: tuple[TemplateUse, ...] = ()
    passages: tuple[Passage, ...] = ()
    answers: tuple[tuple[Turn, Excerpt], ...] = ()
    """What is shown of whose answer."""

    def shortened(self) -> tuple[str, ...]:
        """The names of the answers that are not shown whole."""
        cut = [turn for turn, excerpt in self.answers if excerpt.left_out]
        return tuple(label_of(self.state, self.settings, turn.seat) for turn in cut)

    @property
    def mark(self) -> str:
        # A model as small as the demonstration's loses itself in long instructions and in fences.
        # Nothing is decided by its words: what it decides is asked for in a schema.
        return "" if is_demonstration([self.seat]) else fence_mark(self.debate_id)

    def messages(self, turns: list[Turn], pictures: Sequence[Picture]) -> list[BaseMessage]:
        folder = _folder(self.seat, self.settings)
        values = self.values(turns)
        if self.settings.own_prompt(self.part) is not None:
            values = self.custom_values(values, turns)
        text = fill(_prompt(self.seat, self.settings, self.part), values)
        # Plain text where there is no picture: servers of all kinds read that.
        content: Any = [{"type": "text", "text": text}, *(each.block() for each in pictures)]
        system = render(f"{folder}/{self.seat.role}", values)
        return [
            SystemMessage(f"{system}\n\n{self.about_tools()}" if self.seat.tools else system),
            HumanMessage(content if pictures else text),
        ]

    def about_tools(self) -> str:
        """What a speaker must know of its tools besides what each of them does."""
        most = self.settings.most_tool_calls
        values: dict[str, Callable[[], str]] = {
            "count": lambda: "once" if most == 1 else f"{most} times",
            "tools": lambda: ", ".join(self.seat.tools),
            "mark": lambda: self.mark,
        }
        return render("shared/tools", values)

    def values(self, turns: list[Turn]) -> dict[str, Callable[[], str]]:
        """Every value a prompt may ask for; each is made only when one does."""
        state, settings, mark = self.state, self.settings, self.mark
        data = partial(fence, mark=mark) if mark else _unfenced
        number = state["round"]
        answers, critiques = turns_of(state, "propose"), turns_of(state, "critique")
        left_out = _left_out(state, turns)
        latest = answers[-1] if answers else None
        control = {
            "nonce": lambda: self.tag,
            "data_rule": lambda: render("shared/data", {"mark": lambda: mark}),
        }
        own = answers_of(state, self.seat.id)
        given = [turn for turn in critiques if turn.status != "failed"]
        return {
            **control,
            "control": lambda: render(_control(settings, self.part), control),
            "task": lambda: load(f"{settings.protocol}/{settings.style}.{self.part}"),
            "concessions_so_far": lambda: concessions_so_far(state, settings, self.seat.id),
            "other_labels": lambda: other_labels(state, settings, self.seat.id),
            "missing_support": lambda: missing_support(state, settings, self.seat.id),
            "verdict": lambda: _verdict_given(state, data),
            "question": lambda: data("question", state["question"]),
            "templates": lambda: _templates(self.templates, data),
            "template_hint": lambda: _template_hint(self.templates),
            "passages": lambda: _passages(self.passages, data, bare=not mark),
            "quote_checks": lambda: _quote_checks(self, data),
            "remarks": lambda: _remarks(state, data),
            "own_last": lambda: data("answer", own[-1].text),
            "own_label": lambda: label_of(state, settings, self.seat.id),
            "answers": lambda: _labelled(self, data),
            "others": lambda: _labelled(self, data),
            "feedback": lambda: data("feedback", critiques[-1].text),
            "feedback_before": lambda: _feedback_before(given, data),
            "system_prompt": lambda: self.seat.system_prompt,
            "answer_last": lambda: data("answer", answers[-1].text),
            "critique_last": lambda: data("critique", critiques[-1].text),
            "history": lambda: _history(self, turns, left_out, data),
            "earlier": lambda: _history(
                self, [t for t in turns if t is not latest], left_out, data
            ),
            "points": lambda: _points(points_of(state), data),
            "final_answer": lambda: data("answer", state["final_answer"]),
            "round": lambda: str(number),
            "previous_round": lambda: str(number - 1),
            "max_rounds": lambda: str(settings.rounds[1]),
            "stop_reason": lambda: state["stop"].evidence,
            **values_of(
                settings, ModeratedPrompt(state, self.seat, self.part, turns, data, control)
            ),
            **forecast_values(
                settings, ForecastCall(state, self.seat, self.part, self.tag, mark, data)
            ),
        }

    def custom_values(
        self, values: dict[str, Callable[[], str]], turns: list[Turn]
    ) -> dict[str, Callable[[], str]]:
        """What the placeholders of a user's own prompt stand for."""
        number = self.state["round"]
        before = [turn for turn in turns if turn.round < number]
        own = [turn for turn in before if turn.seat == self.seat.id]
        current = [turn for turn in turns if turn.round == number]
        left_out = _left_out(self.state, turns)
        data = partial(fence, mark=self.mark) if self.mark else _unfenced
        place = ids_with_role(self.state, self.seat.role).index(self.seat.id)
        return values | {
            "history": lambda: _history(self, before, left_out, data) or "(No earlier rounds.)",
            "own_position": lambda: _history(self, own, [], data) or "(No position yet.)",
            "current_round": lambda: (
                _history(self, current, [], data) or "(Nobody has spoken before you.)"
            ),
            "model_name": values["own_label"],
            "debater_number": lambda: str(place + 1),
        }


@values_of.register
def _of_adversarial(
    settings: AdversarialSettings, _: ModeratedPrompt
) -> dict[str, Callable[[], str]]:
    return {"early_stop_score": lambda: f"{settings.early_stop_score:g}"}


def _unfenced(_label: str, text: str) -> str:
    return text


def _labelled(sheet: "_PromptValues", data: Fence) -> str:
    """Answers under what their seats are known as."""
    if not sheet.answers:
        return "There are none so far."
    shown = []
    for turn, excerpt in sheet.answers:
        text = data("answer", excerpt.text) if excerpt.text else ""
        label = label_of(sheet.state, sheet.settings, turn.seat)
        parts = (f"### {label}", excerpt.note, text)
        shown.append("\n".join(part for part in parts if part))
    return "\n\n".join(shown)


def _feedback_before(given: Sequence[Turn], data: Fence) -> str:
    if not given:
        return ""
    return f"## Your feedback in round {given[-1].round}\n{data('feedback', given[-1].text)}"


def _templates(chosen: Sequence[TemplateUse], data: Fence) -> str:
    if not chosen:
        return ""
    shown = (data("template", f"{use.title}\n\n{use.text}") for use in chosen)
    return "## Available reasoning templates\n" + "\n\n".join(shown)


def _template_hint(chosen: Sequence[TemplateUse]) -> str:
    """All of a template that the smallest models can use: what kind of question it is."""
    return f"Kind of question: {chosen[0].title}." if chosen else ""


def _passages(passages: Sequence[Passage], data: Fence, *, bare: bool) -> str:
    """What the documents say, with the rule for quoting it; the smallest models get no rule."""
    if not passages:
        return ""
    in_order = sorted(passages, key=lambda each: (each.document, each.page))
    shown = "\n\n".join(data("document", each.labelled) for each in in_order)
    return shown if bare else render("shared/passages", {"passages": lambda: shown})


def _quote_checks(sheet: "_PromptValues", data: Fence) -> str:
    """Which quotes stand in the documents, altered or not at all; the latest verdict on each.

    Of more than there is room for, those that were quoted last.
    """
    checks: dict[str, tuple[Turn, QuoteCheck]] = {}
    for turn in sheet.state.get("turns", []):
        for quote in turn.quotes:
            if is_checked(quote):
                checks.pop(quote.text, None)
                checks[quote.text] = (turn, quote)
    if not checks:
        return ""
    lines = []
    for number, (turn, quote) in enumerate(checks.values(), 1):
        who = f"{_label(sheet, turn)}, round {turn.round}"
        lines.append(f"{number}. {quote_line(quote, f' ({who})')}")
    latest = _fitting(lines[::-1], sheet.room, str)[::-1]
    listed = data("quotes", "\n".join(latest))
    if missing := len(lines) - len(latest):
        listed = f"(Left out because the whole does not fit: the first {missing}.)\n{listed}"
    return render("shared/quotes", {"quotes": lambda: listed})


def _remarks(state: DebateState, data: Fence) -> str:
    said = turns_of(state, "remark")
    if not said:
        return ""
    return "## The user added\n" + "\n".join(data("user", turn.text) for turn in said)


def _control(settings: DebateSettings, part: str) -> str:
    """The form of the control block: that of the part, or of the protocol's critiques."""
    what = part.removesuffix("_again")
    names = (f"{settings.protocol}/control.{what}", f"shared/control.{what}")
    return next(filter(exists, names), f"{settings.protocol}/control.critique")


def _verdict_given(state: DebateState, data: Fence) -> str:
    given = turns_of(state, "verdict")
    return f"## Your verdict\n{data('verdict', given[-1].text)}" if given else ""


def speeches(state: DebateState) -> list[Turn]:
    """The turns that make up the debate itself; remarks, votes, requests and checks stand apart."""
    return [turn for turn in state.get("turns", []) if turn.phase not in _APART]


def _left_out(state: DebateState, shown: list[Turn]) -> list[Turn]:
    """The oldest speeches, where only the latest are shown."""
    said = speeches(state)
    return said[: len(said) - len(shown)]


def _history(sheet: "_PromptValues", turns: list[Turn], left_out: list[Turn], data: Fence) -> str:
    parts: list[str] = []
    if left_out:
        names = ", ".join(f"round {turn.round} {_label(sheet, turn)}" for turn in left_out)
        parts.append(f"(Left out because the whole does not fit: {names}.)")
    number = 0
    for turn in turns:
        if turn.round != number:
            number = turn.round
            parts.append(f"### Round {number}")
        parts.append(f"**{_label(sheet, turn)}:**\n{data(turn.role, turn.text)}")
    return "\n\n".join(parts)


def _label(sheet: "_PromptValues", turn: Turn) -> str:
    return label_of(sheet.state, sheet.settings, turn.seat)


def _points(points: list[Point], data: Fence) -> str:
    if not points:
        return "None on record."
    lines = (f"{p.id} {SEVERITY_MARKS[p.severity]} ({p.status}) {p.text}" for p in points)
    return data("points", "\n".join(lines))


def extraction_prompt(
    seat: Seat,
    speech: str,
    known: list[Point],
    debate_id: str,
    small_prompt: str = "shared/small/extract",
) -> list[BaseMessage]:
    """The prompt of the schema-bound call that reads what a speech decided."""
    if is_demonstration([seat]):
        return [HumanMessage(render(small_prompt, {"speech": lambda: speech}))]
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
