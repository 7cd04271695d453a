"""What the prompts of a moderated debate are filled with, besides what every debate has."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import takewhile

from contend.graph.phases import PHASES, StepPhase
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings, ModeratedSettings
from contend.graph.settings.moderated import ADVOCATE
from contend.graph.state import (
    Breach,
    ClaimCheck,
    DebateState,
    FactCheck,
    Seat,
    Step,
    Turn,
    seat_with_id,
)
from contend.nodes.moderated.anonymize import names_kept, neutral_labels, without_names
from contend.nodes.moderated.schedule import statements, unreviewed
from contend.nodes.moderated.score_notes import scoring_notes, scoring_of
from contend.nodes.prompting.quotes import is_checked, quote_line
from contend.prompts import render

Value = Callable[[], str]
Fence = Callable[[str, str], str]

_REQUESTED: dict[StepPhase, str] = {
    "opening": "the opening statement",
    "argument": "an argument",
    "rebuttal": "a rebuttal",
    "closing": "the closing statement",
}
_BREACHES: dict[Breach, str] = {
    "off_topic": "off_topic (the statement leaves the topic)",
    "new_argument_in_closing": "new_argument_in_closing (a closing brings an argument never made)",
    "personal_attack": "personal_attack (it attacks a person instead of an argument)",
}
_WORDS_PER_TOKEN = 0.75
_REPORT = "Report the scores, and declare the winner if there is one."
_POINTS_RULE = (
    "What the moderator rules against, and every turn that is too long, costs you points."
)


@dataclass(frozen=True)
class ModeratedPrompt:
    """One call of a moderated debate: who is asked for what, and what fits of the debate so far."""

    state: DebateState
    seat: Seat
    part: str
    turns: Sequence[Turn]
    """Those that fit into the prompt."""
    data: Fence
    control: dict[str, Value]

    @property
    def step(self) -> Step:
        """The turn that is due."""
        due = self.state.get("programme") or [Step(phase="end", seat=self.seat.id)]
        return due[0]

    @property
    def everything(self) -> Sequence[Turn]:
        """All turns so far."""
        return self.state.get("turns", [])

    @property
    def sides(self) -> list[Seat]:
        """Those who hold a position."""
        return [seat for seat in self.state["seats"] if seat.role == ADVOCATE]

    def name(self, seat_id: str) -> str:
        """What a seat is called."""
        return seat_with_id(self.state, seat_id).name

    def others(self) -> list[Turn]:
        """The statements of the other sides, oldest first."""
        return [turn for turn in statements(self.everything) if turn.seat != self.seat.id]


@singledispatch
def values_of(settings: DebateSettings, floor: ModeratedPrompt) -> dict[str, Value]:  # noqa: ARG001 - dispatched on
    """The values only one protocol's prompts ask for; each may register some."""
    return {}


@values_of.register
def _of_moderated(settings: ModeratedSettings, floor: ModeratedPrompt) -> dict[str, Value]:
    """Every value is made only when a prompt asks for it."""
    return {
        **_of_the_format(settings),
        **_of_the_turn(settings, floor),
        **_of_the_checker(floor),
        **_of_the_judge(floor),
        "position": lambda: floor.data("position", floor.seat.position),
        "sides": lambda: _sides(floor),
        "side_count": lambda: str(len(floor.sides)),
        "side_names": lambda: ", ".join(side.name for side in floor.sides),
        "phase": lambda: phase_words(floor.step, floor.state["round"], settings.round_count),
        "exchanges": lambda: _exchanges(floor),
        "fact_checks": lambda: _fact_checks(floor),
        "verdict": lambda: _verdict(settings, floor),
        "form": lambda: _form(floor),
    }


def _of_the_format(settings: ModeratedSettings) -> dict[str, Value]:
    chosen = settings.debate_format
    return {
        "tone": lambda: render(f"moderated/tone.{chosen}", {}),
        "rules": lambda: render(f"moderated/rules.{chosen}", {}),
        "stress": lambda: render(
            f"moderated/stress.{chosen}", {"report": lambda: _if_scored(settings, _REPORT)}
        ),
        "points_rule": lambda: _if_scored(settings, _POINTS_RULE),
        "opening_tokens": lambda: str(settings.opening_statement_max_tokens),
        "argument_tokens": lambda: str(settings.argument_max_tokens),
        "closing_tokens": lambda: str(settings.closing_statement_max_tokens),
    }


