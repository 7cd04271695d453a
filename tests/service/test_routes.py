"""The five contract endpoints and their errors."""

import gc
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi import Request as HttpRequest
from starlette.testclient import TestClient

from contend.debates.prepare import PreparedDebate, write_debate
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository, UnfinishedTask
from contend.debates.run import open_repository
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.forecast_contract.result import DebateResult
from contend.models.limits import Outage
from contend.models.seats import SeatPlan
from contend.service import routes
from contend.service.app import create_app
from contend.service.auth import require_token
from contend.service.errors import Refused
from contend.service.examples import example
from contend.service.options import ServiceOptions
from contend.service.routes import ConsensusAnswer, RoleAnswer, RoundAnswer
from contend.service.runs import Runs
from tests.graph.test_forecast_contract import REFUSED, REQUEST
from tests.service.conftest import TOKEN, service
from tests.support.forecasting import QUESTION, forecast_settings, forecasters, request
from tests.support.model_server import ModelServer, Reply, Request, always, openai_error
from tests.support.scripted import scripted_settings

PREFIX = "/api/v1/reasoning/debate"
NOBODY = "00000000-0000-4000-8000-000000000000"


def asked(task: str = "task-7", **config: Any) -> dict[str, Any]:
    return request() | {"task_id": task, "config": config}


