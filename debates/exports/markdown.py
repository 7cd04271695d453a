"""A debate as one Markdown document: the answer first, then the debate."""

from collections.abc import Iterable, Mapping
from typing import Any

from contend.debates.exports.forecast import forecast_section
from contend.debates.exports.moderated import moderated_facts
from contend.debates.exports.wording import (
    CLOSINGS,
    DEMONSTRATION,
    brought_words,
    call_words,
    checked_quotes,
    closings_begin,
    concession_words,
    count_quotes,
    degraded_words,
    describe_stand_in,
    dollars,
    known,
    known_as,
    local_time,
    opening_title,
    phase_title,
    point_groups,
    quote_words,
    rating_words,
    seat_names,
    sentence,
    stop_words,
)
from contend.debates.record import StoredDebate
from contend.graph.phases import AFTER_THE_ROUNDS
from contend.graph.readings import SEVERITY_MARKS
from contend.graph.state import Turn
from contend.graph.values import NO_USAGE, WorkSpan
from contend.models.text import shorten

_LONGEST_HEADING = 120


def to_markdown(debate: StoredDebate) -> str:
    record = debate.as_json()
    sections = [
        _head(debate),
        _notices(debate, record),
        _answer(record),
        forecast_section(record),
        _ending(record),
        _concessions(record),
        _verdict(record),
        _points(record["points"]),
        _score(record),
        _moderated(record),
        _evidence(debate, record),
        *_rounds(debate),
        _table(debate, record),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(debate: StoredDebate) -> str:
    started = local_time(debate.created_at)
    about = f"Debate `{debate.id}`, protocol {debate.protocol}, {debate.status}, started {started}"
    for line in known_as(debate.as_settings(), debate.as_state().get("seats", [])):
        about += f"\n\n{line}"
    heading = shorten(debate.question, _LONGEST_HEADING)
    return f"# {heading}\n\n{about}{_full_question(debate.question)}"


def _full_question(question: str) -> str:
    if len(" ".join(question.split())) <= _LONGEST_HEADING:
        return ""
    return f"\n\n## Question\n\n{_fenced(question)}"


def _fenced(text: str) -> str:
    """Return a code block that its text cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _notices(debate: StoredDebate, record: Mapping[str, Any]) -> str:
    names = seat_names(record["seats"])
    lines = [degraded_words(entry, names) for entry in record["degraded"]]
    if record["demonstration"]:
        lines.insert(0, DEMONSTRATION)
    if debate.error:
        lines.insert(0, f"The debate failed: {debate.error}")
    elif debate.status != "done":
        lines.insert(0, f"The debate is not finished: it is {debate.status}.")
    return "\n".join(f"> ⚠️ {' '.join(line.split())}" + "  " for line in lines)


def _answer(record: Mapping[str, Any]) -> str:
    answer = record["final_answer"] or "There is no answer yet."
    written = [turn for turn in record["turns"] if turn["phase"] == "synthesize"]
    used = "".join(_tool_uses(turn) for turn in written)
    return f"## Answer\n\n{_author(record)}{answer}{used}"


def _author(record: Mapping[str, Any]) -> str:
    names = seat_names(record["seats"])
    for turn in record["turns"]:
        what = describe_stand_in(turn["phase"], turn["status"])
        if what and turn["phase"] == "synthesize":
            return f"*{names.get(turn['seat'], turn['seat'])}: {what}.*\n\n"
    return ""


def _ending(record: Mapping[str, Any]) -> str:
    stop = record["stop"]
    if stop is None:
        return ""
    why = sentence(stop["evidence"] or stop_words(stop["reason"]))
    before = opening_title(seat["role"] for seat in record["seats"]).lower()
    when = f"In round {stop['round']}" if stop["round"] else f"After the {before}"
    return f"## Why it stopped\n\n{when}: {why}"


def _concessions(record: Mapping[str, Any]) -> str:
    gone = record.get("eliminations")
    if not gone:
        return ""
    names = seat_names(record["seats"])
    lines = [f"- {sentence(concession_words(entry, names))}" for entry in gone]
    won = record["winner"]
    lines += [f"- {names[won]} is the only one left."] if won else []
    return "## Concessions\n\n" + "\n".join(lines)


def _verdict(record: Mapping[str, Any]) -> str:
    return f"## Verdict\n\n{record['verdict']}" if record.get("verdict") else ""


def _points(points: Mapping[str, list[Mapping[str, Any]]]) -> str:
    if not points["open"] and not points["resolved"]:
        return ""
    groups = point_groups(points)
    parts = ["## Objections"] + ([] if groups["open"] else ["No objection is open."])
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
        by = rated["judge_model"]
        lines.append(f"**{rated['score']:g} of 10** by {by}: {rating_words(rated)}.")
        if rated["judge_shares_model_with"]:
            sharing = ", ".join(rated["judge_shares_model_with"])
            lines.append(f"The judge is the same model as: {sharing}.")
        if rated["judge_wrote_answer"]:
            lines.append("The judge wrote the answer itself.")
        lines.append(rated["justification"])
    return "## Score\n\n" + "\n\n".join(lines) if lines else ""


def _moderated(record: Mapping[str, Any]) -> str:
    lines = [f"- {name}: {value}" for name, value in moderated_facts(record)]
    return "\n".join(["## Scores and checks", "", *lines]) if lines else ""


def _evidence(debate: StoredDebate, record: Mapping[str, Any]) -> str:
    lines = [f"- {line}" for line in brought_words(debate.as_state())]
    used = (f"{use['title']} (`{use['id']}`, {use['score']:.2f})" for use in record["templates"])
    lines += [f"- Reasoning templates: {', '.join(used)}"] if record["templates"] else []
    checked = checked_quotes(record["quotes"])
    if checked:
        lines.append(f"- Quotes: {count_quotes(checked)}")
        lines += [
            f"  - {quote['seat']}, round {quote['round']}: {' '.join(quote_words(quote).split())}"
            for quote in checked
        ]
    return "\n".join(["## Evidence", "", *lines]) if lines else ""


def _rounds(debate: StoredDebate) -> Iterable[str]:
    seats = debate.as_state().get("seats", [])
    names = {seat.id: seat.name for seat in seats}
    opening = opening_title(seat.role for seat in seats)
    closings, shown = closings_begin(debate.turns), ""
    for at, turn in enumerate(debate.turns):
        if turn.phase in AFTER_THE_ROUNDS:
            continue
        section = CLOSINGS if at >= closings else f"Round {turn.round}" if turn.round else opening
        if section != shown:
            shown = section
            yield f"## {section}"
        name = names.get(turn.seat, turn.seat.capitalize())
        model = f" ({turn.model})" if turn.model else ""
        what = f", {title}" if (title := phase_title(turn.phase)) else ""
        used = _tool_uses(turn.model_dump())
        # A kept answer is already shown in its own round.
        text = "" if turn.status == "kept_previous" else turn.text
        yield f"### {name}{model}{what}\n\n{_stand_in(turn)}{text}{used}".rstrip()


def _tool_uses(turn: Mapping[str, Any]) -> str:
    """Show the tool calls of a turn, fenced because results can hold any text."""
    shown = ""
    for use in turn["tool_calls"]:
        what = "A tool failed" if use["failed"] else "A tool was used"
        given = _fenced(f"{call_words(use)}\n\n{use['result']}")
        shown += f"\n\n*{what}:*\n\n{given}"
    return shown


def _stand_in(turn: Turn) -> str:
    what = describe_stand_in(turn.phase, turn.status)
    return f"*{sentence(what.capitalize())}*\n\n" if what else ""


def _table(debate: StoredDebate, record: Mapping[str, Any]) -> str:
    rows = [
        f"| {turn.round} | {turn.seat} | {turn.model} | {known(turn.usage.input_tokens)} "
        f"| {known(turn.usage.output_tokens)} | {_seconds(turn):.1f} |"
        for turn in debate.turns
        if turn.status != "human"
    ]
    rows += _lost_calls(debate)
    usage, total = record["usage"], record["timing"]["total_ms"] / 1000
    rows.append(
        f"| | **all** | | {known(usage['input_tokens'])} | {known(usage['output_tokens'])} "
        f"| {total:.1f} |"
    )
    head = (
        "| Round | Seat | Model | Tokens in | Tokens out | Seconds |\n|---|---|---|---:|---:|---:|"
    )
    return "\n".join(
        ["## Models, tokens and time", "", head, *rows, "", f"Cost: {dollars(usage['cost_usd'])}."]
    )


def _lost_calls(debate: StoredDebate) -> list[str]:
    """Return a row for failed calls, so that the rows add up to the total."""
    lost = [span for span in debate.as_state().get("spans", []) if span.calls]
    usage = sum((span.usage for span in lost), NO_USAGE)
    tokens = f"{known(usage.input_tokens)} | {known(usage.output_tokens)}"
    seconds = sum(_seconds(span) for span in lost)
    return [f"| | calls that failed | | {tokens} | {seconds:.1f} |"] if lost else []


def _seconds(work: Turn | WorkSpan) -> float:
    return (work.ended_at - work.started_at).total_seconds()
