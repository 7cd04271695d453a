import json
from pathlib import Path

import pytest

from contend.graph.forecast_contract.result import DebateResult
from contend.models.providers.weights import SMALLEST
from tests.cli.support import Command, on_embedded
from tests.models.providers.test_embedded import weights as weights  # noqa: PLC0414 - the fixture that pulls
from tests.support.model_server import ModelServer


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_forecast_on_the_embedded_model(
    weights: Path, contend: Command, models: ModelServer
) -> None:
    on_embedded(contend, weights)
    with contend.start(
        *("ask", "Will it rain in London next week?", "-p", "forecast"),
        *("--outcome", "yes: It rains", "--outcome", "no: It stays dry"),
        *("--set", "roles=[optimist,judge]", "--set", "max_rounds=1"),
        *("--set", "overall_timeout=900", "--json", "--quiet"),
    ) as process:
        # Its calls take seconds each, and many of them on a busy machine.
        out, err = process.communicate(timeout=500)
    assert (process.returncode, err) == (0, "")
    record = json.loads(out)
    assert record["demonstration"]
    forecast = record["forecast"]
    result = DebateResult.model_validate_json(json.dumps(forecast))
    assert result.metadata.total_arguments == 2
    assert result.metadata.model == f"embedded:{SMALLEST}"
    assert all(argument.argument for argument in result.debate_log.rounds[0].arguments)
    # Whole distributions are all it can choose from, so what it says can be read.
    for row in result.probability_distribution:
        assert len(row.role_assessments) == 2
        assert row.judge_probability is not None
        assert row.probability is not None
    assert sum(row.probability or 0 for row in result.probability_distribution) == pytest.approx(1)
    assert models.calls == []
