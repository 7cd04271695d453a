"""The forecasting contract: its fields, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.forecast_contract.result import DebateResult, json_schemas

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"

REQUEST: dict[str, Any] = {
    "task_id": "task-7",
    "prediction_context": {
        "task": {
            "question": "Will the bridge open before May?",
            "description": "A bridge over the sound.",
            "resolution_criteria": "Traffic crosses it.",
        },
        "outcomes": [
            {"id": "yes", "label": "It opens", "description": "Before 1 May."},
            {"id": "no", "label": "It does not", "description": ""},
        ],
        "key_variables": [
            {"name": "weather", "category": "nature", "importance": 0.4, "current_value": "calm"},
            {"name": "crew", "category": "work", "importance": 0.8, "current_value": 120},
        ],
        "simulation_summary": {
            "final_distribution": [
                {"outcome_id": "yes", "probability": 0.55},
                {"outcome_id": "no", "probability": 0.45},
            ],
            "key_findings": ["Delays come in spring."],
        },
        "data_summary": {
            "region": "the sound",
            "timeframe": {"start": "2026-11-01", "end": "2027-05-01"},
            "economic_highlights": ["Steel is cheap."],
            "sentiment_highlights": ["The crew is tired."],
            "data_gaps": ["No tide data."],
        },
    },
    "config": {
        "rounds": 3,
        "roles": ["optimist", "pessimist", "contrarian", "historian", "judge"],
        "max_argument_length": 500,
        "scoring_criteria": ["logical_strength", "evidence_quality", "novelty"],
        "judge_weight": 0.6,
        "own_roles": [],
        "own_criteria": [],
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the request with one value changed, or removed if it is None."""
    copy: dict[str, Any] = json.loads(json.dumps(REQUEST))
    at: Any = copy
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in way:
        at = at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return copy


def test_every_field_of_the_contract_is_kept() -> None:
    request = DebateRequest.model_validate_json(json.dumps(REQUEST))
    assert request.model_dump(mode="json") == REQUEST


def test_fields_with_defaults_can_be_omitted() -> None:
    context = REQUEST["prediction_context"]
    least = {
        "task_id": "t",
        "prediction_context": {"task": {"question": "Q?"}, "outcomes": context["outcomes"]},
    }
    request = DebateRequest.model_validate_json(json.dumps(least))
    assert request.config.model_dump(mode="json") == REQUEST["config"]
    assert request.prediction_context.outcome_ids == ("yes", "no")


CONTEXT = "prediction_context"


@pytest.mark.parametrize(
    ("path", "given", "read"),
    [
        ("task.owner", {"team": "bridges"}, {"team": "bridges"}),
        ("data_summary.timeframe.end", "2027-05-01T12:30:00Z", "2027-05-01"),
        ("data_summary.timeframe.start", "2026-11-01T00:00:00", "2026-11-01"),
        ("key_variables.0.importance", "High", 0.75),
        ("key_variables.0.importance", "low", 0.25),
        ("outcomes.1.id", "no way", "no way"),
    ],
)
def test_common_variants_of_values_are_accepted(path: str, given: Any, read: Any) -> None:
    sent = changed(f"{CONTEXT}.{path}", given)
    if path == "outcomes.1.id":
        sent[CONTEXT]["simulation_summary"]["final_distribution"].pop()
    at: Any = DebateRequest.model_validate_json(json.dumps(sent)).model_dump(mode="json")[CONTEXT]
    for step in path.split("."):
        at = at[int(step) if step.isdigit() else step]
    assert at == read


def test_null_descriptions_become_empty() -> None:
    sent = changed(f"{CONTEXT}.task.description", "")
    sent[CONTEXT]["task"]["description"] = sent[CONTEXT]["outcomes"][0]["description"] = None
    context = DebateRequest.model_validate_json(json.dumps(sent)).prediction_context
    assert (context.task.description, context.outcomes[0].description) == ("", "")


