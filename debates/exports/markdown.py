"""A debate as one Markdown document: the answer first, then how it came about."""

from collections.abc import Iterable, Mapping
from typing import Any

from debates.exports.words import degraded_words, local_time, point_groups, sentence, stop_words
from debates.records import Debate
from graph.state import SEVERITY_MARKS, Turn

_AFTER_THE_ROUNDS = ("synthesize", "score")


def to_markdown(debate: Debate) -> str:
    """The whole document."""
    record = debate.as_json()
    sections = [
        _head(debate),
        _notices(debate, record),
        _answer(record),
        _ending(record),
        _points(record["points"]),
        _score(record),
        *_rounds(debate),
        _table(debate, record),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(debate: Debate) -> str:
    begun = local_time(debate.created_at)
    about = f"Debate `{debate.id}`, protocol {debate.protocol}, {debate.status}, begun {begun}"
    return f"# {_heading(debate.question)}\n\n{about}{_full_question(debate.question)}"


def _heading(question: str) -> str:
    first = " ".join(question.split())
    return first if len(first) <= 120 else f"{first[:119]}…"


def _full_question(question: str) -> str:
    """The question in full when the heading could not hold it."""
    if len(" ".join(question.split())) <= 120:
        return ""
    return f"\n\n## Question\n\n{_fenced(question)}"


def _fenced(text: str) -> str:
    """A code block that its own text cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _notices(debate: Debate, record: Mapping[str, Any]) -> str:
    """What did not go as planned stands above the answer."""
    lines = [degraded_words(entry) for entry in record["degraded"]]
    if record["demonstration"]:
        lines.insert(0, "Argued by the demonstration model: its scores mean nothing.")
    if debate.error:
        lines.insert(0, f"The debate failed: {debate.error}")
    elif debate.status != "done":
        lines.insert(0, f"The debate is not finished: it is {debate.status}.")
    return "\n".join(f"> ⚠️ {' '.join(line.split())}" + "  " for line in lines)


def _answer(record: Mapping[str, Any]) -> str:
    return f"## Answer\n\n{record['final_answer'] or 'There is no answer yet.'}"


def _ending(record: Mapping[str, Any]) -> str:
    stop = record["stop"]
    if stop is None:
        return ""
    why = sentence(stop["evidence"] or stop_words(stop["reason"]))
    return f"## Why it stopped\n\nIn round {stop['round']}: {why}"


def _points(points: Mapping[str, list[Mapping[str, Any]]]) -> str:
    if not points["open"] and not points["resolved"]:
        return ""
    groups = point_groups(points)
    parts = ["## Points"] + ([] if groups["open"] else ["No point is open."])
    for title, group in groups.items():
        if group:
            parts += [f"{title.capitalize()}:", "\n".join(_point(point) for point in group)]
    return "\n\n".join(parts)


def _point(point: Mapping[str, Any]) -> str:
    mark = "✅" if point["status"] == "resolved" else SEVERITY_MARKS[point["severity"]]
    partly = " (partly resolved)" if point["status"] == "partial" else ""
    return f"- {mark} **{point['id']}** {point['text']}{partly}"


def _score(record: Mapping[str, Any]) -> str:
    rated, by_user = record["auto_score"], record["user_rating"]
    lines = [f"Your rating: **{by_user} of 10**."] if by_user is not None else []
    if rated:
        parts = ("correctness", "completeness", "clarity", "depth")
        shown = ", ".join(f"{part} {rated[part]}" for part in parts)
        lines.append(f"**{rated['score']:g} of 10** by {rated['judge_model']}: {shown}.")
        if rated["judge_shares_model_with"]:
            sharing = ", ".join(rated["judge_shares_model_with"])
            lines.append(f"The judge shares its model with: {sharing}.")
        lines.append(rated["justification"])
    return "## Score\n\n" + "\n\n".join(lines) if lines else ""


def _rounds(debate: Debate) -> Iterable[str]:
    names = {seat.id: seat.name for seat in debate.as_state().get("seats", [])}
    shown = 0
    for turn in debate.turns:
        if turn.phase in _AFTER_THE_ROUNDS:
            continue
        if turn.round != shown:
            shown = turn.round
            yield f"## Round {shown}"
        yield f"### {names.get(turn.seat, turn.seat.capitalize())}{_model(turn)}\n\n{turn.text}"


def _model(turn: Turn) -> str:
    return f" ({turn.model})" if turn.model else ""


def _table(debate: Debate, record: Mapping[str, Any]) -> str:
    rows = [
        f"| {turn.round} | {turn.seat} | {turn.model} | {_known(turn.usage.input_tokens)} "
        f"| {_known(turn.usage.output_tokens)} | {_seconds(turn)} |"
        for turn in debate.turns
        if turn.status != "human"
    ]
    usage, total = record["usage"], record["timing"]["total_ms"] / 1000
    rows.append(
        f"| | **all** | | {_known(usage['input_tokens'])} | {_known(usage['output_tokens'])} "
        f"| {total:.1f} |"
    )
    dollars = "unknown" if usage["cost_usd"] is None else f"${usage['cost_usd']:.4f}"
    head = (
        "| Round | Seat | Model | Tokens in | Tokens out | Seconds |\n|---|---|---|---:|---:|---:|"
    )
    return "\n".join(["## Models, tokens and time", "", head, *rows, "", f"Cost: {dollars}."])


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def _seconds(turn: Turn) -> str:
    return f"{(turn.ended_at - turn.started_at).total_seconds():.1f}"
