from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from contend.graph.phases import PHASES, PhaseName

if TYPE_CHECKING:  # every command loads this module, and --help must not load langgraph
    from contend.graph.settings import DebateSettings
    from contend.graph.state import DebateState, Turn
    from contend.graph.values import Seat

STOP_WORDS = {
    "skeptic_ready": "the Skeptic found the answer ready",
    "score_reached": "the target score was reached",
    "no_critical_issues": "no critical objection is left",
    "max_rounds": "all rounds were used",
    "judge_stop": "the judge stopped the debate",
    "moderator_stop": "the moderator ended the rounds",
    "one_left": "one position was left",
    "converged": "the positions converged",
    "drafts_agree": "the first answers agreed",
    "user": "you asked for the answer",
    "failed": "every model failed",
    "timeout": "the time limit of the debate was reached",
    "budget": "the budget did not pay for more rounds",
}
INITIAL, OPENINGS, CLOSINGS = "Initial answers", "Opening statements", "Closing statements"
DEGRADED_WORDS = {
    "retried": "trying again",
    "fell_back": "falling back to the next model",
    "failed": "gave up",
    "history_shortened": "earlier turns left out",
    "echo_removed": "removed a repeated prompt",
    "prompt_too_long": "the prompt may not fit",
    "unreadable": "verdict not readable",
    "not_rated": "answer not rated",
    "templates_left_out": "templates left out",
    "no_templates": "no reasoning templates",
    "tools_spent": "tools used up",
    "passages_left_out": "passages of the documents left out",
    "no_passages": "no passages from the documents",
    "generic_feedback": "general advice instead of feedback",
    "kept_previous": "previous answer kept",
    "sat_out": "skipped this round",
    "initial_answers_stand": "no further round",
    "not_merged": "the answers could not be merged",
    "out_of_time": "no time was left",
    "out_of_budget": "not asked, because of the budget",
    "no_numbers": "probabilities not readable",
    "no_precedents": "too few precedents",
    "no_references": "no earlier point cited",
    "argued_again": "too weak, argued again",
    "argued_anew": "argued once more",
    "overlong": "over the length limit",
    "judge_silent": "the judge could not be asked, so the debate ends",
    "no_verdict": "no verdict",
    "not_asked": "could not be asked whether it concedes",
    "void_concession": "a concession without effect",
    "concession_withdrawn": "a concession taken back",
    "general_positions": "general positions instead of proposed ones",
    "not_checked": "not checked",
    "not_scored": "not scored",
    "not_anonymised": "names the judge may see",
    "folder_incomplete": "the folder could not be written",
}
# The section or the speaker's role already identifies these turns.
_UNTITLED = frozenset({"propose", "critique", "remark", "synthesize", "score"})
POINT_WORDS = {
    "open": "open",
    "partial": "partly resolved",
    "resolved": "resolved",
    "dropped": "dropped",
}

PointData = Mapping[str, Any]
Points = Mapping[str, Iterable[PointData]]


def stop_words(reason: str | None) -> str:
    return STOP_WORDS.get(reason, reason) if reason else "not decided yet"


DEMONSTRATION = "Argued by the built-in demo model: its scores are not meaningful."


def rating_words(rated: Mapping[str, Any]) -> str:
    parts = ("correctness", "completeness", "clarity", "depth")
    return ", ".join(f"{part} {rated[part]}" for part in parts)


def why_it_stopped(record: Mapping[str, Any]) -> str:
    silent = any(entry["what"] == "judge_silent" for entry in record["degraded"])
    return "the judge could not be asked" if silent else stop_words(record["stop_reason"])


def stop_sentence(record: Mapping[str, Any]) -> str:
    return sentence(record["stop"]["evidence"] or why_it_stopped(record))


def concessions(record: Mapping[str, Any]) -> list[str]:
    names = seat_names(record["seats"])
    return [sentence(concession_words(each, names)) for each in record.get("eliminations") or ()]


def notices(record: Mapping[str, Any]) -> list[str]:
    names = seat_names(record["seats"])
    return [degraded_words(each, names) for each in record["degraded"]]


def phase_title(phase: PhaseName) -> str:
    """Return the title for a phase's turns, such as `rebuttal`, or '' for an untitled phase."""
    return "" if phase in _UNTITLED else PHASES[phase].label


def number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def duration(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def usage_words(usage: Mapping[str, Any]) -> str:
    cached = f" ({number(usage['cached_tokens'])} cached)" if usage.get("cached_tokens") else ""
    tokens = f"{number(usage['input_tokens'])} in{cached}, {number(usage['output_tokens'])} out"
    missing = usage.get("without_usage", 0)
    return f"{tokens} (without {missing} calls of unknown size)" if missing else tokens


def dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:.4f}"


