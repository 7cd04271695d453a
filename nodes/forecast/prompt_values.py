import json
from collections.abc import Iterable, Sequence
from functools import cached_property

from contend.graph.forecast_contract.request import PredictionContext
from contend.graph.forecast_contract.terms import Criterion
from contend.graph.protocols.base import PromptCall, PromptValues, strategy_for
from contend.graph.settings import ForecastSettings
from contend.graph.state import Turn
from contend.nodes.forecast.arguments import (
    ScoredArgument,
    context_of,
    kept_arguments,
    latest_statements,
    majority,
    of_round,
    prefixes_of,
)
from contend.nodes.forecast.context import (
    day_of_forecast,
    fact_lines,
    question_and_outcomes,
    room_for_facts,
    size_of,
    tokens_to_bytes,
)
from contend.prompts import render

# The share of an argument's prompt that points may take.
_POINTS_SHARE = 0.32
# Tokens that an argument's block takes, words per token, and the fewest useful words.
_BLOCK_TOKENS, _WORDS_PER_TOKEN, _FEWEST_WORDS = 150, 0.7, 25
# Tokens of points shown to the scoring judge.
_POINTS_FOR_SCORING = 160

_BANDS: dict[Criterion, str] = {
    "logical_strength": "0-0.3 fallacies or leaps; 0.3-0.6 mostly sound, with gaps; "
    "0.6-0.8 strong, small flaws; 0.8-1 airtight",
    "evidence_quality": "0-0.3 none or an anecdote; 0.3-0.6 some, but incomplete or old; "
    "0.6-0.8 solid, credible sources; 0.8-1 several sources that confirm each other",
    "novelty": "0-0.3 what everybody says; 0.3-0.6 a new connection; "
    "0.6-0.8 a really new angle; 0.8-1 surprising, and right",
}


def forecast_values(settings: ForecastSettings, call: PromptCall) -> PromptValues:
    return _ForecastValues(settings, call).values()