def _if_scored(settings: ModeratedSettings, sentence: str) -> str:
    """What is true only where a judge scores."""
    return sentence if settings.scoring_enabled else ""


def _of_the_turn(settings: ModeratedSettings, floor: ModeratedPrompt) -> dict[str, Value]:
    step = floor.step
    return {
        "ruling": lambda: _review(settings, floor),
        "addressee": lambda: floor.name(step.to or ""),
        "addressee_position": lambda: seat_with_id(floor.state, step.to or "").position,
        "requested": lambda: _REQUESTED[step.asks or "opening"],
        "request": lambda: _request(floor),
        "limit_rule": lambda: _limit_rule(settings, step),
        "opponent_last": lambda: _opponent_last(floor),
        "opponents": lambda: _opponents(floor),
        "rebuttal_rule": lambda: _rebuttal_rule(floor),
        "round_statements": lambda: _said(
            floor, [t for t in statements(floor.everything) if t.round == floor.state["round"]]
        ),
        "last_words": lambda: _said(floor, statements(floor.everything)[-len(floor.sides) :]),
    }


def _of_the_checker(floor: ModeratedPrompt) -> dict[str, Value]:
    latest = statements(floor.everything)
    return {
        "statement": lambda: floor.data("statement", latest[-1].text),
        "statement_by": lambda: _titled(floor, latest[-1]),
        "claim": lambda: floor.data("claim", floor.state["cue"].about[0]),
        "own_statement": lambda: floor.data("statement", latest[-1].text),
        "contradicted": lambda: _contradicted(floor),
    }


def phase_words(step: Step, number: int, rounds: int) -> str:
    """The phase as the speakers are told it."""
    if step.phase in ("positions", "opening") or step.asks == "opening":
        return "The opening statements."
    if step.phase in ("closing", "end") or step.asks == "closing":
        return "The closing statements."
    if step.phase == "correction":
        return "A correction, before the debate goes on."
    what = {"argument": "an argument", "rebuttal": "a rebuttal", "summary": "its summary"}
    return f"Round {number} of {rounds}: {what[step.asks or step.phase]}."


def _titled(floor: ModeratedPrompt, turn: Turn) -> str:
    return f"{floor.name(turn.seat)}, {turn.phase}"


def _shown(floor: ModeratedPrompt, turn: Turn) -> str:
    return f"**{_titled(floor, turn)}:**\n{floor.data(turn.phase, turn.text)}"


def _said(floor: ModeratedPrompt, turns: Iterable[Turn]) -> str:
    """Statements for the smallest models, which get no fences."""
    return "\n\n".join(f"{floor.name(turn.seat)} said: {turn.text}" for turn in turns)


def _sides(floor: ModeratedPrompt) -> str:
    lines = "\n".join(f"{side.name}: {side.position}" for side in floor.sides)
    return floor.data("positions", lines)


def _exchanges(floor: ModeratedPrompt) -> str:
    """The debate so far under the headings of its stages, newest turns whole."""
    missing = sum(PHASES[turn.phase].in_history for turn in floor.everything) - len(floor.turns)
    parts = [f"(The oldest {missing} are left out because the whole does not fit.)"] * bool(missing)
    heading = ""
    for turn in floor.turns:
        if (title := _stage_title(turn)) != heading:
            heading = title
            parts.append(f"### {title}")
        parts.append(_shown(floor, turn))
    return "\n\n".join(parts) or "Nobody has spoken yet."


def _stage_title(turn: Turn) -> str:
    if turn.phase == "closing":
        return "Closing statements"
    return f"Round {turn.round}" if turn.round else "Opening statements"


def _review(settings: ModeratedSettings, floor: ModeratedPrompt) -> str:
    """The statement the moderator has to look at before going on, and what to look for."""
    turn = unreviewed(floor.everything)
    if turn is None:
        return ""
    sought = [_BREACHES[each] for each in breaches_of(settings, turn)]
    values: dict[str, Value] = {
        "statement": lambda: floor.data("statement", turn.text),
        "statement_by": lambda: _titled(floor, turn),
        "breaches": lambda: "; ".join(sought),
    }
    return render("moderated/ruling", values)