def seat_names(seats: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {seat["id"]: seat["name"] for seat in seats}


def opening_title(roles: Iterable[str]) -> str:
    return OPENINGS if "position_advocate" in roles else INITIAL


def closings_begin(turns: Sequence["Turn"]) -> int:
    first = next((at for at, turn in enumerate(turns) if turn.phase == "closing"), len(turns))
    called = 0 < first < len(turns) and turns[first - 1].phase == "request"
    return first - called


def position_words(state: "DebateState") -> list[str]:
    sides = [seat for seat in state.get("seats", []) if seat.position]
    return [f"{side.name} argues: {side.position}" for side in sides]


def length_words(length: Mapping[str, Any] | None) -> str:
    if length and length.get("cut_after"):
        return f"cut off after {length['cut_after']:g} s"
    if not length or length["tokens"] <= length["limit"]:
        return ""
    return f"overlong: {length['tokens']} of {length['limit']} tokens"


def degraded_words(entry: Mapping[str, Any], names: Mapping[str, str]) -> str:
    what, seat = str(entry.get("what", "")), str(entry.get("seat") or "debate")
    seat = names.get(seat, seat.capitalize())
    number = entry.get("round")
    where = f", round {number}" if number else ""
    where = ", at the start" if number == 0 else where
    return f"{seat}{where}: {DEGRADED_WORDS.get(what, what)} ({entry.get('why', '')})"


def concession_words(entry: Mapping[str, Any], names: Mapping[str, str]) -> str:
    seat, to = (names.get(entry[key], entry[key]) for key in ("seat", "convinced_by"))
    argument = " ".join(entry["argument"].split()) or "no argument named"
    quote = " ".join(entry["quote"].split())
    said = f" (“{quote}”)" if quote and entry["quote_found"] else ""
    return f"{seat} conceded to {to} in round {entry['round']}: {argument}{said}"


def describe_stand_in(phase: str, status: str) -> str:
    """Describe a turn that stands in for a failed call; return '' for other turns."""
    if status == "failed":
        return "" if phase == "judge_continue" else "general advice, because the call failed"
    if status != "kept_previous":
        return ""
    if phase == "synthesize":
        return "the latest answer, because the final one could not be written"
    return "an earlier answer, kept because the call failed"


def label_notice(settings: "DebateSettings", seats: Sequence["Seat"]) -> list[str]:
    from contend.graph.protocols.base import strategy_for  # --help must not load langgraph

    places: dict[str, int] = {}
    pairs = []
    for seat in seats:
        place = places[seat.role] = places.get(seat.role, -1) + 1
        label = strategy_for(settings).label(seat, place)
        if label != seat.name:
            pairs.append(f"{seat.name} is {label}")
    return [f"The models know each other only by label: {', '.join(pairs)}."] if pairs else []


def attachment_lines(state: "DebateState") -> list[str]:
    names = {seat.id: seat.name for seat in state.get("seats", [])}

    def of(seats: Sequence[str]) -> str:
        whose = listed([names.get(seat, seat) for seat in seats])
        return f" (for {whose})" if whose else ""

    documents = [f"{d.name} [{d.id}]{of(d.seats)}" for d in state.get("documents", [])]
    images = [f"{image.name}{of(image.seats)}" for image in state.get("images", [])]
    kinds = {"Documents": documents, "Images": images}
    return [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]


def call_words(use: Mapping[str, Any]) -> str:
    """Format a tool call, such as `calculate(expression: 6 * 7)`."""
    given = ", ".join(f"{name}: {value}" for name, value in use["arguments"].items())
    return f"{use['name']}({' '.join(given.split())})"


def tool_words(use: Mapping[str, Any]) -> str:
    sign = "✗" if use["failed"] else "→"
    return f"⚒ {call_words(use)} {sign} {' '.join(use['result'].split())}"


def checked_quotes(quotes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [quote for quote in quotes if quote["status"] != "from_debate"]


def count_quotes(checked: Iterable[Mapping[str, Any]]) -> str:
    listed = list(checked)
    quotes = [quote for quote in listed if quote["text"] != quote.get("written")]
    places = len(listed) - len(quotes)
    citations = "1 citation" if places == 1 else f"{places} citations"
    missing = [f"{citations} of missing places"] if places else []
    return "; ".join([*([_quote_counts(quotes)] if quotes else []), *missing])


def _quote_counts(listed: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(quote["status"] for quote in listed)
    mislabelled = sum(_is_mislabelled(quote) for quote in listed)
    under = f" ({mislabelled} under another label)" if mislabelled else ""
    altered = f", {counts['altered']} altered" if counts["altered"] else ""
    return (
        f"{counts['found']} found in the documents{altered}{under}, {counts['not_found']} not found"
    )


def _is_mislabelled(quote: Mapping[str, Any]) -> bool:
    return bool(quote.get("where") and quote.get("cited")) and quote["cited"] != quote["where"]


def quote_words(quote: Mapping[str, Any]) -> str:
    text, cited = " ".join(quote["text"].split()), quote.get("cited")
    if quote.get("where"):
        sign = "≈ altered," if quote["status"] == "altered" else "✓"
        named = f" (cited as [{cited}])" if _is_mislabelled(quote) else ""
        reads = f"; in full: “{quote['reads']}”" if quote.get("reads") else ""
        return f"{sign} [{quote['where']}]{named} “{text}”{reads}"
    if text.startswith("["):
        return f"✗ no such place in the documents: {text}"
    return f"✗ not found{f', cited as [{cited}]' if cited else ''}: “{text}”"


def local_time(stamp: str) -> str:
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")


def listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def sentence(text: str) -> str:
    stripped = text.strip()
    return stripped if stripped.endswith((".", "!", "?", "…")) else f"{stripped}."


def point_groups(points: Points) -> dict[str, list[PointData]]:
    """Group the objections as open, resolved or dropped; partly resolved ones count as open."""
    left = list(points["open"])
    return {
        "open": [point for point in left if point["status"] != "dropped"],
        "resolved": list(points["resolved"]),
        "dropped": [point for point in left if point["status"] == "dropped"],
    }


def draft_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    drafts = record.get("drafts")
    if not drafts:
        return []
    stated = ", ".join(answer or "none stated" for answer in drafts["answers"].values())
    if drafts["vote"] is None:
        return [("First answers", f"{stated}: no majority; the final answer is {drafts['final']}")]
    fate = f"changed it to {drafts['final']}" if drafts["changed"] else "kept it"
    return [("First answers", f"{stated}; the debate {fate}")]
