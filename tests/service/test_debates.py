"""Starting, watching, steering and reading debates over HTTP."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from contend.debates.events import Event
from contend.debates.run import open_repository
from contend.service import page
from contend.service.app import create_app
from contend.service.client import DebateClient
from contend.service.options import ServiceOptions
from contend.service.summaries import DebateSummary
from tests.cli.support import debaters
from tests.debates.test_repository import damage
from tests.service.conftest import LOCAL
from tests.support.model_server import ModelServer, Reply

DEBATES = "/api/v1/debates"
QUESTION = "Should we split the monolith?"
ANN, BEN = {"name": "Ann", "model": "openai:m"}, {"name": "Ben", "model": "openai:m"}
QUICK = {"min_rounds": 1, "max_rounds": 2, "templates": False, "retry_wait": 0.01}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        yield running


def serve(client: tuple[str, int] = LOCAL, **changes: Any) -> TestClient:
    options = ServiceOptions(model="openai:m", **changes)
    return TestClient(create_app(options), base_url="http://127.0.0.1:8000", client=client)


@pytest.fixture
def client(models: ModelServer) -> Iterator[TestClient]:
    with serve() as running:
        yield running


def api(client: TestClient) -> DebateClient:
    return DebateClient(http=client)


def start(client: TestClient, **changes: Any) -> DebateSummary:
    question, settings = changes.pop("question", QUESTION), changes.pop("settings", {})
    return api(client).start(question, settings=QUICK | settings, **changes)


def events(client: TestClient, debate_id: str, **query: Any) -> list[Event]:
    """Watch until the stream ends."""
    return list(api(client).events(debate_id, **query))


def watch_until(client: TestClient, debate_id: str, name: str) -> list[Event]:
    """Poll the stored events until one has this name."""
    while True:
        seen = events(client, debate_id, follow=False)
        if any(event["event"] == name for event in seen):
            return seen


def wait_until_not_here(client: TestClient, debate_id: str) -> None:
    while api(client).get(debate_id).here:
        pass


def test_a_debate_is_started_watched_and_read(client: TestClient) -> None:
    started = start(client)
    assert started.status == "running"
    seen = events(client, started.id)
    names = [event["event"] for event in seen]
    assert (names[0], names[-1]) == ("debate_start", "complete")
    assert [event["seq"] for event in seen] == sorted({event["seq"] for event in seen})
    chunk = next(event for event in seen if event["event"] == "proposer_chunk")
    assert {"model", "role", "tokens_so_far"} <= chunk["metadata"].keys()

    read = api(client).get(started.id)
    assert (read.status, read.record["status"]) == ("done", "done")
    assert read.record["final_answer"] == seen[-1]["content"]
    assert read.html["answer"].startswith("<h4>Answer</h4>")
    assert set(read.html["turns"]) == {turn["id"] for turn in read.record["turns"]}


def test_a_returning_viewer_gets_every_event_exactly_once(client: TestClient) -> None:
    debate = start(client).id
    whole = events(client, debate)
    for at in [*range(0, len(whole), 3), len(whole) - 1]:
        last = whole[at]["seq"]
        assert events(client, debate, after=last) == whole[at + 1 :]
        with_query = client.get(f"{DEBATES}/{debate}/events", params={"after": last})
        ids = re.findall(r"^id: (\d+)$", with_query.text, re.MULTILINE)
        assert ids == [str(event["seq"]) for event in whole[at + 1 :]]


def test_stream_messages_contain_event_name_and_number(client: TestClient) -> None:
    debate = start(client).id
    events(client, debate)
    streamed = client.get(f"{DEBATES}/{debate}/events")
    assert streamed.headers["content-type"].startswith("text/event-stream")
    first = streamed.text.split("\n\n")[1]
    assert first.startswith("id: 1\nevent: debate_start\ndata: {")


def test_events_include_html_on_request(client: TestClient, models: ModelServer) -> None:
    go_on = threading.Event()

    def formatted(role: str, number: int, reply: Reply) -> Reply:
        if role == "skeptic":
            go_on.wait(30)
        return Reply("# Plan\n\n- <b>one</b>\n- two\n") if role == "proposer" else reply

    models.script = debaters(formatted)
    debate = start(client).id
    watch_until(client, debate, "seat_complete")
    for query in ({"follow": False}, {"follow": False, "chunks": "open"}, {}):
        if not query:
            go_on.set()
        seen = events(client, debate, html=True, **query)
        whole = next(event for event in seen if event["event"] == "seat_complete")
        assert "<h4>Plan</h4>" in whole["metadata"]["html"]
        assert "<b>" not in whole["metadata"]["html"]


def test_chunks_of_finished_turns_can_be_left_out(client: TestClient) -> None:
    debate = start(client).id
    whole = events(client, debate)
    short = events(client, debate, chunks="open")
    assert short == [event for event in whole if not event["event"].endswith("_chunk")]
    assert len(short) < len(whole)


def test_debates_are_listed_searched_and_paged(client: TestClient) -> None:
    ids = [start(client, question=f"Why is number {n} odd?").id for n in range(3)]
    for each in ids:
        events(client, each)
    listed = api(client).list()
    assert [each.id for each in listed.debates] == ids[::-1]
    assert listed.next is None
    first = api(client).list(limit=2)
    second = api(client).list(limit=2, cursor=first.next)
    assert [each.id for each in first.debates + second.debates] == ids[::-1]
    assert [each.id for each in api(client).list(search="NUMBER 1").debates] == [ids[1]]
    assert api(client).list(search="100%_").debates == []
    assert api(client).list(status="failed").debates == []
    assert len(api(client).list(status="done", limit=1).debates) == 1


@pytest.fixture
def either_client(database: str, models: ModelServer) -> Iterator[TestClient]:
    with serve() as running:
        yield running


def test_a_damaged_debate_is_reported_in_the_list(either_client: TestClient) -> None:
    ids = [start(either_client).id for _ in range(3)]
    for each in ids:
        events(either_client, each)
    with closing(open_repository()) as records:
        damage(records, "state", "[]", ids[1])
    first = api(either_client).list(limit=2)
    assert ([each.id for each in first.debates], first.damaged) == ([ids[2]], [ids[1]])
    second = api(either_client).list(limit=2, cursor=first.next)
    assert ([each.id for each in second.debates], second.damaged) == ([ids[0]], [])
    assert second.next is None


@pytest.mark.parametrize("name", ["search", "status", "protocol", "cursor"])
def test_special_characters_do_not_break_the_list(either_client: TestClient, name: str) -> None:
    for value in ("\x00", "\ufffe", "'", "%", "~", "x~\x00"):
        assert either_client.get(DEBATES, params={name: value}).status_code in (200, 422)


def test_a_debate_is_rated_and_exported(client: TestClient) -> None:
    debate = start(client).id
    events(client, debate)
    rated = api(client).rate(debate, 7)
    assert (rated.user_rating, rated.quality_score) == (7, 7)
    exported = client.get(f"{DEBATES}/{debate}/export", params={"format": "md"})
    assert QUESTION in exported.text
    assert "attachment" in exported.headers["content-disposition"]
    assert client.get(f"{DEBATES}/{debate}/export", params={"format": "exe"}).status_code == 422


def test_a_stored_rating_is_sent_to_langsmith(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "contend.service.debates.send_rating", lambda debate, rating: sent.append((debate, rating))
    )
    debate = start(client).id
    events(client, debate)
    assert api(client).rate(debate, 7).user_rating == 7
    assert sent == [(debate, 7)]


def test_deletes_a_debate_with_its_events_but_not_while_running(
    client: TestClient, models: ModelServer
) -> None:
    go_on = threading.Event()

    def waits(role: str, number: int, reply: Reply) -> Reply:
        go_on.wait(30)
        return reply

    models.script = debaters(waits)
    debate = start(client).id
    models.wait_for_calls(1)
    assert client.delete(f"{DEBATES}/{debate}").status_code == 409
    go_on.set()
    events(client, debate)
    wait_until_not_here(client, debate)
    assert client.delete(f"{DEBATES}/{debate}").status_code == 204
    assert client.get(f"{DEBATES}/{debate}/events").status_code == 404
    assert client.delete(f"{DEBATES}/{debate}").status_code == 404


def test_documents_are_uploaded_with_the_question(client: TestClient) -> None:
    described = {"question": QUESTION, "settings": QUICK | {"embedding_model": "openai:m"}}
    files = [("documents", ("../../notes.txt", b"The night shift costs 40,000 a year."))]
    started = client.post(DEBATES, data={"debate": json.dumps(described)}, files=files)
    assert started.status_code == 201, started.text
    events(client, started.json()["id"])
    record = api(client).get(started.json()["id"]).record
    assert [each["name"] for each in record["documents"]] == ["notes.txt"]


def test_parallel_starts_with_one_id_run_once(models: ModelServer) -> None:
    debate = str(uuid4())
    body = {"question": QUESTION, "settings": QUICK, "id": debate}
    with serve(max_running=50, max_running_per_client=50) as client:

        def begin(_: int) -> int:
            return client.post(DEBATES, json=body).status_code

        with ThreadPoolExecutor(50) as pool:
            answers = sorted(pool.map(begin, range(50)))
        assert answers == [201] + [409] * 49
        names = [event["event"] for event in events(client, debate)]
    assert (names.count("debate_start"), names.count("complete")) == (1, 1)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"question": ""}, "question"),
        ({"question": QUESTION, "protocol": "forun"}, "Did you mean 'forum'"),
        ({"question": QUESTION, "settings": {"max_round": 3}}, "Did you mean 'max_rounds'"),
        ({"question": QUESTION, "settings": {"max_rounds": 99}}, "between 1 and 50, not 99."),
        ({"question": QUESTION, "settings": {"max_rounds": "many"}}, "max_rounds must be"),
        ({"question": QUESTION, "settings": {"max_rounds": True}}, "max_rounds must be"),
        ({"question": QUESTION, "colour": "red"}, "colour"),
        ({"question": 7}, "question"),
        ({"question": QUESTION, "id": "../../etc/passwd"}, "id"),
        ({"question": QUESTION, "outcomes": ["yes", "no"]}, "Only a forecast"),
        ({"question": QUESTION, "protocol": "forecast"}, "needs outcomes"),
        (
            {"question": QUESTION, "protocol": "moderated", "settings": {"output_dir": "/srv/x"}},
            "operator",
        ),
        (
            {
                "question": QUESTION,
                "protocol": "forum",
                "settings": {"seats": [{**ANN, "docs": ["/etc/hosts"]}, BEN]},
            },
            "upload",
        ),
    ],
)
def test_an_invalid_start_is_refused_without_a_call(
    client: TestClient, models: ModelServer, body: dict[str, Any], problem: str
) -> None:
    answer = client.post(DEBATES, json=body)
    assert answer.status_code == 422, answer.text
    assert problem in answer.json()["detail"] + " ".join(answer.json()["problems"])
    assert models.calls == []
    assert api(client).list().debates == []


def test_only_models_that_the_operator_allows_can_be_chosen(models: ModelServer) -> None:
    with serve(allowed_models=("ollama:*",)) as client:
        refused = client.post(DEBATES, json={"question": QUESTION, "model": "openai:gpt-9"})
        assert refused.status_code == 422
        assert "does not allow the model openai:gpt-9" in refused.json()["detail"]
        body = {"question": QUESTION, "settings": {"embedding_model": "openai:large"}}
        assert "openai:large" in client.post(DEBATES, json=body).json()["detail"]
        start(client, model="openai:m")


@pytest.mark.parametrize("given", ["-1", "x", "1e3", "99999999999999999999", "½", "1 2"])
def test_a_malformed_event_id_is_refused(client: TestClient, given: str) -> None:
    debate = start(client).id
    url = f"{DEBATES}/{debate}/events"
    answer = client.get(url, headers={b"Last-Event-ID": given.encode("utf-8")})
    assert answer.status_code == 422


def test_unknown_debates_are_not_found(client: TestClient) -> None:
    for method, path in [
        ("GET", ""),
        ("GET", "/events"),
        ("GET", "/export"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/finish"),
    ]:
        answer = client.request(method, f"{DEBATES}/{uuid4()}{path}")
        assert answer.status_code == 404, path


def test_refuses_requests_from_other_sites(client: TestClient) -> None:
    body = {"question": QUESTION, "settings": QUICK}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
    ):
        assert client.post(DEBATES, json=body, headers=headers).status_code == 403
    assert client.get(DEBATES, headers={"Host": "evil.example"}).status_code == 421
    own = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert client.post(DEBATES, json=body, headers=own).status_code == 201


@pytest.mark.parametrize("path", ["%0A", "%0D", "%00", "%7F"])
def test_control_characters_in_a_path_bypass_no_check(client: TestClient, path: str) -> None:
    foreign = {"Host": "evil.example", "Sec-Fetch-Site": "cross-site"}
    for method in ("GET", "POST"):
        answer = client.request(method, f"{DEBATES}{path}", headers=foreign)
        assert answer.status_code == 422
    strange = client.post(DEBATES, json={"question": QUESTION}, headers={"Origin": "http://["})
    assert strange.status_code == 403


@pytest.mark.parametrize(
    ("protocol", "settings"),
    [
        ("moderated", {"outputDir": "/srv/x"}),
        ("moderated", {"OUTPUT_DIR": "/srv/x"}),
        ("forum", {"Seats": [{**ANN, "docs": ["/etc/hosts"]}, BEN]}),
        ("forum", {"seats": json.dumps([{**ANN, "images": ["/etc/hosts"]}, BEN])}),
        ("refine", {"seats": json.dumps([{**ANN, "docs": ["/etc/hosts"]}, BEN])}),
    ],
)
def test_callers_cannot_access_files_of_the_service(
    client: TestClient, protocol: str, settings: dict[str, Any]
) -> None:
    body = {"question": QUESTION, "protocol": protocol, "settings": settings}
    answer = client.post(DEBATES, json=body)
    assert answer.status_code == 422
    assert any(word in answer.json()["detail"] for word in ("operator", "upload"))
    assert api(client).list().debates == []


def test_every_api_request_needs_the_token_on_a_network(
    models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", "token-0123456789")
    with serve(open_to_network=True) as client:
        for path in (DEBATES, "/api/v1/models", "/api/v1/protocols", "/api/v1/scoreboard"):
            assert client.get(path).status_code == 401
            allowed = client.get(path, headers={"Authorization": "Bearer token-0123456789"})
            assert allowed.status_code == 200
        assert client.get("/").status_code == 200


def test_other_machines_always_need_the_token(
    models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", "token-0123456789")
    with serve(client=("192.0.2.7", 50000)) as client:
        assert client.get(DEBATES).status_code == 401
    with serve(client=("::1", 50000)) as client:
        assert client.get(DEBATES).status_code == 200


def test_the_page_loads_no_foreign_resources(client: TestClient) -> None:
    shown = client.get("/")
    assert shown.status_code == client.head("/").status_code == 200
    assert "default-src 'self'" in shown.headers["content-security-policy"]
    assert client.get("/static/../app.py").status_code == 404
    for path in ("/docs", "/redoc"):  # FastAPI's own load scripts from other sites
        assert client.get(path).status_code == 404


def test_the_compressed_page_is_below_100_kb(client: TestClient) -> None:
    web = Path(page.__file__).parent / "web"
    sizes = []
    for file in (*web.glob("*.js"), *web.glob("*.css")):
        with client.stream("GET", f"/static/{file.name}") as answer:
            assert answer.headers.get("content-encoding", "gzip") == "gzip"
            sizes.append(sum(len(chunk) for chunk in answer.iter_raw()))
    assert len(sizes) > 10
    assert sum(sizes) < 100_000


def test_protocols_and_models_are_described(client: TestClient) -> None:
    protocols = client.get("/api/v1/protocols").json()["protocols"]
    assert {each["name"] for each in protocols} == {
        *("adversarial", "forum", "refine", "moderated", "forecast")
    }
    assert all(each["use_when"] and each["schema"]["properties"] for each in protocols)
    found = client.get("/api/v1/models").json()
    assert found["default"] == "openai:m"


async def test_main_events_are_recreated_for_a_debate_without_events(client: TestClient) -> None:
    debate = start(client).id
    whole = events(client, debate)
    wait_until_not_here(client, debate)
    records = client.app.state.runs.records  # type: ignore[attr-defined]
    with records._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM debate_events")
    seen = await asyncio.to_thread(events, client, debate)
    turns = [e["metadata"]["turn"] for e in whole if e["event"] == "seat_complete"]
    assert [e["metadata"]["turn"] for e in seen if e["event"] == "seat_complete"] == turns
    assert seen[-1]["content"] == whole[-1]["content"]


def test_history_lists_the_steps_and_turns(client: TestClient) -> None:
    debate = start(client)
    events(client, debate.id)
    steps = client.get(f"{DEBATES}/{debate.id}/history").json()
    record = client.get(f"{DEBATES}/{debate.id}").json()["record"]
    assert [step["nodes"] for step in steps[:4]] == [
        ["retrieve"],
        ["propose"],
        ["critique"],
        ["judge_continue"],
    ]
    assert [turn for step in steps for turn in step["turns"]] == [t["id"] for t in record["turns"]]
    assert client.get(f"{DEBATES}/{uuid4()}/history").status_code == 404
