"""The settings form of each protocol in Studio."""

from importlib import import_module
from typing import Any

import pytest

from contend.graph.settings import SETTINGS, DebateSettings
from tests.support.scripted import BUILDERS, THREAD, full_cast, scripted_settings


def form_of(protocol: str) -> dict[str, Any]:
    form: dict[str, Any] = import_module(f"contend.graph.{protocol}").graph.get_context_jsonschema()
    return form


@pytest.mark.parametrize("protocol", SETTINGS)
def test_the_form_begins_with_one_model_and_the_protocols_own_fields(protocol: str) -> None:
    fields = [*form_of(protocol)["properties"]]
    shared = [name in DebateSettings.model_fields for name in fields]
    assert fields[0] == "model"
    assert {*fields} == {"model", *SETTINGS[protocol].model_fields}
    assert shared == sorted(shared)


@pytest.mark.parametrize("protocol", SETTINGS)
def test_every_role_setting_is_shown_at_its_graph_nodes(protocol: str) -> None:
    nodes = {*BUILDERS[protocol].nodes}
    fields = form_of(protocol)["properties"]
    used = {name: field.get("langgraph_nodes", []) for name, field in fields.items()}
    assert {node for found in used.values() for node in found} <= nodes
    of_roles = [name for name in used if name.endswith(("_model", "_temperature", "_fallbacks"))]
    assert [name for name in of_roles if not used[name]] == []
    named = {each for names in SETTINGS[protocol].used_by.values() for each in names}
    assert {name for name in named if name not in fields and f"{name}_model" not in fields} == set()


async def test_one_model_fills_every_seat_that_is_not_named() -> None:
    graph = BUILDERS["adversarial"].compile()
    context = scripted_settings(min_rounds=1, max_rounds=1).model_dump(mode="json")
    for role in ("proposer", "synthesizer", "judge"):
        del context[f"{role}_model"]
    given: Any = context | {"model": "scripted:proposer"}
    config: Any = {"configurable": {"thread_id": THREAD}}
    with full_cast().on_stage():
        async for state in graph.astream({"question": "Why?"}, config, context=given):
            if "retrieve" in state:
                seats = {seat.id: seat.model for seat in state["retrieve"]["seats"]}
                break
    others = dict.fromkeys(("proposer", "synthesizer", "judge"), "scripted:proposer")
    assert seats == {"skeptic": "scripted:skeptic", **others}
