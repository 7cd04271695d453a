"""Driving `langgraph dev` with langgraph-sdk, as Studio does."""

import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from contend.retrieval.documents import load_documents, save_corpus
from tests.dev.debating import SETTINGS, begin, resume, texts
from tests.dev.dev_server import REPOSITORY, DevServer
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow


async def _assistant_of(client: LangGraphClient, graph: str) -> Any:
    """Return the graph's own assistant, not one of a preset."""
    own = {"created_by": "system"}
    (found,) = await client.assistants.search(graph_id=graph, metadata=own)
    return found


async def test_settings_appear_as_a_form(server: DevServer) -> None:
    async with server.client() as client:
        assistant = await _assistant_of(client, "adversarial")
        assert "Skeptic attacks" in (assistant["description"] or "")
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    form: Any = schemas["context_schema"]
    fields = form["properties"]
    assert fields["pause"]["enum"] == ["never", "each_round", "before_synthesis"]
    assert fields["min_rounds"]["default"] == 3
    assert fields["max_rounds"]["default"] == 5
    assert fields["early_stop_score"]["default"] == 8
    assert fields["skeptic_temperature"]["default"] == 0.8
    assert all(field["description"] for field in fields.values())
    assert form["additionalProperties"] is False


async def test_the_root_path_serves_the_web_page(server: DevServer) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        answered = await http.get("/")
        assert answered.status_code == 200
        assert answered.text == (REPOSITORY / "service/web/index.html").read_text("utf-8")
        for linked in re.findall(r'(?:src|href)="(/static/[^"]+)"', answered.text):
            assert (await http.get(linked)).status_code == 200, linked
        assert (await http.get("/info")).json()["version"]  # and the server's own API beside it


async def test_graphs_are_not_served_over_a2a(server: DevServer) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.post("/a2a/adversarial", json={})).status_code == 404


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://smith.langchain.com", True),
        ("https://eu.smith.langchain.com", True),
        ("http://localhost:3000", True),
        ("http://127.0.0.1:8080", True),
        ("https://evil.example", False),
        ("https://smith.langchain.com.evil.example", False),
        ("http://localhost.evil.example", False),
    ],
)
async def test_cors_allows_only_studio_and_local_pages(
    server: DevServer, origin: str, allowed: bool
) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    async with httpx.AsyncClient() as client:
        answered = await client.options(f"{server.url}/threads", headers=asked)
    assert ("access-control-allow-origin" in answered.headers) is allowed


