from collections.abc import Iterable, Sequence

from contend.graph.phases import PHASES, StepPhase
from contend.graph.protocols.base import PromptCall, PromptValues, strategy_for
from contend.graph.readings import Breach, ClaimCheck, FactCheck
from contend.graph.settings import ModeratedSettings
from contend.graph.state import Step, Turn, seat_with_id
from contend.graph.values import Seat
from contend.models.seats import is_small
from contend.nodes.moderated.schedule import (
    planned_rounds,
    possible_change,
    sides_of,
    statements_in,
    unreviewed_statement,
)
from contend.nodes.moderated.score_notes import result_words, scoring_notes, scoring_of
from contend.prompts import render

_REQUESTED: dict[StepPhase, str] = {
    "opening": "the opening statement",
    "argument": "an argument",
    "closing": "the closing statement",
}
_BREACHES: dict[Breach, str] = {
    "off_topic": "off_topic (the statement leaves the topic)",
    "new_argument_in_closing": "new_argument_in_closing (a closing brings an argument never made)",
    "personal_attack": "personal_attack (it attacks a person instead of an argument)",
}
_RULED_AGAINST: dict[Breach, str] = {
    "off_topic": "leaving the topic",
    "new_argument_in_closing": "a new argument in a closing statement",
    "personal_attack": "an attack on a person",
}
_WORDS_PER_TOKEN = 0.75
_REPORT = "Report the scores, and say who won, or why nobody did."
_POINTS_RULE = "Every ruling against you, and every turn that is too long, costs you points."


class ModeratedPrompt(PromptCall):
    @property
    def step(self) -> Step:
        due = self.state.get("programme") or [Step(phase="end", seat=self.seat.id)]
        return due[0]

    @property
    def everything(self) -> Sequence[Turn]:
        return self.state.get("turns", [])

    @property
    def sides(self) -> list[Seat]:
        return sides_of(self.state)

    def name(self, seat_id: str) -> str:
        return seat_with_id(self.state, seat_id).name

    def others(self) -> list[Turn]:
        return [turn for turn in statements_in(self.everything) if turn.seat != self.seat.id]


def moderated_values(settings: ModeratedSettings, prompt: ModeratedPrompt) -> PromptValues:
    return {
        **_format_values(settings, prompt),
        **_turn_values(settings, prompt),
        **_checker_values(prompt),
        "position": lambda: prompt.fence("position", prompt.seat.position),
        "sides": lambda: _sides(prompt),
        "side_count": lambda: str(len(prompt.sides)),
        "side_names": lambda: ", ".join(side.name for side in prompt.sides),
        "phase": lambda: phase_words(
            prompt.step, prompt.state["round"], planned_rounds(settings, prompt.everything)
        ),
        "max_rounds": lambda: str(planned_rounds(settings, prompt.everything)),
        "exchanges": lambda: _exchanges(prompt),
        "fact_checks": lambda: _fact_checks(prompt),
        "wrong_claims": lambda: (
            ", and which claims were found to be wrong" if _claims_checked(prompt) else ""
        ),
        "verdict": lambda: _verdict(prompt),
        "form": lambda: _form(settings, prompt),
    }


def _format_values(settings: ModeratedSettings, prompt: ModeratedPrompt) -> PromptValues:
    chosen = settings.debate_format
    return {
        "tone": lambda: render(f"moderated/tone.{chosen}", {}),
        "rules": lambda: render(f"moderated/rules.{chosen}", {}),
        "stress": lambda: render(
            f"moderated/stress.{chosen}",
            {"report": lambda: _REPORT if _shows_scores(prompt) else ""},
        ),
        "ruled_against": lambda: ", ".join(_RULED_AGAINST[x] for x in settings.format.breaches),
        "closing_rule": lambda: _if_closing_is_limited(settings, "No new arguments."),
        "closing_limit": lambda: _if_closing_is_limited(settings, ", with nothing new"),
        "points_rule": lambda: _if_scored(settings, _POINTS_RULE),
        "opening_tokens": lambda: str(settings.opening_statement_max_tokens),
        "argument_tokens": lambda: str(settings.argument_max_tokens),
        "closing_tokens": lambda: str(settings.closing_statement_max_tokens),
    }


def _shows_scores(prompt: ModeratedPrompt) -> bool:
    return prompt.state.get("verdict") is not None and not is_small([prompt.seat])


def _if_scored(settings: ModeratedSettings, sentence: str) -> str:
    return sentence if settings.scoring_enabled else ""


def _if_closing_is_limited(settings: ModeratedSettings, words: str) -> str:
    return words if "new_argument_in_closing" in settings.format.breaches else ""


