"""Estimates and startup errors of the API."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from contend.models.prices import price_table
from tests.cli.support import debaters
from tests.service.test_debates import DEBATES, events, models, serve
from tests.service.web.test_web_page import cast_of_forum
from tests.support.floor_server import floor_script
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer

__all__ = ["models"]

OUTCOMES = ["yes: It opens", "no: It does not"]
DEBATE: dict[str, dict[str, Any]] = {
    "adversarial": {"settings": {"min_rounds": 1, "max_rounds": 2}},
    "forum": {"settings": {"max_rounds": 3}},
    "refine": {"settings": {"max_debate_rounds": 2}},
    "moderated": {"settings": {"round_count": 1}},
    "forecast": {"outcomes": OUTCOMES},
}
CAST: dict[str, Any] = {
    "adversarial": debaters(),
    "forum": cast_of_forum,
    "refine": debaters(),
    "moderated": floor_script(),
    "forecast": forecasters(),
}


@pytest.mark.parametrize("protocol", DEBATE)
def test_the_number_of_calls_is_within_the_estimate(models: ModelServer, protocol: str) -> None:
    models.script = CAST[protocol]
    body = {"question": "Does the bridge open in May?", "protocol": protocol, **DEBATE[protocol]}
    body["settings"] = {"templates": False, **body.get("settings", {})}
    with serve() as client:
        fewest, most = _estimate(client, body)["calls"]
        assert models.calls == []
        debate = client.post(DEBATES, json=body).json()["id"]
        assert events(client, debate)[-1]["event"] == "complete"
    assert fewest <= len(models.calls) <= most
    assert most - fewest <= 20


def _estimate(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/api/v1/estimate", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert 0 < found["tokens"][0] <= found["tokens"][1]
    return found


def test_estimates_a_cost_only_if_every_price_is_known(models: ModelServer) -> None:
    body: dict[str, Any] = {"question": "Why?"}
    with serve() as client:
        assert _estimate(client, body)["cost_usd"] is None
        body["settings"] = {"prices": {"openai:m": [1, 2]}}
        found = _estimate(client, body)
        low, high = found["cost_usd"]
        assert 0 < low < high
        assert found["prices_read"] is None
        listed = _estimate(client, {"question": "Why?", "model": "anthropic:claude-haiku-4-5"})
        assert listed["cost_usd"][0] > 0
        assert listed["prices_read"] == str(price_table()["anthropic:claude-haiku-4-5"].read)


def test_estimate_names_an_unknown_setting(models: ModelServer) -> None:
    with serve() as client:
        refused = client.post(
            "/api/v1/estimate", json={"question": "Why?", "settings": {"max_round": 1}}
        )
        assert refused.status_code == 422
        assert "Did you mean 'max_rounds'" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/debates"), ("POST", "/estimate"), ("GET", "/models")],
)
def test_invalid_operator_settings_return_503(
    method: str, path: str, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as client:
        monkeypatch.setenv("CONTEND_RETRY_WAIT", "soon")
        body = {"json": {"question": "Why?"}} if method == "POST" else {}
        refused = client.request(method, f"/api/v1{path}", **body)  # type: ignore[arg-type]
        assert (refused.status_code, refused.json()["error"]) == (503, "misconfigured")
        assert "retry_wait" in refused.json()["detail"].lower()
