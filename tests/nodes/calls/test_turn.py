"""Turn ids are unique, and forms contain only text that can be stored."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from contend.graph.settings import AdversarialSettings
from contend.graph.values import Seat
from contend.models.providers.registry import open_models
from contend.models.replies.forecast import PrecedentsForm
from contend.nodes.calls.turn import extract_decision, fill_form, next_turn_id
from tests.support.model_server import ModelServer, Request, always
from tests.support.states import state, turn


@pytest.mark.parametrize(
    ("there", "given"),
    [
        ([], "r1.propose.a"),
        (["r1.propose.a"], "r1.propose.a.2"),
        (["r1.propose.a", "r1.propose.a.2"], "r1.propose.a.3"),
        # a seat whose name begins with another's
        (["r1.propose.ab"], "r1.propose.a"),
        (["r1.propose.a-2"], "r1.propose.a"),
        (["r0.propose.a", "r11.propose.a"], "r1.propose.a"),
    ],
)
def test_gives_each_turn_a_unique_id(there: list[str], given: str) -> None:
    debate = state(turns=[turn("propose", id=each) for each in there])
    assert next_turn_id(debate, "propose", "a") == given


async def test_viewers_see_that_a_decision_is_being_extracted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[dict[str, Any]] = []
    seat = Seat(id="skeptic", name="Skeptic", role="skeptic", model="ollama:m")
    room: Any = SimpleNamespace(
        control=None, execution_info=None, context=AdversarialSettings(), stream_writer=sent.append
    )
    spoken = turn("critique", text="I have my doubts.", seat="skeptic", role="skeptic")

    def answer(_: Request) -> str:
        assert [each["event"] for each in sent] == ["skeptic_chunk"]
        return json.dumps({"precedents": []})

    with ModelServer(answer, models=["m"]) as running:
        monkeypatch.setenv("OLLAMA_HOST", running.url)
        async with open_models():
            await extract_decision(state(), room, seat, spoken, PrecedentsForm, [])
    about = {name: sent[0]["metadata"][name] for name in ("deciding", "phase", "tokens_so_far")}
    assert about == {"deciding": True, "phase": "critique", "tokens_so_far": 5}
    assert len(running.calls) == 1


async def test_cleans_form_text_for_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ollama's client accepts lone surrogates without an error."""
    event = {"event": "a\ud800b", "date": "1998", "outcome": "o\x00", "relevance": ""}
    reply = json.dumps({"precedents": [event | {"similarity": 1}]})
    seat = Seat(id="a", name="A", role="historian", model="ollama:m")
    room: Any = SimpleNamespace(
        control=None,
        execution_info=None,
        context=AdversarialSettings(),
        stream_writer=lambda _: None,
    )
    with ModelServer(always(reply), models=["m"]) as running:
        monkeypatch.setenv("OLLAMA_HOST", running.url)
        async with open_models():
            asked: list[BaseMessage] = [HumanMessage("Fill this in.")]
            filled = await fill_form(state(), room, seat, asked, PrecedentsForm)
    assert filled["block"] is not None
    read = filled["block"]["precedents"][0]
    assert (read["event"], read["outcome"]) == ("ab", "o")