class TestResult:
    def test_returns_a_result_and_its_rounds_roles_and_consensus(
        self, database: str, client: TestClient, models: ModelServer
    ) -> None:
        answered = client.post(PREFIX, json=asked())
        assert answered.status_code == 200
        result = DebateResult.model_validate_json(answered.content)
        assert result.probability_distribution[0].probability == pytest.approx(0.66)
        assert result.task_id == "task-7"
        assert len(models.calls) == 31
        at = f"{PREFIX}/{result.debate_id}"
        assert client.get(at).json() == answered.json()
        held = client.get(f"{at}/round/2").json()
        assert held == {"round": answered.json()["debate_log"]["rounds"][1]}
        RoundAnswer.model_validate(held, strict=False)
        spoken = client.get(f"{at}/role/historian").json()["arguments"]
        assert [each["role"] for each in spoken] == ["historian"] * 3
        assert [each["argument"] for each in spoken] == [
            f"The historian argues in round {number}." for number in (1, 2, 3)
        ]
        assert client.get(f"{at}/consensus").json() == {
            part: answered.json()[part]
            for part in ("consensus_score", "probability_distribution", "disagreement_map")
        }
        assert len(models.calls) == 31

    def test_uses_the_configuration_of_the_request(
        self, client: TestClient, models: ModelServer
    ) -> None:
        wanted = asked(rounds=1, roles=["pessimist", "judge"], judge_weight=1.0)
        result = client.post(PREFIX, json=wanted).json()
        assert len(models.calls) == 5
        assert result["probability_distribution"][0]["probability"] == pytest.approx(0.7)
        at = f"{PREFIX}/{result['debate_id']}"
        assert client.get(f"{at}/role/optimist").status_code == 404
        assert client.get(f"{at}/round/2").status_code == 404

    def test_service_settings_apply_unless_the_request_sets_them(
        self, models: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
        with service(judge_weight="0.0") as client:
            result = client.post(PREFIX, json=asked(rounds=1)).json()
            assert result["probability_distribution"][0]["probability"] == pytest.approx(0.52)
            result = client.post(PREFIX, json=asked(rounds=1, judge_weight=1.0)).json()
            assert result["probability_distribution"][0]["probability"] == pytest.approx(0.7)

    def test_a_failing_role_gives_a_partial_result(
        self, client: TestClient, models: ModelServer
    ) -> None:
        calm = forecasters()
        models.script = lambda served: (
            openai_error(401, "no")
            if "You are the Optimist" in served.instructions
            else calm(served)
        )
        result = client.post(PREFIX, json=asked()).json()
        assert result["report"]["partial"]
        assert {gap["role"] for gap in result["report"]["gaps"]} == {"optimist"}

    def test_a_debate_over_its_time_limit_gives_a_partial_result(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def due(_settings: object, number: int, _part: object) -> float:
            return 2000 if number == 1 else 0

        monkeypatch.setenv("CONTEND_OVERALL_TIMEOUT", "4000")
        monkeypatch.setattr("contend.nodes.forecast.schedule.seconds_until_due", due)
        answered = client.post(PREFIX, json=asked())
        assert answered.status_code == 200
        report = answered.json()["report"]
        assert report["partial"]
        assert any("overall_timeout is 4000 s" in gap["why"] for gap in report["gaps"])

    def test_a_failed_debate_is_reported_and_stored(
        self, database: str, client: TestClient, models: ModelServer
    ) -> None:
        models.script = lambda _: openai_error(401, "closed")
        answered = client.post(PREFIX, json=asked())
        assert answered.status_code == 502
        body = answered.json()
        assert (body["error"], body["status"]) == ("failed", "failed")
        assert "401: closed" in body["detail"]
        again = client.get(f"{PREFIX}/{body['debate_id']}")
        assert (again.status_code, again.json()) == (502, body)


def slowly(served: Request) -> Reply:
    """Delay the first round, so that requests arrive while the debate runs."""
    reply: Reply = forecasters()(served)
    return replace(reply, delay=1.5) if "Round 1 of" in served.user else reply


class TestAsync:
    def test_accepts_preferences_in_several_headers(
        self, client: TestClient, models: ModelServer
    ) -> None:
        models.script = slowly
        headers = [("Prefer", "wait=5"), ("Prefer", "respond-async")]
        headers.append(("Authorization", f"Bearer {TOKEN}"))
        answered = client.post(PREFIX, json=asked(rounds=1), headers=headers)
        assert answered.status_code == 202

    def test_respond_async_returns_an_id_immediately(
        self, client: TestClient, models: ModelServer
    ) -> None:
        models.script = slowly
        answered = client.post(PREFIX, json=asked(), headers={"Prefer": "wait=5, Respond-Async"})
        assert answered.status_code == 202
        body = answered.json()
        assert answered.headers["location"] == body["location"] == f"{PREFIX}/{body['debate_id']}"
        assert answered.headers["preference-applied"] == "respond-async"
        assert (body["task_id"], body["status"]) == ("task-7", "running")
        for part in ("", "/round/1", "/role/judge", "/consensus"):
            waiting = client.get(f"{body['location']}{part}")
            assert waiting.status_code == 409
            said = waiting.json()
            assert (said["error"], said["status"]) == ("no_result", "running")
        twice = client.post(PREFIX, json=asked())
        assert twice.status_code == 409
        assert twice.json()["error"] == "already_running"
        assert twice.json()["debate_id"] == body["debate_id"]
        result = wait_for(client, body["location"])
        assert result["debate_id"] == body["debate_id"]
        assert len(models.calls) == 31
        assert client.post(PREFIX, json=asked()).status_code == 200  # the task is free again

    def test_parallel_requests_for_one_task_run_once(
        self, database: str, client: TestClient, models: ModelServer
    ) -> None:
        models.script = slowly
        with ThreadPoolExecutor(8) as pool:
            posts = [pool.submit(client.post, PREFIX, json=asked(rounds=1)) for _ in range(8)]
            answers = [each.result() for each in posts]
        (served,) = [each.json()["debate_id"] for each in answers if each.status_code == 200]
        refused = [each.json() for each in answers if each.status_code != 200]
        told = [(each["error"], each["debate_id"]) for each in refused]
        assert told == [("already_running", served)] * 7
        assert len(models.calls) == 11

    def test_a_request_that_takes_too_long_returns_202(
        self, client: TestClient, models: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("contend.service.runs._GRACE", 0.5 - 120)
        models.script = slowly
        answered = client.post(PREFIX, json=asked(rounds=1))
        assert answered.status_code == 202
        assert "preference-applied" not in answered.headers
        assert wait_for(client, answered.json()["location"])["task_id"] == "task-7"

    def test_refuses_more_debates_than_the_limit(
        self, models: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
        models.script = slowly
        headers = {"Authorization": f"Bearer {TOKEN}", "Prefer": "respond-async"}
        options = ServiceOptions(model="openai:m", max_running=1)
        with TestClient(
            create_app(options), base_url="http://localhost", headers=headers
        ) as client:
            first = client.post(PREFIX, json=asked("one"))
            busy = client.post(PREFIX, json=asked("two"))
            assert (first.status_code, busy.status_code) == (202, 429)
            assert busy.headers["retry-after"] == "10"
            assert busy.json()["detail"].startswith("1 debate may run at once")
            wait_for(client, first.json()["location"])

    def test_a_repeated_idempotency_key_returns_the_first_result(
        self, database: str, client: TestClient, models: ModelServer
    ) -> None:
        key = {"Idempotency-Key": "bridge-1"}
        first = client.post(PREFIX, json=asked(rounds=1), headers=key)
        again = client.post(PREFIX, json=asked(rounds=1), headers=key)
        assert (first.status_code, again.json()) == (200, first.json())
        assert len(models.calls) == 11
        other = client.post(PREFIX, json=asked(rounds=2), headers=key)
        assert (other.status_code, other.json()["error"]) == (422, "key_reused")
        unlike = client.post(PREFIX, json=asked(rounds=1), headers={"Idempotency-Key": "bridge-2"})
        assert unlike.json()["debate_id"] != first.json()["debate_id"]

    def test_a_repeated_idempotency_key_waits_for_the_running_debate(
        self, client: TestClient, models: ModelServer
    ) -> None:
        models.script = slowly
        key = {"Idempotency-Key": "bridge-1"}
        begun = client.post(PREFIX, json=asked(rounds=1), headers=key | {"Prefer": "respond-async"})
        repeated = client.post(
            PREFIX, json=asked(rounds=1), headers=key | {"Prefer": "respond-async"}
        )
        assert (repeated.status_code, repeated.json()) == (202, begun.json())
        result = client.post(PREFIX, json=asked(rounds=1), headers=key)
        assert result.json()["debate_id"] == begun.json()["debate_id"]
        assert len(models.calls) == 11

    def test_returns_the_newest_result_of_a_task(self, database: str, client: TestClient) -> None:
        assert client.get(PREFIX, params={"task_id": "task-7"}).status_code == 404
        assert client.get(PREFIX, params={"task_id": "a\x00"}).status_code == 404
        assert client.get(PREFIX).status_code == 422
        for _ in range(2):
            newest = client.post(PREFIX, json=asked(rounds=1)).json()
        assert client.get(PREFIX, params={"task_id": "task-7"}).json() == newest

    def test_health_endpoints_report_the_state(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bare = {"Authorization": ""}
        assert client.get("/healthz", headers=bare).json() == {"status": "ok"}
        assert client.get("/readyz", headers=bare).json() == {"status": "ready"}
        with monkeypatch.context() as patched:
            patched.setattr(Repository, "debate_of", away)
            assert client.get("/readyz", headers=bare).status_code == 503
        stop(client)
        assert client.get("/readyz", headers=bare).json()["error"] == "stopping"
        assert client.get("/healthz", headers=bare).status_code == 200

    def test_readyz_reports_providers_that_are_down(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        since = datetime(2026, 11, 18, 6, tzinfo=UTC)
        outage = Outage("openai", since, since + timedelta(seconds=30))
        monkeypatch.setattr(routes, "current_outages", lambda: ([outage], False))
        ready = client.get("/readyz")
        assert ready.status_code == 200
        (down,) = ready.json()["providers_down"]
        assert down == {
            "provider": "openai",
            "since": "2026-11-18T06:00:00Z",
            "next_probe": "2026-11-18T06:00:30Z",
        }
        monkeypatch.setattr(routes, "current_outages", lambda: ([outage], True))
        unready = client.get("/readyz")
        assert (unready.status_code, unready.json()["error"]) == (503, "providers_down")

    def test_unreadable_replies_return_502(self, client: TestClient, models: ModelServer) -> None:
        models.script = always(Reply("Who knows."))
        answered = client.post(PREFIX, json=asked(rounds=1))
        assert (answered.status_code, answered.json()["error"]) == (502, "no_forecast")
        again = client.get(f"{PREFIX}/{answered.json()['debate_id']}")
        assert again.json() == answered.json()

    def test_a_restarted_service_resumes_interrupted_debates(
        self, database: str, client: TestClient, models: ModelServer
    ) -> None:
        models.script = slowly
        prefer = {"Prefer": "respond-async"}
        location = client.post(PREFIX, json=asked(), headers=prefer).json()["location"]
        stop(client)
        refused = client.post(PREFIX, json=asked("another"))
        assert (refused.status_code, refused.json()["error"]) == (503, "stopping")
        assert client.get(location).json()["status"] == "paused"
        assert len(models.calls) < 31
        with service() as restarted:
            assert restarted.post(PREFIX, json=asked()).json()["error"] == "already_running"
            assert wait_for(restarted, location)["report"]["gaps"] == []
        assert len(models.calls) == 31

    def test_stopping_before_a_debate_begins_pauses_it(
        self, client: TestClient, models: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def stopped_meanwhile(*_: object, **__: object) -> list[str]:
            await runs_of(client).stop()
            return []

        monkeypatch.setattr("contend.debates.prepare.preflight", stopped_meanwhile)
        assert client.post(PREFIX, json=asked()).json()["status"] == "paused"
        assert models.calls == []

    def test_does_not_resume_debates_started_elsewhere(
        self, client: TestClient, models: ModelServer
    ) -> None:
        with closing(open_repository()) as records:
            settings = forecast_settings()
            seating = SeatPlan(settings.build_seats(), "", "scripted:embed")
            given = DebateRequest.model_validate_json(json.dumps(asked()))
            debate = write_debate(records, PreparedDebate(QUESTION, settings, seating), given)
            records.save(records.acquire(debate.id), "paused", debate.as_state(), 1)
        with service() as restarted:
            assert restarted.get(f"{PREFIX}/{debate.id}").json()["status"] == "paused"
        assert models.calls == []

    def test_stopping_cancels_a_debate_that_does_not_pause_in_time(
        self, client: TestClient, models: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("contend.service.runs._SECONDS_TO_STOP", 0)
        models.script = slowly
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.post, PREFIX, json=asked())
            models.wait_for_calls(5)
            stop(client)
        assert waiting.result().json()["status"] == "paused"
        assert len(models.calls) == 5


def away(*_: object) -> None:
    raise DatabaseUnavailable("gone")


def stop(client: TestClient) -> None:
    """Stop the service as `contend serve` does before it waits for its callers."""
    assert client.portal
    client.portal.call(runs_of(client).stop)


def runs_of(client: TestClient) -> Runs:
    runs: Runs = cast("FastAPI", client.app).state.runs
    return runs


def wait_for(client: TestClient, location: str) -> Any:
    """Poll until there is a result."""
    for _ in range(600):
        answered = client.get(location)
        if answered.status_code == 200:
            return answered.json()
        assert answered.status_code == 409
        time.sleep(0.05)
    raise AssertionError("the debate does not end")


class TestToken:
    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            "Bearer \xff\xfe\xfd",
        ],
    )
    @pytest.mark.parametrize("method", ["POST", "GET"])
    def test_refuses_requests_without_a_valid_token(
        self, client: TestClient, models: ModelServer, header: str, method: str
    ) -> None:
        path = PREFIX if method == "POST" else f"{PREFIX}/{NOBODY}"
        given = {b"authorization": header.encode("latin-1")}
        refused = client.request(method, path, content=b"{", headers=given)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.json()["error"] == "unauthorized"
        assert models.calls == []

    def test_refuses_all_requests_if_no_token_is_set(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEND_SERVICE_TOKEN", "  ")
        for header in ("Bearer ", "Bearer   ", f"Bearer {TOKEN}"):
            refused = client.get(f"{PREFIX}/{NOBODY}", headers={"Authorization": header})
            assert refused.status_code == 401
            assert refused.json()["error"] == "no_token_set"

    async def test_accepts_a_token_that_is_not_valid_text(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = b"no-text-\xff\xfe"
        monkeypatch.setenv("CONTEND_SERVICE_TOKEN", os.fsdecode(token))
        await require_token(HttpRequest(_scope(b"Bearer " + token)))
        with pytest.raises(Refused, match="valid service token"):
            await require_token(HttpRequest(_scope(b"Bearer no-text-\xff")))


def _scope(authorization: bytes) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "headers": [(b"authorization", authorization)]}


class TestBadInput:
    @pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
    def test_refuses_invalid_requests(
        self, client: TestClient, models: ModelServer, body: Any
    ) -> None:
        refused = client.post(PREFIX, content=json.dumps(body))
        assert refused.status_code == 422
        assert refused.json()["problems"]
        assert models.calls == []

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b'"text"',
            b"\xff\xfe",
            json.dumps(REQUEST).replace("0.6", "NaN").encode(),
            json.dumps(REQUEST).replace("0.6", "Infinity").encode(),
            json.dumps(REQUEST).replace("0.6", "1e400").encode(),
            json.dumps(REQUEST).replace("the sound", "\\ud800").encode(),
            json.dumps(REQUEST).replace("the sound", "\\u0000").encode(),
            b"[" * 100_000,
        ],
    )
    def test_refuses_malformed_json(
        self, client: TestClient, models: ModelServer, body: bytes
    ) -> None:
        refused = client.post(PREFIX, content=body)
        assert refused.status_code == 422
        assert len(refused.content) < 2000
        assert models.calls == []

    def test_errors_do_not_echo_the_input(self, client: TestClient) -> None:
        canary = "canary" * 100
        outcomes = [{"id": canary, "label": canary}, canary, {canary: {canary: canary}}]
        body = request(outcomes=outcomes) | {canary: canary}
        refused = client.post(PREFIX, json=body)
        assert refused.status_code == 422
        assert canary[:50] not in refused.text
        assert len(refused.content) < 1000

    @pytest.mark.parametrize("chunked", [True, False])
    def test_refuses_a_request_that_is_too_large(
        self, client: TestClient, models: ModelServer, chunked: bool
    ) -> None:
        large = b'{"task_id": "' + b"x" * 300_000 + b'"}'
        body: Any = iter([large[:1000], large[1000:]]) if chunked else large
        refused = client.post(PREFIX, content=body)
        assert refused.status_code == 413
        assert models.calls == []

    def test_refuses_other_content_types(self, client: TestClient) -> None:
        refused = client.post(PREFIX, content=b"a=b", headers={"Content-Type": "text/plain"})
        assert refused.status_code == 415

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            (f"/{NOBODY}", 404),
            (f"/{NOBODY}/consensus", 404),
            (f"/{NOBODY}/round/1", 404),
            (f"/{NOBODY}/role/judge", 404),
            (f"/{NOBODY}/role/Prophet", 422),
            (f"/{NOBODY}/round/0", 422),
            (f"/{NOBODY}/round/11", 422),
            (f"/{NOBODY}/round/one", 422),
            (f"/{NOBODY}/round/{10**40}", 422),
            ("/0000", 422),
            ("/%00", 422),
            ("/..%2f..%2fetc", 404),
            (f"/{NOBODY}/verdict", 404),
        ],
    )
    def test_refuses_invalid_paths(self, client: TestClient, path: str, status: int) -> None:
        refused = client.get(f"{PREFIX}{path}")
        assert refused.status_code == status
        assert refused.json()["detail"]

    def test_a_debate_of_another_protocol_is_not_found(self, client: TestClient) -> None:
        settings = scripted_settings()
        with closing(open_repository()) as records:
            seating = SeatPlan(settings.build_seats(), "", "scripted:embed")
            debate = write_debate(records, PreparedDebate("Tabs?", settings, seating))
        assert client.get(f"{PREFIX}/{debate.id}").status_code == 404

    def test_refuses_a_question_too_long_for_the_models(
        self, client: TestClient, models: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEND_CONTEXT_TOKENS", "3000")
        long = asked() | request(task={"question": "word " * 1999 + "?"})
        refused = client.post(PREFIX, json=long)
        assert (refused.status_code, refused.json()["error"]) == (422, "too_long")
        assert refused.json()["detail"].endswith("window of 3,000 tokens. Shorten it.")
        assert models.calls == []

    def test_reports_unavailable_models(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY")
        refused = client.post(PREFIX, json=asked())
        assert (refused.status_code, refused.json()["error"]) == (503, "models_unavailable")
        assert refused.headers["retry-after"] == "10"
        assert "OPENAI_API_KEY is not set" in refused.json()["detail"]

    def test_reports_settings_that_became_invalid(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEND_RETRY_WAIT", "soon")
        refused = client.post(PREFIX, json=asked())
        assert (refused.status_code, refused.json()["error"]) == (503, "misconfigured")
        assert "retry_wait" in refused.json()["detail"].lower()


def unfinished(debate_id: str, *, elsewhere: bool = False) -> UnfinishedTask:
    return UnfinishedTask(cast("StoredDebate", SimpleNamespace(id=debate_id)), elsewhere)


class TestDebatesToResume:
    """Select the unfinished debates that a service resumes."""

    async def test_resumes_no_more_debates_than_may_run(self) -> None:
        many = [unfinished(str(number)) for number in range(3)]
        assert len(Runs(ServiceOptions(max_running=2))._debates_to_resume(many)) == 2

    async def test_debates_of_another_machine_are_resumed_later(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs, theirs = Runs(ServiceOptions()), unfinished("a", elsewhere=True)
        assert runs._debates_to_resume([theirs]) == []
        monkeypatch.setattr("contend.service.runs._HEAD_START", 0)
        assert runs._debates_to_resume([theirs]) == [theirs.debate]


def test_a_service_refuses_the_pause_setting() -> None:
    with pytest.raises(BadInput, match="nobody can answer"):
        ServiceOptions(assignments={"pause": "each_round"}).settings()


class TestErrors:
    """Internal errors are logged once, without secrets."""

    def test_an_internal_error_is_logged_and_returns_500(
        self,
        client: TestClient,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(Runs, "find", broken)
        answered = client.get(f"{PREFIX}/{NOBODY}")
        assert (answered.status_code, answered.json()["error"]) == (500, "error")
        (told,) = caplog.records
        assert "Traceback" in told.getMessage()
        assert "sk-canary" not in caplog.text + answered.text

    def test_a_damaged_debate_is_reported_and_others_are_served(
        self, database: str, client: TestClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, second = (client.post(PREFIX, json=asked(task, rounds=1)) for task in ("a", "b"))
        debate = second.json()["debate_id"]
        with closing(open_repository()) as records, records._engine.begin() as connection:
            broken = sa.text("UPDATE debates SET state = '[]' WHERE id = :id")
            connection.execute(broken, {"id": debate})
        answered = client.get(f"{PREFIX}/{debate}")
        assert answered.status_code == 500
        assert answered.json()["error"] == "damaged"
        assert answered.json()["debate_id"] == debate
        assert client.get(f"{PREFIX}/{first.json()['debate_id']}").json() == first.json()
        assert f"The record of debate {debate} is damaged" in caplog.text

    def test_an_internal_error_fails_the_debate(
        self,
        client: TestClient,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr("contend.debates.run._Run.go", broken)
        body = client.post(PREFIX, json=asked()).json()
        assert (body["error"], body["status"]) == ("failed", "failed")
        assert body["detail"].startswith("The debate failed: RuntimeError: broken")
        assert "sk-canary" not in body["detail"]
        with closing(open_repository()) as records:
            assert records.unfinished(timedelta(0)) == []
        gc.collect()  # asyncio tells of errors nobody looked at when their tasks are gone
        (told,) = caplog.records
        assert body["debate_id"] in told.getMessage()
        assert "sk-canary" not in caplog.text


async def broken(*_: object) -> None:
    raise RuntimeError(f"broken with {os.environ['OPENAI_API_KEY']}")


HEADERS = {
    "202": {"Location", "Preference-Applied"},
    "401": {"WWW-Authenticate"},
    "429": {"Retry-After"},
    "503": {"Retry-After"},
}


class TestDocumentation:
    def test_every_endpoint_has_examples_and_errors(self, client: TestClient) -> None:
        document = client.get("/openapi.json").json()
        paths = {path: each for path, each in document["paths"].items() if PREFIX in path}
        assert set(paths) == {
            PREFIX,
            f"{PREFIX}/{{debate_id}}",
            f"{PREFIX}/{{debate_id}}/round/{{round_number}}",
            f"{PREFIX}/{{debate_id}}/role/{{role_name}}",
            f"{PREFIX}/{{debate_id}}/consensus",
        }
        for path in paths.values():
            for operation in path.values():
                responses = operation["responses"]
                assert {"200", "401", "409", "422", "502", "503"} <= set(responses)
                for status, response in responses.items():
                    assert response["content"]["application/json"]["example"]
                    assert set(response.get("headers", ())) == HEADERS.get(status, set())
                for given in operation["parameters"]:
                    assert given.get("examples") or given["schema"]["examples"]
                assert operation["security"]
        body = document["paths"][PREFIX]["post"]["requestBody"]["content"]["application/json"]
        assert body["schema"] == {"$ref": "#/components/schemas/DebateRequest"}
        text = json.dumps(document)
        names = set(document["components"]["schemas"])
        for reference in text.split("#/components/schemas/")[1:]:
            assert reference.split('"')[0] in names

    def test_examples_match_their_models(self) -> None:
        DebateRequest.model_validate_json(json.dumps(example("request")))
        DebateResult.model_validate_json(json.dumps(example("result")))
        for name, model in (
            ("round", RoundAnswer),
            ("role", RoleAnswer),
            ("consensus", ConsensusAnswer),
        ):
            model.model_validate_json(json.dumps(example(name)))