async def test_a_debate_streams_pauses_and_uses_comments(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        parts = [
            part
            async for part in client.runs.stream(
                thread,
                "adversarial",
                input={"question": "Should we split the monolith?"},
                context=SETTINGS,
                stream_mode=["custom", "values", "updates"],
            )
        ]
        assert {part.event for part in parts} >= {"custom", "values", "updates"}
        events = [part.data["event"] for part in parts if part.event == "custom"]
        assert {"rag_complete", "proposer_chunk", "skeptic_chunk", "seat_complete"} <= set(events)
        (asked,) = (await client.threads.get_state(thread))["tasks"][0]["interrupts"]
        assert asked["value"]["round"] == 1
        assert asked["value"]["points"][0]["text"] == "It costs too much."

        heard = await resume(client, thread, {"say": "Mind the cost."})
        assert heard["__interrupt__"][0]["value"]["stop"]["reason"] == "max_rounds"
        assert "Mind the cost." in models.calls[-2].request.text
        done = await resume(client, thread, "Keep it short.")
        assert "Keep it short." in models.calls[-2].request.text

        assert done["final_answer"] == done["trace"]["final_answer"] == texts(done)[-2]
        assert done["auto_score"]["score"] == 7
        assert "migration-plan" in done["trace"]["templates_used"]
        assert done["trace"]["degraded"] == []
        said_by = [turn["role"] for turn in done["turns"]]
        a_round = ["proposer", "skeptic", "user"]
        assert said_by == [*a_round, *a_round, "synthesizer", "judge"]
        assert (await client.threads.get(thread))["status"] == "idle"


async def test_history_is_readable_and_an_earlier_step_can_be_forked(server: DevServer) -> None:
    async with server.client() as client:
        thread = await begin(client)
        first = await resume(client, thread, "")
        history = await client.threads.get_history(thread, limit=50)
        steps = [step["next"][0] for step in reversed(history) if step["next"]]
        opening = ["__start__", "retrieve"]
        assert steps == [*opening, *["propose", "critique", "judge_continue"] * 2]

        earlier = next(step for step in history if step["next"] == ["propose"])
        second = await client.runs.wait(
            thread, "adversarial", input=None, checkpoint=earlier["checkpoint"], context=SETTINGS
        )
        assert texts(second)[:2] == texts(first)[:2]
        assert not set(texts(second)[2:]) & set(texts(first)[2:])
        assert len(texts(second)) == len(texts(first)) == 4

        branches: list[Any] = [s["values"] for s in await client.threads.get_history(thread)]
        grown = {tuple(texts(values)) for values in branches if len(values["turns"]) == 4}
        assert grown == {tuple(texts(first)), tuple(texts(second))}
        done = await resume(client, thread, "")
        assert texts(done)[:4] == texts(second)


@pytest.mark.parametrize(
    ("question", "settings", "error", "says"),
    [
        (" \n ", {}, "BadInput", "The question is empty."),
        ("Why?", {"min_rounds": 9}, "ValidationError", "min_rounds (9) is larger than max_rounds"),
        ("Why?", {"judge_model": "opnai:x"}, "BadInput", "Did you mean 'openai:x'?"),
        ("Why?", {"proposer_model": "openai:broken"}, "ModelFailed", "This account is closed."),
    ],
)
async def test_an_error_states_its_reason(
    server: DevServer, question: str, settings: dict[str, Any], error: str, says: str
) -> None:
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        answer = await client.runs.wait(
            thread,
            "adversarial",
            input={"question": question},
            context=SETTINGS | settings,
            raise_error=False,
        )
    assert isinstance(answer, dict)
    assert answer["__error__"]["error"] == error
    assert says in answer["__error__"]["message"]


async def test_a_paused_debate_survives_a_killed_server(
    models: ModelServer, tmp_path: Path, database: str
) -> None:
    server = DevServer(tmp_path, models, os.environ.get("DATABASE_URL", "")).start()
    try:
        async with server.client() as client:
            thread = await begin(client)
            before = (await client.threads.get_state(thread))["values"]
        server.kill()
        calls = len(models.calls)
        server.start()
        async with server.client() as client:
            # The list of threads may have lost it; named again, it finds its checkpoints.
            await client.threads.create(
                thread_id=thread, graph_id="adversarial", if_exists="do_nothing"
            )
            assert (await client.threads.get_state(thread))["values"] == before
            await resume(client, thread, {"say": "Go on."})
            done = await resume(client, thread, "")
    finally:
        server.stop()
    assert "BlockingError" not in server.log.read_text()
    assert (tmp_path / "contend" / "contend.db").exists() == (database == "sqlite")
    assert texts(done)[:2] == texts(before)
    assert done["trace"]["total_rounds"] == 2
    assert len(models.calls) - calls == 4  # the second round, the answer and its rating


async def test_uses_stored_documents_and_refuses_others(
    server: DevServer, models: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "plan.txt").write_text("The monolith stays until the second team is hired.")
    loaded, _ = load_documents([tmp_path / "plan.txt"])
    save_corpus(loaded, server.home / "contend")
    document = loaded[0].document.model_dump()
    given: dict[str, Any] = {"question": "Should we split it?", "documents": [document]}
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "adversarial", input=given, context=SETTINGS)
        assert "[plan:1]\nThe monolith stays until" in models.calls[-1].request.text
        for bad in ([{"id": 7}], [document | {"sha256": "0" * 64}]):
            calls = len(models.calls)
            refused = r"BadInput: .*documents.* (well-formed|missing or damaged)"
            with pytest.raises(Exception, match=refused):
                await client.runs.wait(
                    None, "adversarial", input=given | {"documents": bad}, context=SETTINGS
                )
            assert len(models.calls) == calls


