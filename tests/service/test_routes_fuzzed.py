"""Fuzz the API: no 5xx and only documented responses."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from requests import PreparedRequest
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.cli.actions.test_serve import Served, contend, models, served
from tests.service.conftest import TOKEN
from tests.service.test_routes import PREFIX, asked
from tests.support.model_server import ModelServer, always, openai_error

__all__ = ["contend", "models", "served"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def fuzz(
    served: Served,
    mode: GenerationMode,
    examples: int,
    token: str,
    under: tuple[str, ...] = ("/api/", "/v1/"),
) -> list[int]:
    """Call every operation with generated requests, check each response and return the statuses."""

    def with_token(prepared: PreparedRequest) -> PreparedRequest:
        # Last of all: as a header it is left out wherever headers are made up, and then nothing
        # behind the door is tried.
        prepared.headers["Authorization"] = f"Bearer {token}"
        return prepared

    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    statuses: list[int] = []
    every = list(schema.get_all_operations())
    found = [each.ok() for each in every if isinstance(each, Ok)]
    assert len(found) == len(every)
    # Where nothing is given, nothing can be wrong.
    lists = ("protocols", "presets", "models", "scoreboard")
    bare = ("/v1/models", *(f"/api/v1/{each}" for each in lists))
    skipped = bare if mode == GenerationMode.NEGATIVE else ()
    operations = [e for e in found if e.path.startswith(under) and e.path not in skipped]
    assert len(operations) >= 6
    for operation in operations:

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            answered = case.call_and_validate(auth=with_token, checks=CHECKS)
            statuses.append(answered.status_code)

        check()
    return statuses


@pytest.mark.parametrize(
    ("mode", "examples", "told"),
    [
        # Made-up ids, and debates whose models fail.
        (GenerationMode.POSITIVE, 15, {404, 502}),
        (GenerationMode.NEGATIVE, 15, {422}),
    ],
)
def test_generated_requests_cause_no_server_error(
    served: Served, models: ModelServer, mode: GenerationMode, examples: int, told: set[int]
) -> None:
    known = served.call("POST", PREFIX, json=asked(rounds=1)).json()["debate_id"]
    assert served.call("GET", f"{PREFIX}/{known}").status_code == 200
    # Whoever makes up a whole request gets an answer soon: its debate fails at the first call.
    models.script = always(openai_error(401, "closed"))
    statuses = fuzz(served, mode, examples, TOKEN)
    assert len(statuses) >= examples
    assert max(each for each in statuses if each != 502) < 500  # 502 is the models' failure
    assert told <= set(statuses), sorted(map(str, statuses))


def test_refuses_generated_requests_with_a_wrong_token(served: Served, models: ModelServer) -> None:
    statuses = fuzz(served, GenerationMode.POSITIVE, 5, "wrong", under=(PREFIX,))
    assert set(statuses) <= {401, 404}
    assert models.calls == []