def breaches_of(settings: ModeratedSettings, turn: Turn) -> list[Breach]:
    """What of the format's breaches a statement of this phase can commit."""
    closing = turn.phase == "closing"
    return [
        each for each in settings.format.breaches if closing or each != "new_argument_in_closing"
    ]


def _form(floor: ModeratedPrompt) -> str:
    """The control block of a part that does not always decide something."""
    if floor.part == "rebuttal":
        decides = floor.step.to is None
    else:
        decides = unreviewed(floor.everything) is not None
    name = "rebuttal" if floor.part == "rebuttal" else "ruling"
    return render(f"moderated/control.{name}", floor.control) if decides else ""


def _request(floor: ModeratedPrompt) -> str:
    asked = [turn.text for turn in floor.everything if turn.phase == "request"]
    return floor.data("moderator", asked[-1]) if asked else ""


def _limit_rule(settings: ModeratedSettings, step: Step) -> str:
    limit = strategy_for(settings).token_limit(step.phase)
    if limit is None:
        return ""
    words = int(limit * _WORDS_PER_TOKEN)
    # A correction is not scored.
    costs = settings.scoring_enabled and step.phase != "correction"
    return f"At most {limit} tokens, about {words} words" + (
        "; a longer turn costs you points." if costs else "."
    )


def _opponent_last(floor: ModeratedPrompt) -> str:
    others = floor.others()
    if not others:
        return "There is none: nobody has spoken before you."
    return _shown(floor, others[-1])


def _opponents(floor: ModeratedPrompt) -> str:
    """What there is to rebut: the one opponent's argument, or those of all others."""
    number, to = floor.state["round"], floor.step.to
    arguments = [t for t in floor.others() if t.phase == "argument" and t.round == number]
    if to is not None:
        return f"## Your opponent's last statement\n{_shown(floor, arguments[-1])}"
    shown = "\n\n".join(_shown(floor, turn) for turn in arguments)
    return f"## Your opponents' arguments in this round\n{shown}"


def _rebuttal_rule(floor: ModeratedPrompt) -> str:
    if floor.step.to is not None:
        return f"Rebut {floor.name(floor.step.to)}'s argument."
    return "Choose the one argument you disagree with most, say whose it is, and rebut that one."


def checks_of(turns: Iterable[Turn]) -> list[FactCheck]:
    """All fact checks, oldest first."""
    return [turn.assessment for turn in turns if isinstance(turn.assessment, FactCheck)]


def _fact_checks(floor: ModeratedPrompt) -> str:
    found = [claim for check in checks_of(floor.everything) for claim in check.claims]
    if not found:
        return ""
    listed = floor.data("checks", "\n".join(claim_line(each) for each in found))
    return f"## What the fact checker found so far\n{listed}"


def claim_line(claim: ClaimCheck) -> str:
    """One checked claim on one line."""
    why = f" ({' '.join(claim.why.split())})" if claim.why else ""
    return f"{claim.verdict} [{claim.source}]: {' '.join(claim.claim.split())}{why}"


def _contradicted(floor: ModeratedPrompt) -> str:
    latest = checks_of(floor.everything)[-1]
    return floor.data("checks", "\n".join(claim_line(each) for each in latest.contradicted))


def _verdict(settings: ModeratedSettings, floor: ModeratedPrompt) -> str:
    verdict = floor.state.get("verdict")
    if verdict is None:
        return ""
    lines = []
    for each in verdict.standings:
        parts = ", ".join(f"{name} {mark:.2f}" for name, mark in each.breakdown.items())
        total = "no score" if each.total is None else f"{each.total:.2f} of 10"
        lines.append(f"{each.name}: {total}" + (f" ({parts})" if parts else ""))
    if settings.format.declares_winner:
        won = floor.name(verdict.winner) if verdict.winner else f"nobody: {verdict.no_winner}"
        lines.append(f"Winner: {won}")
    names = {seat.id: seat.name for seat in floor.state["seats"]}
    notes = scoring_notes(scoring_of(floor.state, verdict), names)
    lines += [f"To be said with the scores: {note}." for note in notes]
    return "## The judge's scores\n" + "\n".join(lines)


# --- the scoring judge's view, without names ---


