"""A forecast in exports: the distribution, and what is missing from it."""

from collections.abc import Iterator, Mapping
from typing import Any

from contend.debates.exports.page import ExportPage, Facts, Part, Rows, Title

_HEAD = ("outcome", "forecast", "verdict", "mean of the roles", "each role")


def forecast_section(record: Mapping[str, Any]) -> str:
    parts = forecast_parts(record)
    return ExportPage(parts, {}).as_markdown().rstrip() if parts else ""


def forecast_parts(record: Mapping[str, Any]) -> list[Part]:
    forecast = record.get("forecast")
    if not forecast:
        return []
    rows = list(_rows(forecast, outcome_labels(record)))
    facts = [*fate_facts(record), *_facts(forecast)]
    return [Title("Forecast", 2), Rows(_HEAD, rows), Facts(facts)]


def fate_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("Due", record["due"])] if record.get("due") else []
    came = record.get("resolution")
    if came:
        rows = record["forecast"]["probability_distribution"]
        given = next((r["probability"] for r in rows if r["outcome_id"] == came), None)
        outcome = f"{outcome_labels(record).get(came, came)}; the forecast gave it {percent(given)}"
        facts.append(("Came true", outcome))
    return facts


def outcome_labels(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the outcomes of a forecast as `id: label`, by id."""
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
    yield "Consensus", of_one(forecast["consensus_score"])
    yield "Confidence", of_one(report["confidence"])
    for each in report["gaps"]:
        yield "Missing", gap_words(each)
    yield from insight_facts(forecast)


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


def of_one(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} of 1"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