async def test_accepts_a_document_as_text_but_not_as_a_path(
    server: DevServer, models: ModelServer
) -> None:
    plan = {"name": "hiring plan", "text": "The monolith stays until the third team is hired."}
    given: dict[str, Any] = {"question": "Should we split it?", "documents": [plan]}
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "adversarial", input=given, context=SETTINGS)
        assert "The monolith stays until the third team" in models.calls[-1].request.text
        first = (await client.threads.get_history(thread, limit=50))[-1]
        values: Any = (await client.threads.get_state(thread))["values"]
        (document,) = values["documents"]
        assert (document["name"], len(document["sha256"])) == ("hiring plan.md", 64)
        assert "third team" not in str(first)
        calls, path = len(models.calls), {"name": "plan.md", "path": "/etc/passwd"}
        with pytest.raises(Exception, match=r"BadInput: documents\.0"):
            await client.runs.wait(None, "adversarial", input=given | {"documents": [path]})
        assert len(models.calls) == calls


async def test_refuses_file_paths_of_seats_and_allows_their_tools(
    server: DevServer, models: ModelServer
) -> None:
    def seats(**own: Any) -> dict[str, Any]:
        ann = {"name": "Ann", "model": "openai:proposer", **own}
        table = {"seats": [ann, {"name": "Ben", "model": "openai:skeptic"}]}
        return table | {"judge_model": "openai:judge", "enable_debate": False, "templates": False}

    question = {"question": "How much is it?"}
    async with server.client() as client:
        for own in ({"docs": ["plan.txt"]}, {"images": ["/etc/chart.png"]}):
            calls = len(models.calls)
            with pytest.raises(Exception, match=r"BadInput: .* a server cannot read its cli"):
                await client.runs.wait(None, "refine", input=question, context=seats(**own))
            assert len(models.calls) == calls
        done = await client.runs.wait(
            None, "refine", input=question, context=seats(tools=["calculate"])
        )
    assert isinstance(done, dict)
    (use,) = done["turns"][0]["tool_calls"]
    assert (use["arguments"], use["result"]) == ({"expression": "6 * 7"}, "42")


async def test_a_forum_runs_until_one_seat_is_left(server: DevServer, models: ModelServer) -> None:
    laid = {"Ann": "openai:proposer", "Ben": "ollama:synthesizer"}
    chosen: dict[str, Any] = {
        "seats": [{"name": name, "model": model} for name, model in laid.items()],
        "judge_mode": "self_convergence",
        "judge_model": "openai:judge",
        "verify_concessions": False,
        "templates": False,
    }
    question = {"question": "Should we split the monolith?"}
    async with server.client() as client:
        assistant = await _assistant_of(client, "forum")
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
        fields: Any = (schemas["context_schema"] or {})["properties"]
        assert fields["judge_mode"]["enum"] == [
            "external_judge",
            "self_convergence",
            "display_only",
        ]
        assert "custom" in fields["debate_format"]["enum"]
        assert all(field["description"] for field in fields.values())

        calls, alone = len(models.calls), chosen | {"seats": chosen["seats"][:1]}
        with pytest.raises(Exception, match="needs 2 to 8 seats, not 1"):
            await client.runs.wait(None, "forum", input=question, context=alone)
        assert len(models.calls) == calls

        thread = (await client.threads.create())["thread_id"]
        parts = [
            part
            async for part in client.runs.stream(
                thread, "forum", input=question, context=chosen, stream_mode=["custom"]
            )
        ]
        done: Any = (await client.threads.get_state(thread))["values"]
    told = [part.data for part in parts if part.event == "custom"]
    (left,) = [event for event in told if event["event"] == "model_eliminated"]
    assert (left["metadata"]["seat"], left["metadata"]["convinced_by"]) == ("ben", "ann")
    assert {"seat_chunk", "convergence_status", "synthesis_chunk"} <= {e["event"] for e in told}
    trace = done["trace"]
    assert (trace["stop_reason"], trace["winner"]) == ("one_left", "ann")
    assert [turn["seat"] for turn in done["turns"]] == [
        *["ann", "ben"] * 3,  # two rounds, and whether they concede
        *["ann", "judge"],
    ]
