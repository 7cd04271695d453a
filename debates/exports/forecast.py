from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from contend.debates.exports.page import ExportPage, Facts, Part, Rows, Title

_HEAD = ("outcome", "forecast", "verdict", "mean of the roles", "each role")

_CRITERIA = {"logical_strength": "logic", "evidence_quality": "evidence", "novelty": "novelty"}
POOL_WORDS = {
    "contract": "judge and roles",
    "linear": "linear mean",
    "log_odds": "mean log-odds",
    "extremised": "extremized",
}


def forecast_section(record: Mapping[str, Any]) -> str:
    parts = forecast_parts(record)
    return ExportPage(parts, {}).as_markdown().rstrip() if parts else ""


def forecast_parts(record: Mapping[str, Any]) -> list[Part]:
    forecast = record.get("forecast")
    if not forecast:
        return []
    rows = list(_rows(forecast, outcome_labels(record)))
    facts = [*due_and_outcome_facts(record), *_facts(forecast)]
    criteria = _CRITERIA | {name: name for name in _own(forecast, "own_criteria")}
    return [
        Title("Forecast", 2),
        Rows(_HEAD, rows),
        Facts(facts),
        Title("Arguments", 3),
        Rows(_argument_head(criteria.values()), list(_argument_rows(forecast, list(criteria)))),
        Title("Pools", 3),
        Rows(("outcome", *POOL_WORDS.values()), list(_pool_rows(forecast))),
    ]


def due_and_outcome_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("Due", record["due"])] if record.get("due") else []
    actual = record.get("resolution")
    if actual:
        rows = record["forecast"]["probability_distribution"]
        given = next((r["probability"] for r in rows if r["outcome_id"] == actual), None)
        label = outcome_labels(record).get(actual, actual)
        facts.append(("Came true", f"{label}; the forecast gave it {percent(given)}"))
    return facts


def outcome_labels(record: Mapping[str, Any]) -> dict[str, str]:
    outcomes = record["request"]["prediction_context"]["outcomes"]
    return {each["id"]: f"{each['id']}: {each['label']}" for each in outcomes}


def _rows(forecast: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[list[str]]:
    for row in forecast["probability_distribution"]:
        roles = ", ".join(
            f"{each['role']} {percent(each['probability'])}" for each in row["role_assessments"]
        )
        yield [
            labels.get(row["outcome_id"], row["outcome_id"]),
            percent(row["probability"]),
            percent(row["judge_probability"]),
            percent(row["consensus_probability"]),
            roles or "-",
        ]


def _facts(forecast: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    report = forecast["report"]
    yield "Consensus", share_words(forecast["consensus_score"])
    yield "Confidence", share_words(report["confidence"])
    for each in report["gaps"]:
        yield "Missing", gap_words(each)
    for name, description in _own(forecast, "own_roles").items():
        yield "Own role", f"{name}: {description}"
    for name, description in _own(forecast, "own_criteria").items():
        yield "Own criterion", f"{name}: {description}"
    yield from disagreement_facts(forecast)
    yield from insight_facts(forecast)


def _argument_head(criteria: Iterable[str]) -> tuple[str, ...]:
    stated = ("round", "role", "supports", "probabilities")
    return (*stated, "score", ", ".join(criteria), "evidence cited", "rebuts")


def _argument_rows(forecast: Mapping[str, Any], criteria: Sequence[str]) -> Iterator[list[str]]:
    stated = {
        (each["round"], each["role"]): each["values"]
        for each in forecast["report"]["raw_probabilities"]
        if each["part"] == "argument"
    }
    for held in forecast["debate_log"]["rounds"]:
        for each in held["arguments"]:
            given = stated.get((held["round_number"], each["role"]), {})
            scores = each["scores"] or {}
            yield [
                str(held["round_number"]),
                each["role"],
                each["outcome_supported"] or "-",
                ", ".join(f"{outcome} {value:g}" for outcome, value in given.items()) or "-",
                _score(scores.get("composite")),
                ", ".join(_score(scores.get(name)) for name in criteria),
                "; ".join(each["evidence_cited"]) or "-",
                ", ".join(each["rebuts"]) or "-",
            ]


def _own(forecast: Mapping[str, Any], what: str) -> dict[str, str]:
    return {each["name"]: each["description"] for each in forecast["report"].get(what, ())}


def _pool_rows(forecast: Mapping[str, Any]) -> Iterator[list[str]]:
    for each in forecast["report"]["pools"]:
        yield [each["outcome_id"], *(percent(each[name]) for name in POOL_WORDS)]


def disagreement_facts(forecast: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in forecast["disagreement_map"]:
        state = "resolved" if each["resolved"] else "still open"
        stances = "; ".join(f"{p['role']}: {p['stance']}" for p in each["positions"])
        yield "Disagreement", f"{each['topic']} ({state}): {stances}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def insight_facts(forecast: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in forecast["key_insights"]:
        said_by = f"{each['source_role']}, round {each['round']}, {each['impact']} impact"
        yield "Insight", f"{each['insight']} ({said_by})"
    for each in forecast["historical_precedents"]:
        yield "Precedent", f"{each['event']}, {each['date']}: {each['outcome']}"


def gap_words(gap: Mapping[str, Any]) -> str:
    where = [str(gap["role"])] if gap["role"] else []
    where += [f"round {gap['round']}"] if gap["round"] else []
    return f"{', '.join([*where, gap['what'].replace('_', ' ')])} ({gap['why']})"


def share_words(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} of 1"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