def _of_the_judge(floor: ModeratedPrompt) -> dict[str, Value]:
    return {
        "neutral_sides": lambda: _neutral_sides(floor),
        "neutral_stage": lambda: _neutral_stage(floor),
        "neutral_earlier": lambda: _neutral_earlier(floor),
        "neutral_checks": lambda: _neutral_checks(floor),
        "neutral_quotes": lambda: _neutral_quotes(floor),
        "stage_name": lambda: _stage_title(_stage(floor)[0]).lower(),
    }


def _stage(floor: ModeratedPrompt) -> list[Turn]:
    by_id = {turn.id: turn for turn in floor.everything}
    return [by_id[each] for each in floor.state["cue"].turns]


def _labels(floor: ModeratedPrompt) -> dict[str, str]:
    """Numbers in the order of appearance, so that the other order is another labelling too."""
    seen = dict.fromkeys([turn.seat for turn in _stage(floor)])
    rest = [side.id for side in floor.sides if side.id not in seen]
    return neutral_labels([*seen, *rest], [side.name for side in floor.sides])


def _neutral_sides(floor: ModeratedPrompt) -> str:
    labels = _labels(floor)
    held = {side.id: side.position for side in floor.sides}
    lines = "\n".join(f"{label}: {held[seat]}" for seat, label in labels.items())
    return floor.data("positions", lines)  # a name that stands in one is kept anyway


def _neutral_stage(floor: ModeratedPrompt) -> str:
    labels = _labels(floor)
    shown = []
    for number, turn in enumerate(_stage(floor), 1):
        text = floor.data("statement", _without_names(floor, labels, turn.text))
        shown.append(f"### S{number}: {labels[turn.seat]}, {turn.phase}\n{text}")
    return "\n\n".join(shown)


def _neutral_earlier(floor: ModeratedPrompt) -> str:
    labels, stage = _labels(floor), _stage(floor)
    scored, fitting = {turn.id for turn in stage}, {turn.id for turn in floor.turns}
    said_before = takewhile(lambda turn: turn.id not in scored, floor.everything)
    before = [turn for turn in said_before if turn.seat in labels]
    left_out = [turn for turn in before if turn.id not in fitting]
    names = ", ".join(f"round {turn.round} {labels[turn.seat]}, {turn.phase}" for turn in left_out)
    note = [f"(Left out because the whole does not fit: {names}.)"] * bool(left_out)
    shown = [
        f"**{labels[turn.seat]}, {turn.phase}:**\n"
        + floor.data("statement", _without_names(floor, labels, turn.text))
        for turn in before
        if turn.id in fitting
    ]
    return "\n\n".join(["## What was said before", *note, *shown]) if before else ""


def _numbers(floor: ModeratedPrompt) -> dict[str, str]:
    """What each statement of the stage is known as; a name would give its side away."""
    return {turn.id: f"S{number}" for number, turn in enumerate(_stage(floor), 1)}


def _neutral_quotes(floor: ModeratedPrompt) -> str:
    """Which quotes in the statements stand in the documents, and which were made up."""
    numbers = _numbers(floor)
    lines = [
        f"{numbers[turn.id]}: {quote_line(quote)}"
        for turn in _stage(floor)
        for quote in turn.quotes
        if is_checked(quote)
    ]
    if not lines:
        return ""
    plain = _without_names(floor, _labels(floor), "\n".join(lines))
    return render("shared/quotes", {"quotes": lambda: floor.data("quotes", plain)})


def _neutral_checks(floor: ModeratedPrompt) -> str:
    numbers = _numbers(floor)
    lines = [
        f"{numbers[check.turn]}: {claim_line(claim)}"
        for check in checks_of(floor.everything)
        if check.turn in numbers
        for claim in check.claims
    ]
    corrected = [
        f"{numbers[turn.replies_to]}: the speaker corrected this: {' '.join(turn.text.split())}"
        for turn in floor.everything
        if turn.phase == "correction" and turn.replies_to in numbers
    ]
    if not lines:
        return ""
    plain = _without_names(floor, _labels(floor), "\n".join([*lines, *corrected]))
    return f"## What the fact checker found in them\n{floor.data('checks', plain)}"


def _without_names(floor: ModeratedPrompt, labels: dict[str, str], text: str) -> str:
    """The speakers' labels also where they speak of each other."""
    kept = names_kept(floor.state, floor.sides)
    return without_names(
        text, {side.name: labels[side.id] for side in floor.sides if side.name not in kept}
    )