def _turn_values(settings: ModeratedSettings, prompt: ModeratedPrompt) -> PromptValues:
    step = prompt.step
    return {
        "ruling": lambda: _review(settings, prompt),
        "adjustment": lambda: _adjustment(settings, prompt),
        "addressee": lambda: prompt.name(step.to or ""),
        "addressee_position": lambda: seat_with_id(prompt.state, step.to or "").position,
        "requested": lambda: _requested(prompt),
        "point_rule": lambda: _point_rule(prompt),
        "request": lambda: _request(prompt),
        "limit_rule": lambda: _limit_rule(settings, step),
        "opponent_last": lambda: _opponent_last(prompt),
        "opponents": lambda: _opponents(prompt),
        "rebuttal_rule": lambda: _rebuttal_rule(prompt),
        "round_statements": lambda: _said(
            prompt,
            [t for t in statements_in(prompt.everything) if t.round == prompt.state["round"]],
        ),
        "last_words": lambda: _said(prompt, statements_in(prompt.everything)[-len(prompt.sides) :]),
    }


def _checker_values(prompt: ModeratedPrompt) -> PromptValues:
    latest = statements_in(prompt.everything)
    return {
        "statement": lambda: prompt.fence("statement", latest[-1].text),
        "statement_by": lambda: _titled(prompt, latest[-1]),
        "claim": lambda: prompt.fence("claim", prompt.state["cue"].about[0]),
        "own_statement": lambda: prompt.fence("statement", latest[-1].text),
        "contradicted": lambda: prompt.fence(
            "checks", _claim_lines(checks_of(prompt.everything)[-1].contradicted)
        ),
    }


def phase_words(step: Step, number: int, rounds: int) -> str:
    if step.phase in ("positions", "opening") or step.asks == "opening":
        return "The opening statements."
    if step.phase in ("closing", "end") or step.asks == "closing":
        return "The closing statements."
    if step.phase == "correction":
        return "A correction, before the debate goes on."
    what = {"argument": "an argument", "rebuttal": "a rebuttal", "summary": "the summary"}
    return f"Round {number} of {rounds}: {what[step.asks or step.phase]}."


def _titled(prompt: ModeratedPrompt, turn: Turn) -> str:
    return f"{prompt.name(turn.seat)}, {turn.phase}"


def _shown(prompt: ModeratedPrompt, turn: Turn) -> str:
    return f"**{_titled(prompt, turn)}:**\n{prompt.fence(turn.phase, turn.text)}"


def _said(prompt: ModeratedPrompt, turns: Iterable[Turn]) -> str:
    return "\n\n".join(f"{prompt.name(turn.seat)} said: {turn.text}" for turn in turns)


def _sides(prompt: ModeratedPrompt) -> str:
    lines = "\n".join(f"{side.name}: {side.position}" for side in prompt.sides)
    return prompt.fence("positions", lines)


def _exchanges(prompt: ModeratedPrompt) -> str:
    missing = sum(PHASES[turn.phase].in_history for turn in prompt.everything) - len(prompt.turns)
    parts = [f"(The oldest {missing} are left out because the whole does not fit.)"] * bool(missing)
    heading = ""
    for turn in prompt.turns:
        if (title := stage_title(turn)) != heading:
            heading = title
            parts.append(f"### {title}")
        parts.append(_shown(prompt, turn))
    return "\n\n".join(parts) or "Nobody has spoken yet."


def stage_title(turn: Turn) -> str:
    if turn.phase == "closing":
        return "Closing statements"
    return f"Round {turn.round}" if turn.round else "Opening statements"


def _review(settings: ModeratedSettings, prompt: ModeratedPrompt) -> str:
    turn = unreviewed_statement(prompt.everything)
    if turn is None:
        return ""
    sought = [_BREACHES[each] for each in breaches_of(settings, turn)]
    values: PromptValues = {
        "statement_by": lambda: _titled(prompt, turn),
        "breaches": lambda: "; ".join(sought),
    }
    return render("moderated/ruling", values)


def breaches_of(settings: ModeratedSettings, turn: Turn) -> list[Breach]:
    closing = turn.phase == "closing"
    return [
        each for each in settings.format.breaches if closing or each != "new_argument_in_closing"
    ]


def _adjustment(settings: ModeratedSettings, prompt: ModeratedPrompt) -> str:
    number = prompt.state["round"]
    change = possible_change(settings, prompt.everything, number)
    left = planned_rounds(settings, prompt.everything) - number
    values: PromptValues = {
        "rounds_left": lambda: f"{left} more round{'s are' if left > 1 else ' is'} planned",
        "most_rounds": lambda: str(settings.max_round_count),
    }
    return render(f"moderated/adjust.{change}", values) if change else ""


def _form(settings: ModeratedSettings, prompt: ModeratedPrompt) -> str:
    if prompt.part == "rebuttal":
        name, decides = "rebuttal", prompt.step.to is None
    else:
        name, decides = "ruling", unreviewed_statement(prompt.everything) is not None
    if not decides:
        return ""
    change = possible_change(settings, prompt.everything, prompt.state["round"])
    values: PromptValues = {
        **prompt.control,
        "change": lambda: change or "none",
        "breach_ids": lambda: _breach_ids(settings, prompt),
    }
    is_change_possible = change and prompt.part == "summary"
    return render(f"moderated/control.{'ruling_adjust' if is_change_possible else name}", values)


