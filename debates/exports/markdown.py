import re
from collections.abc import Iterable, Mapping
from typing import Any

from contend.debates.exports import wording
from contend.debates.exports.embed import embed_data, escape_markdown
from contend.debates.exports.forecast import forecast_section
from contend.debates.exports.moderated import moderated_facts
from contend.debates.exports.objections import COLUMNS, objection_rows
from contend.debates.exports.page import table_row
from contend.debates.exports.verdict import changes, dissent, short_answer, verdict_facts
from contend.debates.record import StoredDebate
from contend.graph.phases import AFTER_THE_ROUNDS
from contend.graph.state import Turn
from contend.graph.values import HUMAN, NO_USAGE, WorkSpan
from contend.models.text import shorten

_LONGEST_HEADING = 120
_TITLE = re.compile(r"## (.+)")
_NOT_IN_ANCHORS = re.compile(r"[^\w-]")


def to_markdown(stored: StoredDebate) -> str:
    debate = _embedded(stored)
    parts = sections_of(stored)
    return "\n\n".join([_head(debate), _contents(parts), *parts]) + "\n"


def sections_of(stored: StoredDebate) -> list[str]:
    debate = _embedded(stored)
    record = debate.as_json()
    checks = [f"{name}: {value}" for name, value in moderated_facts(record)]
    sections = [
        _section("In short", _in_short(record)),
        _notices(debate, record),
        _section("Positions", _bullets(_positions(record))),
        _answer(record),
        forecast_section(record),
        _section("Why it stopped", _ending(record)),
        _section("Concessions", _bullets(_concessions(record))),
        _section("Verdict", record.get("verdict")),
        _section("Objections", _objections(record)),
        _section("What changed", _bullets(map(escape_markdown, changes(record)))),
        _section("Dissent", _bullets(map(escape_markdown, dissent(record)))),
        _section("Score", "\n\n".join(_score(record))),
        _section("Scores and checks", _bullets(checks)),
        _section("Evidence", _bullets(_evidence(debate, record))),
        *_rounds(debate),
        _section("Models, tokens and time", _table(debate, record)),
    ]
    return [section for section in sections if section]


def _embedded(stored: StoredDebate) -> StoredDebate:
    headings = {"question": stored.question, "title": stored.title}
    data = embed_data(stored.model_dump(mode="json", exclude={*headings}))
    return StoredDebate.model_validate({**data, **headings})


def _in_short(record: Mapping[str, Any]) -> str:
    if not record["final_answer"]:
        return ""
    facts = (f"- **{name}:** {value}" for name, value in verdict_facts(record))
    warnings = _quoted(record["warnings"])
    short = escape_markdown(short_answer(record["final_answer"]))
    parts = [warnings, short, "\n".join(facts)]
    return "\n\n".join(filter(None, parts))


def _contents(sections: Iterable[str]) -> str:
    titles = (found[1] for each in sections if (found := _TITLE.match(each)))
    links = (
        f"[{each}](#{_NOT_IN_ANCHORS.sub('', each.lower().replace(' ', '-'))})" for each in titles
    )
    return " · ".join(links)


def _positions(record: Mapping[str, Any]) -> list[str]:
    return [f"{each['name']}: {each['position']}" for each in record["seats"] if each["position"]]


def _section(title: str, text: str | None) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _head(debate: StoredDebate) -> str:
    place = f" on {debate.ran_on}" if debate.ran_on else ""
    started = wording.local_time(debate.created_at) + place
    parts = [
        f"# {shorten(debate.shown_title, _LONGEST_HEADING)}",
        f"Debate `{debate.id}`, protocol {debate.protocol}, {debate.status}, started {started}",
        *wording.label_notice(debate.as_settings(), debate.as_state().get("seats", [])),
    ]
    if debate.title or len(" ".join(debate.question.split())) > _LONGEST_HEADING:
        parts.append(_section("Question", _fenced(debate.question)))
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _notices(debate: StoredDebate, record: Mapping[str, Any]) -> str:
    lines = [wording.DEMONSTRATION] if record["demonstration"] else []
    if debate.error:
        how = "is paused" if debate.is_out_of_budget else "failed"
        lines.insert(0, f"The debate {how}: {debate.error}")
    elif debate.status != "done":
        lines.insert(0, f"The debate is not finished: it is {debate.status}.")
    if not record["final_answer"]:  # otherwise the warnings are above the short answer
        lines += record["warnings"]
    return _quoted([*lines, *wording.notices(record)])


def _quoted(lines: Iterable[str]) -> str:
    return "\n".join(f"> ⚠️ {' '.join(line.split())}  " for line in lines)


def _answer(record: Mapping[str, Any]) -> str:
    answer = record["final_answer"] or "There is no answer yet."
    written = [turn for turn in record["turns"] if turn["phase"] == "synthesize"]
    used = "".join(_tool_uses(turn) for turn in written)
    return f"## Answer\n\n{_author(record)}{answer}{used}"


def _author(record: Mapping[str, Any]) -> str:
    names = wording.seat_names(record["seats"])
    for turn in record["turns"]:
        what = wording.describe_stand_in(turn["phase"], turn["status"])
        if what and turn["phase"] == "synthesize":
            return f"*{names.get(turn['seat'], turn['seat'])}: {what}.*\n\n"
    return ""


