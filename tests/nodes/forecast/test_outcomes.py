"""Forecasts of a plain question: outcomes are proposed and confirmed by a person."""

import json
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from contend.graph.errors import BadInput
from contend.nodes.forecast.outcomes import OutcomesAnswer
from tests.support.forecasting import OUTCOMES, QUESTION, forecast_settings, judging, panel
from tests.support.scripted import Cast, Played, Sent, play

PROPOSED = {"outcomes": OUTCOMES, "due": "2027-05-01"}
OTHERS = [{"id": "may", "label": "Before June"}, {"id": "later", "label": "Later or never"}]


def proposing(proposed: Any = PROPOSED) -> Cast:
    usual = judging()

    def say(sent: Sent) -> str:
        asked = sent.schema is not None and sent.schema.__name__ == "ProposedOutcomes"
        return json.dumps(proposed) if asked else usual(sent)

    return panel(judge=say)


async def ask(cast: Cast, saver: Any, given: Any = QUESTION) -> Played:
    settings = forecast_settings(max_rounds=1)
    return await play(cast, given, saver=saver, settings=settings)


async def test_outcomes_are_proposed_and_debated_after_confirmation() -> None:
    cast, saver = proposing(), InMemorySaver()
    asked = await ask(cast, saver)
    assert asked.path == ["find_outcomes"]
    assert asked.interrupts == [PROPOSED]
    assert len(cast.sent) == 1
    done = await play(cast, Command(resume="Yes"), saver=saver, settings=forecast_settings())
    assert done.path[:3] == ["confirm_outcomes", "retrieve", "propose"]
    context = done.state["request"]["prediction_context"]
    assert [each["id"] for each in context["outcomes"]] == ["yes", "no"]
    assert context["data_summary"]["timeframe"]["end"] == "2027-05-01"
    assert done.state["spans"][0].calls == 1


async def test_a_person_gives_other_outcomes() -> None:
    cast, saver = proposing(), InMemorySaver()
    await ask(cast, saver)
    done = await ask(cast, saver, Command(resume={"outcomes": OTHERS, "due": "2027-06-01"}))
    context = done.state["request"]["prediction_context"]
    assert [each["id"] for each in context["outcomes"]] == ["may", "later"]
    assert context["data_summary"]["timeframe"]["end"] == "2027-06-01"


@pytest.mark.parametrize(
    "wrong", ["no", {"outcomes": OTHERS[:1]}, {"outcomes": OTHERS[:1] * 2}, {"outcome": OTHERS}]
)
async def test_an_invalid_answer_can_be_corrected_without_a_new_proposal(wrong: Any) -> None:
    cast, saver = proposing(), InMemorySaver()
    await ask(cast, saver)
    with pytest.raises(ValidationError):
        await ask(cast, saver, Command(resume=wrong))
    assert len(cast.sent) == 1
    assert (await ask(cast, saver, Command(resume=True))).state["final_answer"]


@pytest.mark.parametrize("proposed", ["none", {"outcomes": [OUTCOMES[0], OUTCOMES[0]]}])
async def test_unusable_proposals_are_refused(proposed: Any) -> None:
    with pytest.raises(BadInput):
        await ask(proposing(proposed), InMemorySaver())


def test_every_field_of_the_answer_form_has_a_description() -> None:
    form = OutcomesAnswer.model_json_schema()["properties"]
    assert {*form} == {"outcomes", "due"}
    assert all(field["description"] for field in form.values())
