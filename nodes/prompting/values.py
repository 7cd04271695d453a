import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from contend.graph.phases import PHASES
from contend.graph.protocols.base import (
    PromptCall,
    PromptValues,
    Strategy,
    begin_alike,
    strategy_for,
)
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Turn, ids_with_role, turns_of
from contend.graph.values import QuoteCheck, Seat, TemplateUse
from contend.models.seats import is_small
from contend.nodes.prompting.answers import answer_part, answers_of, label_of
from contend.nodes.prompting.points import list_points, points_of
from contend.nodes.prompting.quotes import is_checked, quote_line
from contend.nodes.prompting.truncate import Excerpt, fit_items
from contend.prompts import exists, fence, fill, load, render
from contend.retrieval.documents import Passage
from contend.retrieval.images import Picture

# Values added to a user's own prompt, which has no placeholders for them.
_MATERIAL = ("{remarks}", "{quote_checks}", "{passages}")

# The beginnings of prompts that other prompts repeat; the history only grows at its end.
_QUESTION = re.compile(r"[^{]*\{question\}([^{]*\{sides\})?")
_HISTORY = re.compile(r"([^{]*\{(question|sides)\})*[^{]*\{(history|exchanges|answers)\}")
# Phases whose prompts do not show the history.
_WITHOUT_HISTORY = ("correction", "fact_check", "score")

_TEMPLATE_RULE = (
    "Use the reasoning template above that fits best as your scaffold; if none fits, use none."
)
_TYPICAL_ERRORS = ", look for the typical errors that the reasoning templates above name"
_EXCERPT_RULE = (
    "Of an excerpt, judge only what you see: do not call missing what the rest may contain."
)


def prompt_text(seat: Seat, settings: DebateSettings, part: str) -> str:
    strategy = strategy_for(settings)
    own = strategy.own_prompt(part)
    if own is None:
        return load(prompt_name(_folder(seat, settings), strategy.prompt_role(seat), part))
    return "\n\n".join([own, *_MATERIAL, *(["{templates}"] if part == "first" else [])])


def prompt_name(folder: str, role: str, part: str) -> str:
    """Return the name of the first existing prompt: the role's, the protocol's or a shared one."""
    shared = "shared/small" if folder.endswith("/small") else "shared"
    names = (f"{folder}/{role}.{part}", f"{folder}/all.{part}")
    return next(filter(exists, names), f"{shared}/{role}.{part}")


def _folder(seat: Seat, settings: DebateSettings) -> str:
    return f"{settings.protocol}/small" if is_small([seat]) else settings.protocol


def _control(protocol: str, part: str) -> str:
    what = part.removesuffix("_again")
    names = (f"{protocol}/control.{what}", f"shared/control.{what}")
    return next(filter(exists, names), f"{protocol}/control.critique")


def fence_mark(debate_id: str) -> str:
    """Return the nonce in a debate's fences. It never changes, so that prompts can be cached."""
    return hashlib.sha256(f"{debate_id}/fence".encode()).hexdigest()[:6]


def turns_in_history(state: DebateState) -> list[Turn]:
    return [turn for turn in state.get("turns", []) if PHASES[turn.phase].in_history]


