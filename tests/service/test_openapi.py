"""The OpenAPI document has valid examples for every operation."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from contend.service.app import create_app
from contend.service.client import DebateClient
from contend.service.examples import examples_of_operations
from contend.service.uploads import Start
from tests.cli.support import debaters
from tests.service.test_debates import events, serve, wait_until_not_here
from tests.support.model_server import ModelServer

JSON = "application/json"
DOCUMENT = create_app().openapi()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    with ModelServer(debaters(), models=["m", "gpt-5-mini", "gpt-5"]) as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        with serve() as running:
            yield running


def check(example: Any, schema: dict[str, Any]) -> None:
    # References are relative to the whole document.
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(example)


def test_every_example_belongs_to_an_operation() -> None:
    assert set(examples_of_operations()) <= set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_has_examples_of_parameters_and_bodies(name: str) -> None:
    operation = OPERATIONS[name]
    for given in operation.get("parameters", []):
        assert given.get("examples") or given["schema"]["examples"], given["name"]
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        check(body["example"], body["schema"])
        if kind != JSON:
            Start.model_validate_json(body["example"]["debate"])
    assert {"401"} <= set(operation["responses"])
    for status, response in operation["responses"].items():
        shown = [each for each in response.get("content", {}).values() if "example" in each]
        assert len(shown) == (status != "204"), status
        for each in shown:
            check(each["example"], each["schema"])


def test_parameter_examples_match_their_schema() -> None:
    for name, operation in OPERATIONS.items():
        for given in operation.get("parameters", []):
            schema = given["schema"]
            for example in given.get("examples") or schema["examples"]:
                check(example, schema)
                assert "example" not in schema, name


def test_every_reference_resolves() -> None:
    names = set(DOCUMENT["components"]["schemas"])
    text = json.dumps(DOCUMENT)
    found = {each.split('"')[0] for each in text.split('"$ref": "')[1:]}
    assert found <= {f"#/components/schemas/{name}" for name in names}


def test_example_requests_are_accepted(client: TestClient) -> None:
    requests = {
        name: each["request"]
        for name, each in examples_of_operations().items()
        if "request" in each
    }
    started = client.post("/api/v1/debates", json=requests.pop("POST /api/v1/debates"))
    assert started.status_code == 201, started.text
    debate = DebateClient(http=client).get(started.json()["id"])
    events(client, debate.id)
    wait_until_not_here(client, debate.id)
    refused = {}
    for name, body in requests.items():
        path = name.removeprefix("POST ").replace("{debate_id}", debate.id)
        answered = client.post(path, json=body)
        if not answered.is_success:
            refused[name.rpartition("/")[2]] = answered.json()["error"]
    # They are understood; what they ask for does not suit a debate that is done and no forecast.
    assert refused == dict.fromkeys(("resolve", "resume", "finish"), "not_possible")