def _ending(record: Mapping[str, Any]) -> str:
    if record["stop"] is None:
        return ""
    before = wording.opening_title(seat["role"] for seat in record["seats"]).lower()
    number = record["stop"]["round"]
    when = f"In round {number}" if number else f"After the {before}"
    return f"{when}: {wording.stop_sentence(record)}"


def _concessions(record: Mapping[str, Any]) -> list[str]:
    lines = wording.concessions(record)
    if lines and record.get("winner") and record.get("winner_by", "one_left") == "one_left":
        name = wording.seat_names(record["seats"])[record["winner"]]
        lines.append(f"{name} is the only one left.")
    return lines


def _objections(record: Mapping[str, Any]) -> str:
    rows = objection_rows(record)
    if not rows:
        return ""
    head = [table_row(COLUMNS), "|" + "---|" * len(COLUMNS)]
    none_open = [] if any(row.is_open for row in rows) else ["No objection is open.", ""]
    return "\n".join([*none_open, *head, *(table_row(row.cells()) for row in rows)])


def _score(record: Mapping[str, Any]) -> Iterable[str]:
    if record["user_rating"] is not None:
        yield f"Your rating: **{record['user_rating']} of 10**."
    if rated := record["auto_score"]:
        ratings = wording.rating_words(rated)
        yield f"**{rated['score']:g} of 10** by {rated['judge_model']}: {ratings}."
        if sharing := ", ".join(rated["judge_shares_model_with"]):
            yield f"The judge uses the same model as: {sharing}."
        if rated["judge_wrote_answer"]:
            yield "The judge wrote the answer itself."
        yield rated["justification"]


def _evidence(debate: StoredDebate, record: Mapping[str, Any]) -> Iterable[str]:
    yield from wording.attachment_lines(debate.as_state())
    used = [f"{use['title']} (`{use['id']}`, {use['score']:.2f})" for use in record["templates"]]
    if used:
        yield f"Reasoning templates: {', '.join(used)}"
    if checked := wording.checked_quotes(record["quotes"]):
        lines = [f"Quotes: {wording.count_quotes(checked)}"]
        for quote in checked:
            words = " ".join(wording.quote_words(quote).split())
            lines.append(f"  - {quote['seat']}, round {quote['round']}: {words}")
        yield "\n".join(lines)


def _rounds(debate: StoredDebate) -> Iterable[str]:
    seats = debate.as_state().get("seats", [])
    names = {seat.id: seat.name for seat in seats}
    opening = wording.opening_title(seat.role for seat in seats)
    closings, shown = wording.closings_begin(debate.turns), ""
    for at, turn in enumerate(debate.turns):
        if turn.phase in AFTER_THE_ROUNDS:
            continue
        section = f"Round {turn.round}" if turn.round else opening
        section = wording.CLOSINGS if at >= closings else section
        if section != shown:
            shown = section
            yield f"## {section}"
        name = names.get(turn.seat, turn.seat.capitalize())
        model = f" ({by})" if (by := _writer(turn)) else ""
        what = f", {title}" if (title := wording.phase_title(turn.phase)) else ""
        used = _tool_uses(turn.model_dump())
        # A kept answer is already shown in its own round.
        text = "" if turn.status == "kept_previous" else turn.text
        note = wording.describe_stand_in(turn.phase, turn.status) or _length_note(turn)
        note = f"*{wording.sentence(note.capitalize())}*\n\n" if note else ""
        yield f"### {name}{model}{what}\n\n{note}{text}{used}".rstrip()


def _writer(turn: Turn) -> str:
    return HUMAN if turn.status == "human" and turn.phase != "remark" else turn.model


def _length_note(turn: Turn) -> str:
    return wording.length_words(turn.length.model_dump() if turn.length else None)


def _tool_uses(turn: Mapping[str, Any]) -> str:
    shown = ""
    for use in turn["tool_calls"]:
        what = "A tool failed" if use["failed"] else "A tool was used"
        given = _fenced(f"{wording.call_words(use)}\n\n{use['result']}")
        shown += f"\n\n*{what}:*\n\n{given}"
    return shown


def _table(debate: StoredDebate, record: Mapping[str, Any]) -> str:
    rows = [
        _row(turn.round, turn.seat, turn.model, turn.usage.model_dump(), _seconds(turn))
        for turn in debate.turns
        if turn.status != "human"
    ]
    # Add a row for failed calls, so that the rows add up to the total.
    if lost := [span for span in debate.as_state().get("spans", []) if span.calls]:
        usage = sum((span.usage for span in lost), NO_USAGE).model_dump()
        rows.append(_row("", "calls that failed", "", usage, sum(map(_seconds, lost))))
    usage, seconds = record["usage"], record["timing"]["total_ms"] / 1000
    head = "| Round | Seat | Model | Tokens in | Tokens out | Seconds |"
    took = f"Tokens: {wording.usage_words(usage)}. Time: {wording.duration(seconds * 1000)}."
    cost = f"{took} Cost: {wording.dollars(usage['cost_usd'])}."
    total = _row("", "**all**", "", usage, seconds)
    return "\n".join([head, "|---|---|---|---:|---:|---:|", *rows, total, "", cost])


def _row(number: object, seat: str, model: str, usage: Mapping[str, Any], seconds: float) -> str:
    counts = (wording.number(usage[name]) for name in ("input_tokens", "output_tokens"))
    cells = (str(number), seat, model, *counts, f"{seconds:.1f}")
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _seconds(work: Turn | WorkSpan) -> float:
    return (work.ended_at - work.started_at).total_seconds()