@dataclass(frozen=True)
class PromptContent:
    state: DebateState
    settings: DebateSettings
    seat: Seat
    part: str
    debate_id: str
    tag: str
    room: int | None = None  # tokens that the prompt may fill; None if unlimited
    templates: tuple[TemplateUse, ...] = ()
    passages: tuple[Passage, ...] = ()
    answers: tuple[tuple[Turn, Excerpt], ...] = ()  # the answers to show, as far as they fit

    @property
    def mark(self) -> str:
        # Models as small as the demo model are confused by long instructions and fences. They
        # need no fences, because their decisions are asked for in a schema, not read from text.
        return "" if is_small([self.seat]) else fence_mark(self.debate_id)

    @property
    def strategy(self) -> Strategy[DebateSettings]:
        return strategy_for(self.settings)

    def fence(self, label: str, text: str) -> str:
        return fence(label, text, self.mark) if self.mark else text

    def shortened(self) -> tuple[str, ...]:
        return tuple(self._label(turn) for turn, excerpt in self.answers if excerpt.left_out)

    def messages(self, turns: list[Turn], pictures: Sequence[Picture]) -> list[BaseMessage]:
        values = self.values(turns)
        text = fill(prompt_text(self.seat, self.settings, self.part), values)
        # Send plain text if there are no pictures, because all kinds of servers accept that.
        content: Any = [{"type": "text", "text": text}, *(each.block() for each in pictures)]
        return [
            SystemMessage("\n\n".join(self._system(values))),
            HumanMessage(content if pictures else text),
        ]

    def _system(self, values: PromptValues) -> Iterator[str]:
        # Large models get the same in all seats, so that a provider can cache it for all of them.
        small = is_small([self.seat])
        if not small:
            yield render(f"{self.settings.protocol}/system", values)
        # A user's own prompt has no place for the role.
        if small or self.strategy.own_prompt(self.part) is not None:
            yield values["role"]()
        if self.seat.tools:
            yield self._about_tools()

    def stable_characters(self, turns: list[Turn], text: str) -> int | None:
        """Return how many characters another prompt to this model repeats, or None if none does."""
        # After a tool call, the whole prompt is sent again.
        if self.seat.tools or self.strategy.repeats_prompt(self.state, self.seat, self.part):
            return self._repeated_characters(turns, text)
        last = self._as_last_marked()
        if last is None:
            return None
        left_out = len(self._left_out(turns))
        return last._repeated_characters(turns_in_history(last.state)[left_out:], text)

    def _repeated_characters(self, turns: list[Turn], text: str) -> int:
        template, values = prompt_text(self.seat, self.settings, self.part), self.values(turns)
        begins = [turns and _HISTORY.match(template), _QUESTION.match(template)]
        repeated = (fill(each[0], values) for each in begins if each)
        return next((len(each) for each in repeated if text.startswith(each)), 0)

    def _as_last_marked(self) -> "PromptContent | None":
        """Return the content of the model's last prompt that was marked for caching, if any."""
        said = self.state.get("turns", [])
        last = next(filter(self._was_marked, reversed(said)), None)
        if last is None or "final_answer" in self.state:
            return None
        # The first prompt of a debater has no history.
        is_first = last.phase == "propose" and last.round == self.strategy.first_round
        seen = [] if is_first else [turn for turn in said if turn.ended_at <= last.started_at]
        before: DebateState = {**self.state, "turns": seen, "round": last.round}
        return replace(self, state=before, answers=())

    def _was_marked(self, turn: Turn) -> bool:
        waiting = [self.seat.id] if turn.round == self.state["round"] else []
        then: DebateState = {**self.state, "round": turn.round, "waiting": waiting}
        then.pop("stop", None)
        if self.strategy.own_prompt(self.part) is not None and turn.seat != self.seat.id:
            return False
        speakers = [each for each in self.state["seats"] if each.id == turn.seat]
        return turn.phase not in _WITHOUT_HISTORY and any(
            begin_alike(self.seat, each) and self.strategy.repeats_prompt(then, each, "")
            for each in speakers
        )

    def _role(self, values: PromptValues) -> str:
        role = self.strategy.prompt_role(self.seat)
        return render(f"{_folder(self.seat, self.settings)}/{role}", values)

    def _about_tools(self) -> str:
        most = self.strategy.most_tool_calls
        values: PromptValues = {
            "count": lambda: "once" if most == 1 else f"{most} times",
            "tools": lambda: ", ".join(self.seat.tools),
            "mark": lambda: self.mark,
        }
        return render("shared/tools", values)

    def values(self, turns: list[Turn]) -> PromptValues:
        control: PromptValues = {
            "nonce": lambda: self.tag,
            "data_rule": lambda: render("shared/data", {"mark": lambda: self.mark}),
        }
        call = PromptCall(
            self.state, self.seat, self.part, turns, self.tag, self.mark, self.fence, control
        )
        values: PromptValues = {
            **control,
            "role": lambda: self._role(values),
            **self._debate_values(turns),
            **self._material_values(),
            "control": lambda: render(_control(self.settings.protocol, self.part), values),
            **self.strategy.prompt_values(call),
        }
        if self.strategy.own_prompt(self.part) is not None:
            values |= self._custom_values(values, turns)
        return values

    def _debate_values(self, turns: list[Turn]) -> PromptValues:
        state, data = self.state, self.fence
        answers, critiques = turns_of(state, "propose"), turns_of(state, "critique")
        return {
            "task": lambda: load(f"{self.settings.protocol}/{self.strategy.style}.{self.part}"),
            "question": lambda: data("question", state["question"]),
            "own_last": lambda: data(
                "answer", answer_part(answers_of(state, self.seat.id)[-1].text)
            ),
            "own_label": lambda: label_of(state, self.settings, self.seat.id),
            "answers": self._labelled_answers,
            "others": self._labelled_answers,
            "feedback_heading": lambda: (
                "## Instead of feedback"
                if critiques[-1].status == "failed"
                else "## The judge's feedback on all answers"
            ),
            "excerpt_rule": lambda: _EXCERPT_RULE if any(x.note for _, x in self.answers) else "",
            "feedback": lambda: data("feedback", critiques[-1].text),
            "feedback_before": lambda: self._feedback_before(critiques),
            "system_prompt": lambda: self.seat.system_prompt,
            "answer_last": lambda: data("answer", answers[-1].text),
            "critique_last": lambda: data("critique", critiques[-1].text),
            "history": lambda: self._history(turns, self._left_out(turns)),
            "points": lambda: list_points(points_of(state), data),
            "verdict": self._verdict,
            "final_answer": lambda: data("answer", state["final_answer"]),
            "round": lambda: str(state["round"]),
            "max_rounds": lambda: str(self.strategy.rounds[1]),
            "stop_reason": lambda: state["stop"].evidence,
        }

    def _material_values(self) -> PromptValues:
        return {
            "templates": lambda: _templates(self.templates, self.fence),
            "template_rule": lambda: _TEMPLATE_RULE if self.templates else "",
            "typical_errors": lambda: _TYPICAL_ERRORS if self.templates else "",
            # A short hint for the smallest models: the kind of question the template is for.
            "template_hint": lambda: (
                f"Kind of question: {self.templates[0].title}." if self.templates else ""
            ),
            "passages": lambda: _passages(self.passages, self.fence, bare=not self.mark),
            "quote_checks": self._quote_checks,
            "remarks": self._remarks,
        }

    def _custom_values(self, values: PromptValues, turns: list[Turn]) -> PromptValues:
        number = self.state["round"]
        before = [turn for turn in turns if turn.round < number]
        own = [turn for turn in before if turn.seat == self.seat.id]
        current = [turn for turn in turns if turn.round == number]
        place = ids_with_role(self.state, self.seat.role).index(self.seat.id)
        return {
            "history": lambda: (
                self._history(before, self._left_out(turns)) or "(No earlier rounds.)"
            ),
            "own_position": lambda: self._history(own, []) or "(No position yet.)",
            "current_round": lambda: (
                self._history(current, []) or "(Nobody has spoken before you.)"
            ),
            "model_name": values["own_label"],
            "debater_number": lambda: str(place + 1),
        }

    def _label(self, turn: Turn) -> str:
        return label_of(self.state, self.settings, turn.seat)

    def _left_out(self, shown: list[Turn]) -> list[Turn]:
        said = turns_in_history(self.state)
        return said[: len(said) - len(shown)]

    def _history(self, turns: list[Turn], left_out: list[Turn]) -> str:
        parts: list[str] = []
        if left_out:
            names = ", ".join(f"round {turn.round} {self._label(turn)}" for turn in left_out)
            parts.append(f"(Left out because the whole does not fit: {names}.)")
        number = 0
        for turn in turns:
            if turn.round != number:
                number = turn.round
                parts.append(f"### Round {number}")
            parts.append(f"**{self._label(turn)}:**\n{self.fence(turn.role, turn.text)}")
        return "\n\n".join(parts)

    def _labelled_answers(self) -> str:
        shown = []
        for turn, excerpt in self.answers:
            text = self.fence("answer", excerpt.text) if excerpt.text else ""
            parts = (f"### {self._label(turn)}", excerpt.note, text)
            shown.append("\n".join(part for part in parts if part))
        return "\n\n".join(shown) or "There are none so far."

    def _feedback_before(self, critiques: Sequence[Turn]) -> str:
        given = [turn for turn in critiques if turn.status != "failed"]
        if not given:
            return ""
        text = self.fence("feedback", given[-1].text)
        return f"## Your feedback in round {given[-1].round}\n{text}"

    def _verdict(self) -> str:
        given = turns_of(self.state, "verdict")
        return f"## Your verdict\n{self.fence('verdict', given[-1].text)}" if given else ""

    def _remarks(self) -> str:
        said = [self.fence("user", turn.text) for turn in turns_of(self.state, "remark")]
        return "\n".join(["## The user added", *said]) if said else ""

    def _rated_text(self) -> str | None:
        """Return the text to score if this prompt asks for scores, else None."""
        if self.part not in ("score", "scores"):
            return None
        about = self.state["cue"].turns if "cue" in self.state else ()
        rated = [turn.text for turn in self.state.get("turns", []) if turn.id in about]
        text = rated[0] if rated else self.state["final_answer"]
        return " ".join(text.split())

    def _quote_checks(self) -> str:
        """List each quote's latest check, omitting the oldest checks if not all fit."""
        rated = self._rated_text()
        checks: dict[str, tuple[Turn, QuoteCheck]] = {}
        for turn in self.state.get("turns", []):
            for quote in filter(is_checked, turn.quotes):
                checks.pop(quote.text, None)
                if rated is None or " ".join(quote.text.split()) in rated:
                    checks[quote.text] = (turn, quote)
        if not checks:
            return ""
        lines = [
            f"{number}. {quote_line(quote, f' ({self._label(turn)}, round {turn.round})')}"
            for number, (turn, quote) in enumerate(checks.values(), 1)
        ]
        latest = fit_items(lines[::-1], self.room, str)[::-1]
        listed = self.fence("quotes", "\n".join(latest))
        if missing := len(lines) - len(latest):
            listed = f"(Left out because the whole does not fit: the first {missing}.)\n{listed}"
        return render("shared/quotes", {"quotes": lambda: listed})


def _templates(chosen: Sequence[TemplateUse], data: Callable[[str, str], str]) -> str:
    if not chosen:
        return ""
    shown = (data("template", f"{use.title}\n\n{use.text}") for use in chosen)
    return "## Available reasoning templates\n" + "\n\n".join(shown)


def _passages(passages: Sequence[Passage], data: Callable[[str, str], str], *, bare: bool) -> str:
    if not passages:
        return ""
    in_order = sorted(passages, key=lambda each: (each.document, each.page))
    shown = "\n\n".join(data("document", each.labelled) for each in in_order)
    return shown if bare else render("shared/passages", {"passages": lambda: shown})
