from itertools import takewhile

from contend.graph.protocols.base import PromptValues
from contend.graph.state import Turn
from contend.nodes.moderated.anonymize import names_kept, neutral_labels, without_names
from contend.nodes.moderated.prompt_values import (
    ModeratedPrompt,
    checks_of,
    claim_line,
    stage_title,
)
from contend.nodes.prompting.quotes import is_checked, quote_line
from contend.prompts import render


def judge_values(prompt: ModeratedPrompt) -> PromptValues:
    return {
        "neutral_sides": lambda: _neutral_sides(prompt),
        "neutral_stage": lambda: _neutral_stage(prompt),
        "neutral_earlier": lambda: _neutral_earlier(prompt),
        "neutral_checks": lambda: _neutral_checks(prompt),
        "neutral_quotes": lambda: _neutral_quotes(prompt),
        "stage_name": lambda: stage_title(_stage(prompt)[0]).lower(),
    }


def _stage(prompt: ModeratedPrompt) -> list[Turn]:
    by_id = {turn.id: turn for turn in prompt.everything}
    return [by_id[each] for each in prompt.state["cue"].turns]


def _labels(prompt: ModeratedPrompt) -> dict[str, str]:
    seen = dict.fromkeys([turn.seat for turn in _stage(prompt)])
    rest = [side.id for side in prompt.sides if side.id not in seen]
    return neutral_labels([*seen, *rest], [side.name for side in prompt.sides])


def _neutral_sides(prompt: ModeratedPrompt) -> str:
    labels = _labels(prompt)
    held = {side.id: side.position for side in prompt.sides}
    lines = "\n".join(f"{label}: {held[seat]}" for seat, label in labels.items())
    return prompt.fence("positions", lines)  # a name in a position is never replaced


def _neutral_stage(prompt: ModeratedPrompt) -> str:
    labels = _labels(prompt)
    shown = []
    for number, turn in enumerate(_stage(prompt), 1):
        text = prompt.fence("statement", _without_names(prompt, labels, turn.text))
        shown.append(f"### S{number}: {labels[turn.seat]}, {turn.phase}\n{text}")
    return "\n\n".join(shown)


def _neutral_earlier(prompt: ModeratedPrompt) -> str:
    labels, stage = _labels(prompt), _stage(prompt)
    scored, fitting = {turn.id for turn in stage}, {turn.id for turn in prompt.turns}
    said_before = takewhile(lambda turn: turn.id not in scored, prompt.everything)
    before = [turn for turn in said_before if turn.seat in labels]
    left_out = [turn for turn in before if turn.id not in fitting]
    names = ", ".join(f"round {turn.round} {labels[turn.seat]}, {turn.phase}" for turn in left_out)
    note = [f"(Left out because the whole does not fit: {names}.)"] * bool(left_out)
    shown = [
        f"**{labels[turn.seat]}, {turn.phase}:**\n"
        + prompt.fence("statement", _without_names(prompt, labels, turn.text))
        for turn in before
        if turn.id in fitting
    ]
    return "\n\n".join(["## What was said before", *note, *shown]) if before else ""


def _numbers(prompt: ModeratedPrompt) -> dict[str, str]:
    return {turn.id: f"S{number}" for number, turn in enumerate(_stage(prompt), 1)}


def _neutral_quotes(prompt: ModeratedPrompt) -> str:
    numbers = _numbers(prompt)
    lines = [
        f"{numbers[turn.id]}: {quote_line(quote)}"
        for turn in _stage(prompt)
        for quote in turn.quotes
        if is_checked(quote)
    ]
    if not lines:
        return ""
    plain = _without_names(prompt, _labels(prompt), "\n".join(lines))
    return render("shared/quotes", {"quotes": lambda: prompt.fence("quotes", plain)})


def _neutral_checks(prompt: ModeratedPrompt) -> str:
    numbers = _numbers(prompt)
    lines = [
        f"{numbers[check.turn]}: {claim_line(claim)}"
        for check in checks_of(prompt.everything)
        if check.turn in numbers
        for claim in check.claims
    ]
    corrected = [
        f"{numbers[turn.replies_to]}: the speaker's reply: {' '.join(turn.text.split())}"
        for turn in prompt.everything
        if turn.phase == "correction" and turn.replies_to in numbers
    ]
    if not lines:
        return ""
    plain = _without_names(prompt, _labels(prompt), "\n".join([*lines, *corrected]))
    return f"## What the fact checker found in them\n{prompt.fence('checks', plain)}"


def _without_names(prompt: ModeratedPrompt, labels: dict[str, str], text: str) -> str:
    kept = names_kept(prompt.state, prompt.sides)
    return without_names(
        text, {side.name: labels[side.id] for side in prompt.sides if side.name not in kept}
    )