OUTCOME = {"id": "maybe", "label": "Perhaps"}
REFUSED = {
    "no outcomes": changed(f"{CONTEXT}.outcomes", []),
    "one outcome": changed(f"{CONTEXT}.outcomes", [OUTCOME]),
    "outcomes missing": changed(f"{CONTEXT}.outcomes", None),
    "too many outcomes": changed(
        f"{CONTEXT}.outcomes", [OUTCOME | {"id": f"o{n}"} for n in range(21)]
    ),
    "duplicate ids": changed(f"{CONTEXT}.outcomes.1.id", "yes"),
    "duplicate ids in another case": changed(f"{CONTEXT}.outcomes.1.id", "YES"),
    "odd id": changed(f"{CONTEXT}.outcomes.1.id", "no/way"),
    "id that ends in a space": changed(f"{CONTEXT}.outcomes.1.id", "no "),
    "importance in odd words": changed(f"{CONTEXT}.key_variables.0.importance", "huge"),
    "NUL in a field of the task": changed(f"{CONTEXT}.task.owner", {"a": "b\x00"}),
    "empty label": changed(f"{CONTEXT}.outcomes.1.label", "  "),
    "probability as text": changed(
        f"{CONTEXT}.simulation_summary.final_distribution.0.probability", "0.55"
    ),
    "probability above 1": changed(
        f"{CONTEXT}.simulation_summary.final_distribution.0.probability", 1.5
    ),
    "distribution that is none": changed(
        f"{CONTEXT}.simulation_summary.final_distribution.0.probability", 0.95
    ),
    "distribution too small": changed(
        f"{CONTEXT}.simulation_summary.final_distribution.0.probability", 0.05
    ),
    "unknown simulated outcome": changed(
        f"{CONTEXT}.simulation_summary.final_distribution.0.outcome_id", "maybe"
    ),
    "simulated twice": changed(
        f"{CONTEXT}.simulation_summary.final_distribution.0.outcome_id", "no"
    ),
    "weight above 1": changed("config.judge_weight", 1.01),
    "weight below 0": changed("config.judge_weight", -0.1),
    "weight as text": changed("config.judge_weight", "0.6"),
    "weight as truth": changed("config.judge_weight", True),
    "importance off": changed(f"{CONTEXT}.key_variables.0.importance", 2),
    "unknown role": changed("config.roles", ["optimist", "prophet", "judge"]),
    "role twice": changed("config.roles", ["optimist", "optimist", "judge"]),
    "no judge": changed("config.roles", ["optimist", "pessimist"]),
    "only a judge": changed("config.roles", ["judge"]),
    "no roles": changed("config.roles", []),
    "unknown criterion": changed("config.scoring_criteria", ["beauty"]),
    "no criterion": changed("config.scoring_criteria", []),
    "criterion twice": changed("config.scoring_criteria", ["novelty", "novelty"]),
    "no rounds": changed("config.rounds", 0),
    "too many rounds": changed("config.rounds", 11),
    "rounds as text": changed("config.rounds", "3"),
    "half a round": changed("config.rounds", 2.5),
    "no room for an argument": changed("config.max_argument_length", 5),
    "no question": changed(f"{CONTEXT}.task.question", ""),
    "long question": changed(f"{CONTEXT}.task.question", "x" * 10_001),
    "NUL": changed(f"{CONTEXT}.task.question", "a\x00b"),
    "NUL in a variable": changed(f"{CONTEXT}.key_variables.0.current_value", "a\x00b"),
    "long value of a variable": changed(f"{CONTEXT}.key_variables.0.current_value", "x" * 2_001),
    "no task id": changed("task_id", None),
    "empty task id": changed("task_id", ""),
    "number for a task id": changed("task_id", 7),
    "unknown field": REQUEST | {"urgent": True},
    "backward timeframe": changed(f"{CONTEXT}.data_summary.timeframe.end", "2026-10-01"),
    "odd date": changed(f"{CONTEXT}.data_summary.timeframe.end", "soon"),
    "many highlights": changed(f"{CONTEXT}.data_summary.data_gaps", ["x"] * 51),
}


@pytest.mark.parametrize("request_data", REFUSED.values(), ids=REFUSED)
def test_bad_requests_are_refused(request_data: Any) -> None:
    with pytest.raises(ValidationError):
        DebateRequest.model_validate_json(json.dumps(request_data))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
@pytest.mark.parametrize("name", ['"judge_weight": 0.6', '"importance": 0.4', '"rounds": 3'])
def test_non_finite_numbers_are_refused(name: str, number: str) -> None:
    text = json.dumps(REQUEST)
    assert name in text
    broken = text.replace(name, f"{name.split(':', maxsplit=1)[0]}: {number}")
    with pytest.raises(ValidationError):
        DebateRequest.model_validate_json(broken)


@pytest.mark.parametrize("number", ["NaN", "1e400"])
def test_non_finite_current_value_is_refused(number: str) -> None:
    broken = json.dumps(REQUEST).replace('"current_value": 120', f'"current_value": {number}')
    with pytest.raises(ValidationError):
        DebateRequest.model_validate_json(broken)


def test_half_a_surrogate_pair_is_refused() -> None:
    broken = json.dumps(REQUEST).replace("the sound", "\\ud800")
    with pytest.raises(ValidationError):
        DebateRequest.model_validate_json(broken)


def test_result_has_the_fields_of_the_contract_and_a_report() -> None:
    assert set(DebateResult.model_fields) == {
        "debate_id",
        "task_id",
        "completed_at",
        "debate_log",
        "consensus_score",
        "disagreement_map",
        "probability_distribution",
        "key_insights",
        "historical_precedents",
        "metadata",
        "report",
    }
    schema = DebateResult.model_json_schema(mode="serialization")["$defs"]
    fields = {name: set(schema[name]["properties"]) for name in schema}
    assert fields["Round"] == {"round_number", "phase", "arguments", "round_summary"}
    assert fields["Argument"] == {
        "role",
        "argument",
        "outcome_supported",
        "evidence_cited",
        "scores",
        "rebuts",
    }
    assert fields["Scores"] == {"logical_strength", "evidence_quality", "novelty", "composite"}
    assert fields["RoundSummary"] == {
        "dominant_argument",
        "key_disagreements",
        "emerging_consensus",
    }
    assert fields["EmergingConsensus"] == {"outcome_id", "direction"}
    assert fields["Disagreement"] == {"topic", "positions", "resolved"}
    assert fields["Position"] == {"role", "stance", "strength"}
    assert fields["OutcomeForecast"] == {
        "outcome_id",
        "probability",
        "role_assessments",
        "judge_probability",
        "consensus_probability",
    }
    assert fields["RoleAssessment"] == {"role", "probability", "confidence"}
    assert fields["KeyInsight"] == {
        "insight",
        "source_role",
        "round",
        "impact",
        "affected_outcomes",
    }
    assert fields["Precedent"] == {"event", "date", "similarity_score", "outcome", "relevance"}
    assert fields["ResultMetadata"] == {
        "total_arguments",
        "sonnet_tokens_used",
        "sonnet_calls",
        "wall_clock_time_ms",
        "model",
    }
    assert fields["TokensUsed"] == {"input", "output"}


def test_schema_example_is_a_valid_request() -> None:
    examples: Any = json_schemas()["debate_request"]["examples"]
    (example,) = examples
    DebateRequest.model_validate_json(json.dumps(example))


@pytest.mark.parametrize("name", ["debate_request", "debate_result"])
def test_the_published_schema_is_current(name: str) -> None:
    kept = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    assert kept == json_schemas()[name]
