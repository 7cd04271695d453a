from collections.abc import Mapping
from typing import Any

from contend.cli.view.format import cost, counted, one_line
from contend.cli.view.seats import argument_of
from contend.debates.exports import wording
from contend.debates.exports.forecast import due_and_outcome_facts
from contend.debates.exports.moderated import moderated_facts


def end_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    usage = record["usage"]
    after = f"after {counted(record['total_rounds'], 'round')}: "
    facts = [
        ("Stopped", after + wording.why_it_stopped(record)),
        *wording.draft_facts(record),
        *_elimination_facts(record),
        *_points_fact(record),
        *_evidence_facts(record),
        *due_and_outcome_facts(record),
        *_rating_facts(record),
        ("Tokens", wording.usage_words(usage)),
        ("Cost", cost(usage["cost_usd"])),
        ("Time", wording.duration(record["timing"]["total_ms"])),
    ]
    names = wording.seat_names(record["seats"])
    return facts + [("Notice", notice(entry, names)) for entry in record["degraded"]]


_WHY_IT_WON = {"most_conceded_to": ", with the most concessions from others"}


def _elimination_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "eliminations" not in record:
        return []
    names, winner = wording.seat_names(record["seats"]), record["winner"]
    facts = []
    if winner and record.get("winner_by") == "first_named":
        why = "the concessions were tied" if record["eliminations"] else "nobody conceded"
        facts.append(("Winner", f"nobody: {why}; {names.get(winner, winner)} wrote the answer"))
    elif winner:
        why = _WHY_IT_WON.get(record.get("winner_by", "one_left"), "")
        facts.append(("Winner", f"{names.get(winner, winner)}{why}"))
    for entry in record["eliminations"]:
        who, to = (names.get(entry[each], entry[each]) for each in ("seat", "convinced_by"))
        why = one_line(argument_of(entry), 200)
        facts.append(("Conceded", f"{who} to {to} in round {entry['round']}: {why}"))
    return facts


def _evidence_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    used = ", ".join(f"{use['id']} ({use['score']:.2f})" for use in record["templates"])
    checked = wording.checked_quotes(record["quotes"])
    facts = [("Templates", used)] if used else []
    return facts + ([("Quotes", wording.count_quotes(checked))] if checked else [])


def notice(entry: Mapping[str, Any], names: Mapping[str, str]) -> str:
    return one_line(wording.degraded_words(entry, names), 400)


def _points_fact(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    critiques = [turn for turn in record["turns"] if turn["phase"] == "critique"]
    if not any(turn["assessment"] for turn in critiques):
        critics = {turn["seat"] for turn in critiques}
        unreadable = [each for each in record["degraded"] if each["what"] == "unreadable"]
        unread = any(entry["seat"] in critics for entry in unreadable)
        return [("Objections", "could not be parsed")] if unread else []
    groups = wording.point_groups(record["points"])
    counts = {name: len(group) for name, group in groups.items()}
    shown = (f"{n} {name}" for name, n in counts.items() if n or name != "dropped")
    return [("Objections", ", ".join(shown))]


def _rating_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    by_user = record["user_rating"]
    facts = moderated_facts(record)
    if not facts and (by_user is None or record["auto_score"]):
        facts = [("Score", _score_fact(record))]
    return facts + ([("Your rating", f"{by_user} of 10")] if by_user is not None else [])


def _score_fact(record: Mapping[str, Any]) -> str:
    rated = record["auto_score"]
    if rated is None:
        return "not rated"
    if record["demonstration"]:
        return "not meaningful (demo model)"
    called = {
        s["id"]: f"the {s['id']}" if s["id"] == s["role"] else s["name"] for s in record["seats"]
    }
    sharing = wording.listed([called.get(seat, seat) for seat in rated["judge_shares_model_with"]])
    caution = ", so treat the score with caution"
    shared = f"; the judge uses the same model as {sharing}{caution}" if sharing else ""
    wrote = "; the judge wrote the answer itself" if rated["judge_wrote_answer"] else ""
    score = f"{rated['score']:g} of 10 ({wording.rating_words(rated)})"
    return f"{score} by {rated['judge_model']}{shared}{wrote}"
