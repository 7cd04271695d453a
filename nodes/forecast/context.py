"""Selects facts from a forecast's request that fit into a prompt."""

from collections.abc import Iterable, Iterator
from datetime import date

from contend.graph.forecast_contract.request import PredictionContext
from contend.graph.settings import ForecastSettings
from contend.models.text import shorten

# Typical for English. The check of the model's context window uses a more cautious estimate.
_BYTES_PER_TOKEN = 3.8
# Shares of an argument's prompt for facts: in the opening, and later, when points need room too.
_OPENING_SHARE, _LATER_SHARE = 0.4, 0.16
_TOKENS_FOR_VERDICT = 400
# A section's first fact is always shown, shortened to this many characters if needed.
_LONGEST_FIRST = 200

Sections = dict[str, list[str]]
"""Facts in the request, by section."""


def tokens_to_bytes(tokens: float) -> int:
    return round(tokens * _BYTES_PER_TOKEN)


def size_of(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def question_and_outcomes(question: str, context: PredictionContext) -> str:
    outcomes = (
        f"- {each.id}: {each.label}" + (f" ({each.description})" if each.description else "")
        for each in context.outcomes
    )
    return "\n".join([question, "Outcomes:", *outcomes])


def day_of_forecast(context: PredictionContext, started: date) -> date:
    """Return the day the debate started or, in a backtest, the first day of the timeframe."""
    timeframe = context.data_summary.timeframe
    is_backtest = timeframe.end is not None and timeframe.end < started
    return timeframe.start if is_backtest and timeframe.start else started


def room_for_facts(settings: ForecastSettings, part: str) -> int:
    if part == "final":
        return tokens_to_bytes(_TOKENS_FOR_VERDICT)
    share = _OPENING_SHARE if part in ("opening", "numbers", "precedents") else _LATER_SHARE
    return tokens_to_bytes(share * settings.argument_input_tokens)


def shown_facts(context: PredictionContext, room: int) -> Sections:
    """Return every section's first fact, and then as many further facts as fit."""
    sections = facts_of(context)
    shown = {name: facts[:1] for name, facts in sections.items()}
    if size_of(_lines(shown)) > room:
        shown = {name: [shorten(facts[0], _LONGEST_FIRST)] for name, facts in shown.items()}
    left = room - size_of(_lines(shown))
    for at in range(1, max(map(len, sections.values()), default=0)):
        for name, facts in sections.items():
            if at < len(facts) and size_of([facts[at]]) <= left:
                shown[name].append(facts[at])
                left -= size_of([facts[at]])
    return shown


def fact_lines(context: PredictionContext, room: int) -> list[str]:
    shown = shown_facts(context, room)
    left_out = len(_lines(facts_of(context))) - len(_lines(shown))
    more = [f"({left_out} further facts left out for room.)"] if left_out else []
    return [*_lines(shown), *more]


def left_out(context: PredictionContext, room: int) -> list[str]:
    sections, shown = facts_of(context), shown_facts(context, room)
    fewer = [
        f"{name} {len(facts) - len(shown[name])} of {len(facts)}"
        for name, facts in sections.items()
        if len(shown[name]) < len(facts)
    ]
    shortened = [
        f"{name} in full" for name, facts in sections.items() if shown[name][0] != facts[0]
    ]
    return [*fewer, *shortened]


def facts_of(context: PredictionContext) -> Sections:
    sections: Sections = {}
    for name, fact in _facts(context):
        sections.setdefault(name, []).append(fact)
    return sections


def _lines(sections: Sections) -> list[str]:
    return [fact for facts in sections.values() for fact in facts]


def _facts(context: PredictionContext) -> Iterator[tuple[str, str]]:
    task, simulated, data = context.task, context.simulation_summary, context.data_summary
    if task.description:
        yield "description", task.description
    if task.resolution_criteria:
        yield "resolution_criteria", f"Decided by: {task.resolution_criteria}"
    yield from (("task", f"{name}: {text}") for name, text in task.further_fields.items())
    if data.timeframe.start:
        yield "start", f"From: {data.timeframe.start.isoformat()}"
    if data.timeframe.end:
        yield "end", f"Due: {data.timeframe.end.isoformat()}"
    if simulated.final_distribution:
        shown = (
            f"{each.outcome_id} {each.probability:.0%}" for each in simulated.final_distribution
        )
        yield "final_distribution", f"Simulation: {', '.join(shown)}"
    for variable in sorted(context.key_variables, key=lambda each: -each.importance):
        known = variable.current_value
        value = "" if known is None else f" is {known if isinstance(known, str) else f'{known:g}'}"
        kind = f"{variable.category}, " if variable.category else ""
        fact = f"Variable: {variable.name}{value} ({kind}importance {variable.importance:g})"
        yield "key_variables", fact
    yield from (("key_findings", f"Finding: {text}") for text in simulated.key_findings)
    yield from (("economic_highlights", f"Economy: {text}") for text in data.economic_highlights)
    yield from (("sentiment_highlights", f"Sentiment: {t}") for t in data.sentiment_highlights)
    yield from (("data_gaps", f"Not known: {text}") for text in data.data_gaps)
    if data.region:
        yield "region", f"Region: {data.region}"
