"""Which runs of a debate LangSmith is sent, and under which run it finds them."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from langsmith.client import Client

from contend.models.trace_client import OF_DEBATE, TITLE, TraceClient

Sent = dict[str, Any]
SERVER = {"langgraph_api_url": "http://127.0.0.1:2024", "max_rounds": 2}
NODE = SERVER | {
    "langgraph_node": "propose",
    "langgraph_path": ("pull", "propose"),
}
TASK = {"langgraph_node": "say", "langgraph_path": ("push", (), 0, True)}
TASK |= {"langgraph_checkpoint_ns": "propose:1|say:2"}
CALL = TASK | {"protocol": "forum", TITLE: "Ann, round 1"}


class Traced:
    """Starts runs below each other, as langchain's tracer does."""

    def __init__(self) -> None:
        self.client = TraceClient(api_url="http://127.0.0.1:1", auto_batch_tracing=False)
        self.begun: dict[UUID, Sent] = {}

    def begin(self, name: str, kind: str, about: Sent, above: UUID | None = None) -> UUID:
        run = uuid4()
        order = f"{self.begun[above]['dotted_order']}." if above else ""
        place = {"parent_run_id": above, "dotted_order": f"{order}20260101T000000000000Z{run}"}
        self.begun[run] = place | {"name": name, "run_type": kind, "extra": {"metadata": about}}
        more: Sent = {"id": run, "tags": ["seq:step:1", "mine"], "events": [{"name": "start"}]}
        self.client.create_run(inputs={}, **more, **self.begun[run])
        return run

    def end(self, run: UUID, error: str | None = None) -> None:
        ended: Sent = {"outputs": {"a": 1}, "events": [{"name": "end"}], "error": error}
        self.client.update_run(run, **ended, **self.begun[run])


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[UUID, Sent]:
    runs: dict[UUID, Sent] = {}

    def create(_: Client, name: str, __: Sent, run_type: str, **run: Any) -> None:
        runs[run["id"]] = {"name": name, "run_type": run_type, **run}

    def update(_: Client, run_id: UUID, **run: Any) -> None:
        runs[run_id] |= {"update": run}

    monkeypatch.setattr(Client, "create_run", create)
    monkeypatch.setattr(Client, "update_run", update)
    return runs


def test_a_call_is_right_below_its_node_and_has_its_title(sent: dict[UUID, Sent]) -> None:
    traced = Traced()
    about = SERVER | {"ls_integration": "langgraph", "thread_id": "d1"}
    graph = traced.begin("forum", "chain", about)
    node = traced.begin("propose", "chain", NODE, graph)
    task = traced.begin("say", "chain", TASK, node)
    form = traced.begin("RunnableSequence", "chain", TASK, task)
    call = traced.begin("ChatOpenAI", "llm", CALL, form)
    for each in (call, form, task, node, graph):
        traced.end(each)
    assert list(sent) == [graph, node, call]
    asked = sent[call]
    assert (asked["name"], asked["parent_run_id"]) == ("Ann, round 1", node)
    assert [each[-36:] for each in asked["dotted_order"].split(".")] == [
        *map(str, (graph, node, call))
    ]
    assert (asked["tags"], asked["events"]) == (["mine"], None)
    assert asked["extra"]["metadata"]["langgraph_node"] == "propose"
    update = asked["update"]
    assert (update["name"], update["dotted_order"]) == ("Ann, round 1", asked["dotted_order"])
    assert update["outputs"] == {OF_DEBATE: {"a": 1}}
    assert (update["events"], "extra" in update) == (None, False)
    assert sent[graph]["extra"]["metadata"] == about | {"debate_id": "d1"}
    assert sent[node]["extra"]["metadata"] == {"langgraph_node": "propose"}
    assert not traced.client._left_out


def test_a_pause_has_no_stack_trace(sent: dict[UUID, Sent]) -> None:
    traced = Traced()
    graph = traced.begin("forum", "chain", {"ls_integration": "langgraph"})
    node = traced.begin("propose", "chain", NODE, graph)
    traced.end(node, "GraphInterrupt((Interrupt(value={}),))Traceback:\n\n  File ...")
    assert sent[node]["update"]["error"] == "GraphInterrupt((Interrupt(value={}),))Traceback:"


def test_runs_before_the_first_node_show_nothing(sent: dict[UUID, Sent]) -> None:
    traced = Traced()
    graph = traced.begin("forecast", "chain", {"ls_integration": "langgraph"})
    start = traced.begin("__start__", "chain", {"langgraph_node": "__start__"}, graph)
    traced.begin("after_asking", "chain", {"langgraph_node": "__start__"}, start)
    assert list(sent) == [graph]


def test_the_runs_of_other_programs_are_sent_as_they_are(sent: dict[UUID, Sent]) -> None:
    traced = Traced()
    graph = traced.begin("agent", "chain", {"ls_integration": "langgraph"})
    start = traced.begin("__start__", "chain", {"langgraph_node": "__start__"}, graph)
    step = traced.begin("RunnableSequence", "chain", {"langgraph_node": "agent"}, graph)
    traced.end(step)
    assert list(sent) == [graph, start, step]
    assert sent[step]["events"] == [{"name": "start"}]
    assert sent[step]["update"]["events"] == [{"name": "end"}]