def _breach_ids(settings: ModeratedSettings, prompt: ModeratedPrompt) -> str:
    turn = unreviewed_statement(prompt.everything)
    return ", ".join(breaches_of(settings, turn)) if turn else ""


def _requested(prompt: ModeratedPrompt) -> str:
    asks = prompt.step.asks or "opening"
    if asks != "rebuttal":
        return _REQUESTED[asks]
    rebutted = _rebutted(prompt)
    if rebutted is None:
        return "a rebuttal of an argument of their own choice"
    return f"a rebuttal of {prompt.name(rebutted)}'s argument"


def _rebutted(prompt: ModeratedPrompt) -> str | None:
    due = prompt.state.get("programme", [])[1:2]
    return due[0].to if due else None


def _point_rule(prompt: ModeratedPrompt) -> str:
    asks = prompt.step.asks
    if asks in ("argument", "closing") or (asks == "rebuttal" and _rebutted(prompt)):
        return ", and which point of the exchange so far it should deal with, if there is one"
    return ""


def _request(prompt: ModeratedPrompt) -> str:
    asked = [turn.text for turn in prompt.everything if turn.phase == "request"]
    return prompt.fence("moderator", asked[-1]) if asked else ""


def _limit_rule(settings: ModeratedSettings, step: Step) -> str:
    limit = strategy_for(settings).token_limit(step.phase)
    if limit is None:
        return ""
    words = int(limit * _WORDS_PER_TOKEN)
    # A correction is not scored.
    costs = settings.scoring_enabled and step.phase != "correction"
    rule = f"At most {limit} tokens, about {words} words"
    seconds = settings.statement_max_seconds
    cut = (
        f" Your turn is cut off after {seconds:g} seconds, so put what matters most first."
        if seconds
        else ""
    )
    return f"{rule}{'; a longer turn costs you points.' if costs else '.'}{cut}"


def _opponent_last(prompt: ModeratedPrompt) -> str:
    others = prompt.others()
    return _shown(prompt, others[-1]) if others else "There is none: nobody has spoken before you."


def _opponents(prompt: ModeratedPrompt) -> str:
    number, to = prompt.state["round"], prompt.step.to
    arguments = [t for t in prompt.others() if t.phase == "argument" and t.round == number]
    if to is not None:
        return f"## Your opponent's last statement\n{_shown(prompt, arguments[-1])}"
    shown = "\n\n".join(_shown(prompt, turn) for turn in arguments)
    return f"## Your opponents' arguments in this round\n{shown}"


def _rebuttal_rule(prompt: ModeratedPrompt) -> str:
    if prompt.step.to is not None:
        return f"Rebut {prompt.name(prompt.step.to)}'s argument."
    return "Choose the one argument you disagree with most, say whose it is, and rebut that one."


def checks_of(turns: Iterable[Turn]) -> list[FactCheck]:
    return [turn.assessment for turn in turns if isinstance(turn.assessment, FactCheck)]


def _claims_checked(prompt: ModeratedPrompt) -> list[ClaimCheck]:
    return [claim for check in checks_of(prompt.everything) for claim in check.claims]


def _fact_checks(prompt: ModeratedPrompt) -> str:
    found = _claims_checked(prompt)
    if not found:
        return ""
    listed = prompt.fence("checks", _claim_lines(found))
    return f"## What the fact checker found so far\n{listed}"


def _claim_lines(claims: Iterable[ClaimCheck]) -> str:
    return "\n".join(map(claim_line, claims))


def claim_line(claim: ClaimCheck) -> str:
    why = f" ({' '.join(claim.why.split())})" if claim.why else ""
    return f"{claim.verdict} [{claim.source}]: {' '.join(claim.claim.split())}{why}"


def _verdict(prompt: ModeratedPrompt) -> str:
    verdict = prompt.state.get("verdict")
    if verdict is None:
        return ""
    lines = []
    for each in verdict.standings:
        parts = ", ".join(f"{name} {mark:.2f}" for name, mark in each.breakdown.items())
        total = "no score" if each.total is None else f"{each.total:.2f} of 10"
        lines.append(f"{each.name}: {total}" + (f" ({parts})" if parts else ""))
    names = {seat.id: seat.name for seat in prompt.state["seats"]}
    scoring = scoring_of(prompt.state, verdict)
    if result := result_words(scoring, names.get(verdict.winner or "")):
        lines.append(f"Winner: {result}")
    notes = scoring_notes(scoring, names)
    lines += [f"To be said with the scores: {note}." for note in notes]
    return "## The judge's scores\n" + "\n".join(lines)