class _ForecastValues:
    def __init__(self, settings: ForecastSettings, call: PromptCall) -> None:
        self._settings, self.state, self.seat = settings, call.state, call.seat
        self.part, self.tag, self.mark, self.data = call.part, call.tag, call.mark, call.fence

    def values(self) -> PromptValues:
        return {
            "data_short": lambda: render("forecast/data", {"mark": lambda: self.mark}),
            "situation": self._situation,
            "asked": lambda: self.data("question", self._asked()),
            "outcome_list": lambda: "; ".join(
                f"{o.id} ({o.label})" for o in self._context.outcomes
            ),
            "positions": self._positions,
            "majority": self._majority,
            "arguments_so_far": lambda: self._arguments_so_far,
            "points_before": self._points_before,
            "points_list": lambda: "\n".join(self._point_lines(self._others())) or "Nothing yet.",
            "points_and_scores": self._points_and_scores,
            "last_arguments": self._last_arguments,
            "words": lambda: str(self._words()),
            "about": lambda: self.data("argument", self._about.text),
            "about_role": lambda: f"{self._about.role}'s",
            "about_round": lambda: str(self._about.round),
            "weakness": self._weakness,
            "criteria": self._criteria,
            "own_role": lambda: self.seat.name,
            "viewpoint": self._viewpoint,
            "sample_point": self._sample_point,
            "citing_rule": self._citing_rule,
            "argument_form": lambda: self._form("argument"),
            "score_form": lambda: self._form("score"),
            "verdict_form": lambda: self._form("verdict"),
        }

    @property
    def _about(self) -> Turn:
        wanted = self.state["cue"].turns[0]
        return next(turn for turn in self.state.get("turns", []) if turn.id == wanted)

    @cached_property
    def _context(self) -> PredictionContext:
        return context_of(self.state)

    @cached_property
    def _kept(self) -> list[ScoredArgument]:
        return kept_arguments(self.state)

    def _room(self, share: float) -> int:
        return tokens_to_bytes(share * self._settings.argument_input_tokens)

    def _words(self) -> int:
        tokens = self._settings.max_argument_length - _BLOCK_TOKENS
        return max(_FEWEST_WORDS, round(tokens * _WORDS_PER_TOKEN // 5 * 5))

    def _asked(self) -> str:
        return question_and_outcomes(self.state["question"], self._context)

    def _situation(self) -> str:
        lines = fact_lines(self._context, room_for_facts(self._settings, self.part))
        today = day_of_forecast(self._context, self.state["retrieval"].started_at.date())
        return self.data("question", "\n".join([self._asked(), f"Today: {today}", *lines]))

    def _others(self) -> list[ScoredArgument]:
        others = [said for said in self._kept if said.role != self.seat.role]
        if self.part != "references":
            return others
        return [said for said in others if said.turn.round < self._about.round]

    @cached_property
    def _arguments_so_far(self) -> str:
        own = self._own_line()
        room = self._room(_POINTS_SHARE) - size_of([own])
        return self._points(self._others(), room, own)

    def _own_line(self) -> str:
        before = [s for s in self._kept if s.role == self.seat.role]
        if self.part in ("stronger", "references") or not before or not before[-1].reading.point:
            return ""
        reading = before[-1].reading
        numbers = " ".join(f"{o} {p:.0%}" for o, p in reading.stated.probabilities.items())
        return f"{before[-1].point_id} you{', ' if numbers else ''}{numbers}: {reading.point}"

    def _points_before(self) -> str:
        number, role = self._about.round, self._about.role
        speakers = strategy_for(self._settings).speakers(number, self._settings.role_names)
        late = role not in speakers
        said = [
            each
            for each in self._kept
            if each.turn.round < number
            or (late and each.turn.round == number and each.role != role)
        ]
        points = self._points(said, tokens_to_bytes(_POINTS_FOR_SCORING))
        return f"Said before it, and so no longer new:\n{points}" if points else ""

    def _points(self, said: list[ScoredArgument], room: int, *first: str) -> str:
        """List the points that fit, reserving up to half of the room for earlier rounds."""
        newest = max((each.turn.round for each in said), default=0)
        new = self._point_lines(s for s in said if s.turn.round == newest)
        old = self._point_lines(s for s in reversed(said) if s.turn.round < newest)
        shown = _fitting(new, room - min(room // 2, size_of(old)))
        older = _fitting(old, room - size_of(shown))
        left_out = len(new) + len(old) - len(shown) - len(older)
        more = [f"({left_out} further points left out for room.)"] if left_out else []
        lines = [*(line for line in first if line), *more, *reversed(older), *shown]
        return self.data("points", "\n".join(lines)) if lines else ""

    def _point_lines(self, said: Iterable[ScoredArgument]) -> list[str]:
        return [
            f"{each.point_id} {each.role}{_supporting(each)}: {each.reading.point}"
            for each in said
            if each.reading.point
        ]

    def _positions(self) -> str:
        latest = latest_statements(self._kept)
        shown = []
        for role in self._settings.role_names:
            if role in latest:
                given = latest[role].reading.stated.probabilities
                shown.append(f"{role} " + " ".join(f"{o} {p:.0%}" for o, p in given.items()))
        return "; ".join(shown) or "nobody has given numbers yet."

    def _majority(self) -> str:
        leading = majority(self.state, self.seat.role)
        if leading is not None:
            count = f"{leading.votes} of {leading.voters} others"
            return f"The panel now leans to `{leading.outcome}` ({count})."
        simulated = self._context.simulation_summary.final_distribution
        if simulated:
            leader = max(simulated, key=lambda each: each.probability)
            leaning = f"a simulation leans to `{leader.outcome_id}` ({leader.probability:.0%})"
            return f"The panel has not spoken; {leaning}: argue against that."
        return "Nobody has spoken yet: argue against what most people would expect."

    def _points_and_scores(self) -> str:
        lines = []
        for each in self._kept:
            score = "not scored" if each.composite is None else f"scored {each.composite:.2f}"
            lines.append(
                f"{each.point_id} {each.role}{_supporting(each)}, {score}: {each.reading.point}"
            )
        return self.data("points", "\n".join(lines))

    def _last_arguments(self) -> str:
        rounds = [said.turn.round for said in self._kept]
        last = of_round(self._kept, max(rounds, default=0))
        return "\n\n".join(
            f"{each.role.capitalize()} [{each.point_id}]:\n{self.data('argument', each.turn.text)}"
            for each in last
        )

    def _weakness(self) -> str:
        scored = next((s.score for s in self._kept if s.turn.id == self._about.id), None)
        reason = scored.reason if scored else ""
        return self.data("score", reason) if reason else "It scored too low."

    def _viewpoint(self) -> str:
        known = {each.name: each.description for each in self._settings.own_roles}
        return self.data("viewpoint", known[self.seat.role])

    def _criteria(self) -> str:
        lines = [f"- {name}: {_BANDS[name]}" for name in self._settings.scoring_criteria]
        own = [f"- {each.name}: {each.description}" for each in self._settings.own_criteria]
        return "\n".join([*lines, *([self.data("criteria", "\n".join(own))] if own else [])])

    def _sample_point(self) -> str:
        """Return the id of another role's latest point, as an example of a citation."""
        number = self.state["round"]
        shown = [each for each in self._others() if each.reading.point and each.turn.round < number]
        newest = max((said.turn.round for said in shown), default=0)
        first = f"{prefixes_of(self.state)[self._settings.role_names[0]]}1"
        return next((said.point_id for said in shown if said.turn.round == newest), first)

    def _citing_rule(self) -> str:
        if self.state["round"] == 1:
            return ""
        return f", citing the points you answer by id, such as [{self._sample_point()}]"

    def _form(self, kind: str) -> str:
        ids = self._context.outcome_ids
        values: PromptValues = {
            "nonce": lambda: self.tag,
            "probability_slots": lambda: f"{{{_slots(ids)}}}",
            "more_slots": self._more_slots,
            "score_slots": lambda: _slots(self._settings.criteria_weights),
        }
        return render(f"forecast/control.{kind}", values)

    def _more_slots(self) -> str:
        slots = ""
        if self.state["round"] > 1:
            slots += ', "rebuts": ["<role>"], "refers_to": ["<point id>"]'
        if self.seat.role == "historian" and self.state["round"] == 1:
            slots += (
                ', "precedents": [{"event": "<what>", "date": "<when>", '
                '"outcome": "<how it ended>", "relevance": "<why it matters here>", '
                '"similarity": <0 to 1>}]'
            )
        return slots


def _slots(names: Iterable[str]) -> str:
    return ", ".join(f"{json.dumps(name)}: <0 to 1>" for name in names)


def _supporting(said: ScoredArgument) -> str:
    outcome = said.reading.outcome
    if outcome is None:
        return ""
    given = said.reading.stated.probabilities.get(outcome)
    return f", {outcome}" if given is None else f", {outcome} {given:.0%}"


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    fitting: list[str] = []
    for line in lines:
        if size_of([*fitting, line]) <= room:
            fitting.append(line)
    return fitting
