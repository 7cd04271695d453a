"""Writes the report of a run as a Markdown file, and as an HTML file with plots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contend.debates.exports.html import html_page
from contend.debates.exports.page import ExportPage, Part, Rows, Title, Words
from contend.debates.exports.safe_html import to_html
from contend.debates.exports.wording import dollars
from contend.evals import plots
from contend.evals.arms import GATED, GATED_PROTOCOL
from contend.evals.chosen_items import NO_ITEMS, ChosenItems
from contend.evals.measures import (
    ENOUGH_ITEMS,
    SIGNIFICANT,
    Mean,
    Share,
    describe_pair,
    share_cells,
)
from contend.evals.run_store import EvalResult
from contend.evals.summary import ArmComparison, ArmSummary, compare_arms, summarise

_STYLE = """
svg { width: 100%; height: auto; font: 12px var(--sans); }
svg text { fill: var(--ink); } svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .axis { stroke: var(--muted); } svg .grid { stroke: var(--line); }
svg circle { fill: var(--seat); }
svg .hollow { fill: var(--card); stroke: var(--seat); stroke-width: 2; }
svg .bar { stroke: var(--seat); stroke-width: 2; opacity: 0.5; }
svg .won { fill: light-dark(#1f7a4d, #6fce9a); } svg .lost { fill: light-dark(#b8215a, #f58fb2); }
main { max-width: 64rem; }
"""


@dataclass(frozen=True)
class _Section:
    title: str
    parts: Sequence[Part]
    plot: str = ""


@dataclass(frozen=True)
class EvalReport:
    title: str
    sections: Sequence[_Section]
    arms: Sequence[ArmSummary]
    comparisons: Sequence[ArmComparison]

    def as_markdown(self) -> str:
        parts: list[Part] = [Title(self.title)]
        for each in self.sections:
            parts += [Title(each.title, 2), *each.parts]
        return ExportPage(parts, {}).as_markdown()

    def as_html(self) -> str:
        body = "\n".join(
            f'<section class="card"><h2>{each.title}</h2>{each.plot}'
            f"{to_html(ExportPage(each.parts, {}).as_markdown())}</section>"
            for each in self.sections
        )
        return html_page(self.title, f"<h1>{self.title}</h1>", body, "Contend", _STYLE)


def build_report(
    options: Mapping[str, Any],
    results: Mapping[tuple[str, str], EvalResult],
    items: ChosenItems = NO_ITEMS,
) -> EvalReport:
    arms, compared = summarise(results.values()), compare_arms(results)
    count = len({item for item, _ in results})
    shown = items.only(item for item, _ in results)
    sections = [
        _Section("What was run", [Words(_about(options, count, shown))]),
        _Section("What it shows", [Words(_verdict(arms, compared))]),
        _Section("Accuracy and cost", [_accuracy(arms), *_notes(arms)], plots.accuracy_plot(arms)),
        _Section("Comparisons on the same items", [_comparisons(compared)]),
        _Section("What the exchange changed", _flips(arms), plots.flips_plot(arms)),
        *_probabilities(arms),
        *_rubric(arms),
        *_gate(arms, compared),
        *_topics(arms),
        _Section("Runs", [_runs(arms)]),
        *_failures(results.values()),
    ]
    return EvalReport("Eval report", [each for each in sections if each.parts], arms, compared)


def _about(options: Mapping[str, Any], count: int, items: ChosenItems) -> str:
    model = options.get("model") or "chosen by Contend"
    data = ", ".join(items.describe_data(str(each)) for each in options["data"])
    items_hash = f" with the hash {items.digest}" if items.hashes else ""
    lines = [
        f"- Data: {data}; {count} items{items_hash}",
        f"- Model: {model}",
        f"- Samples of self_consistency: {options['samples']}; seed {options['seed']}",
    ]
    if seats := options.get("settings", {}).get("seats"):
        lines.append(f"- Seats: {', '.join(each['model'] for each in seats)}")
    if options.get("equal_tokens"):
        lines.append(
            "- Equal tokens: every arm could use as many tokens per item as "
            f"{options['equal_tokens']} did. One call of `single` cannot use them up."
        )
    return "\n".join(lines)


def _verdict(arms: Sequence[ArmSummary], compared: Sequence[ArmComparison]) -> str:
    n = max((each.accuracy.n for each in arms), default=0)
    lines = []
    if n < ENOUGH_ITEMS:
        lines.append(
            f"**Too few items for a claim: n = {n}, and at least {ENOUGH_ITEMS} are needed.** The "
            "figures below show that the run works, not which arm is better."
        )
    enough = [each for each in compared if each.pair.n >= ENOUGH_ITEMS]
    shown = [each for each in enough if each.p_adjusted < SIGNIFICANT]
    for each in shown:
        said = describe_pair(each.pair, each.p_adjusted)
        lines.append(f"- {each.first} against {each.second}: {said}")
    if len(enough) > len(shown):
        more = "other " if shown else ""
        lines.append(
            f"- {len(enough) - len(shown)} {more}comparisons show no difference; p is adjusted for "
            f"making {len(compared)} of them."
        )
    return "\n".join(lines) or "There is nothing to compare."


def _accuracy(arms: Sequence[ArmSummary]) -> Part:
    head = ("arm", "accuracy", "95 % interval", "n", "calls", "tokens", "seconds", "cost of all")
    return Rows(head, [_accuracy_row(each) for each in arms])


def _accuracy_row(each: ArmSummary) -> tuple[str, ...]:
    return (
        each.arm,
        *share_cells(each.accuracy),
        _mean(each.calls, 1),
        _mean(each.tokens, 0),
        _mean(each.seconds, 1),
        "unknown" if each.cost_usd is None else dollars(each.cost_usd),
    )


def _notes(arms: Sequence[ArmSummary]) -> list[Part]:
    notes = ["Calls, tokens and seconds are means per item; seconds are the time of the calls."]
    if any(each.without_cost for each in arms if each.cost_usd is not None):
        notes.append("Costs leave out runs of which a price is not known.")
    return [Words(" ".join(notes))]


def _comparisons(compared: Sequence[ArmComparison]) -> Part:
    head = ("arm", "against", "n", "only it right", "only the other", "result")
    return Rows(
        head,
        [
            (
                each.first,
                each.second,
                str(each.pair.n),
                str(each.pair.only_first),
                str(each.pair.only_second),
                describe_pair(each.pair, each.p_adjusted),
            )
            for each in compared
        ],
    )


def _flips(arms: Sequence[ArmSummary]) -> list[Part]:
    rows = [
        (
            each.arm,
            str(flips.n),
            _count(flips.vote_right, flips.n),
            _count(flips.final_right, flips.n),
            str(flips.right_to_wrong),
            str(flips.wrong_to_right),
            _count(flips.any_right, flips.n),
            _percent(flips.captured),
        )
        for each in arms
        if (flips := each.flips)
    ]
    before = ("arm", "n", "vote of the drafts right", "answer right", "right to wrong")
    after = ("wrong to right", "any draft right", "gap captured")
    return [Rows((*before, *after), rows)] if rows else []


def _probabilities(arms: Sequence[ArmSummary]) -> list[_Section]:
    shown = [each for each in arms if each.calibration.n]
    rows = [(each.arm, str(each.calibration.n), *map(_decimal, _scores_of(each))) for each in shown]
    plot = plots.reliability_plot([(each.arm, each.calibration) for each in shown])
    table = Rows(("arm", "n", "Brier", "log loss", "calibration error (ECE)"), rows)
    return [_Section("Probabilities", [table], plot)] if rows else []


def _scores_of(each: ArmSummary) -> tuple[float | None, ...]:
    return each.calibration.brier, each.calibration.log_loss, each.calibration.ece


def _rubric(arms: Sequence[ArmSummary]) -> list[_Section]:
    rows = [
        (
            each.arm,
            str(each.rubric.n),
            _percent(each.rubric.value),
            _mean_interval(each.rubric),
            _percent(each.rubric_agreement.value),
        )
        for each in arms
        if each.rubric.n
    ]
    head = ("arm", "n", "rubric points met", "95 % interval", "same mark in both orders")
    return [_Section("Open questions, by a blind judge", [Rows(head, rows)])] if rows else []


def _gate(arms: Sequence[ArmSummary], compared: Sequence[ArmComparison]) -> list[_Section]:
    by_name = {each.arm: each for each in arms}
    gated, guarded = by_name.get(GATED), by_name.get(GATED_PROTOCOL)
    if not gated or not gated.undebated or not gated.undebated.n:
        return []
    lines = [
        f"Not debated, because the drafts agreed: {gated.undebated.count} of "
        f"{gated.undebated.n} items. Mean calls per item: {_mean(gated.calls, 2)}"
        + (f"; {GATED_PROTOCOL} without the gate: {_mean(guarded.calls, 2)}." if guarded else ".")
    ]
    lines += [
        f"Accuracy against {each.second}: {describe_pair(each.pair, each.p_adjusted)}."
        for each in compared
        if (each.first, each.second) == (GATED, GATED_PROTOCOL)
    ]
    return [_Section("The gate: debate only where drafts disagree", [Words("\n\n".join(lines))])]


def _topics(arms: Sequence[ArmSummary]) -> list[_Section]:
    topics = sorted({topic for each in arms for topic in each.by_topic})
    if len(topics) < 2:
        return []
    rows = [(topic, *(_of_n(each.by_topic.get(topic)) for each in arms)) for topic in topics]
    return [_Section("By topic", [Rows(("topic", *(each.arm for each in arms)), rows)])]


def _runs(arms: Sequence[ArmSummary]) -> Part:
    head = ("arm", "runs", "done", "failed", "not applicable", "no readable answer")
    return Rows(
        head,
        [(each.arm, *(str(getattr(each, name)) for name in _COUNTS)) for each in arms],
    )


_COUNTS = ("runs", "done", "failed", "not_applicable", "unreadable")


def _failures(results: Iterable[EvalResult]) -> list[_Section]:
    failed = [each for each in results if each.status == "failed"]
    rows = [(each.item, each.arm, each.error or "") for each in failed]
    note = "Failed runs have no answer: they are in no accuracy above, and `eval run` retries them."
    table = Rows(("item", "arm", "error"), rows[:50])
    return [_Section("Failed runs", [Words(note), table])] if rows else []


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _mean(found: Mean, digits: int) -> str:
    return "unknown" if found.value is None else f"{found.value:,.{digits}f}"


def _mean_interval(found: Mean) -> str:
    return (
        "–" if found.low is None or found.high is None else f"{found.low:.1%} to {found.high:.1%}"
    )


def _count(count: int, n: int) -> str:
    return f"{count} ({count / n:.0%})"


def _of_n(found: Share | None) -> str:
    return f"{found.count} of {found.n}" if found and found.n else "–"
