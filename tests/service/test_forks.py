"""Forking, editing and comparing debates over HTTP."""

from typing import Any
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from contend.service.client import ApiError
from tests.service.test_debates import (
    DEBATES,
    api,
    client,
    events,
    models,
    serve,
    start,
    wait_until_not_here,
)
from tests.service.test_steering import Held
from tests.support.floor_server import floor_script
from tests.support.model_server import ModelServer

__all__ = ["client", "models"]

CRITIQUE = "r1.critique.skeptic"


def finished(client: TestClient, **changes: Any) -> str:
    debate = start(client, **changes).id
    assert events(client, debate)[-1]["event"] == "complete"
    wait_until_not_here(client, debate)
    return debate


def turns(client: TestClient, debate: str) -> dict[str, dict[str, Any]]:
    return {turn["id"]: turn for turn in api(client).get(debate).record["turns"]}


def test_a_fork_shares_the_turns_before_it(client: TestClient, models: ModelServer) -> None:
    parent = finished(client)
    before, made = client.get(f"{DEBATES}/{parent}").json(), len(models.calls)
    fork = api(client).fork(parent, at="1", say="Assume twice the team.")
    assert (fork.status, fork.here) == ("running", True)
    assert events(client, fork.id)[-1]["event"] == "complete"
    old, new = turns(client, parent), turns(client, fork.id)
    assert [new[each] == old[each] for each in ("r1.propose.proposer", CRITIQUE)] == [True, True]
    assert "Assume twice the team." in models.calls[made].request.text
    assert len(models.calls) - made == 4
    assert client.get(f"{DEBATES}/{parent}").json() == before


def test_a_fork_can_start_after_any_turn(client: TestClient, models: ModelServer) -> None:
    seats = [{"name": name, "model": "openai:m"} for name in ("Ann", "Ben", "Cyd")]
    settings = {"seats": seats, "max_rounds": 2, "templates": False}
    parent = api(client).start("Why?", protocol="forum", settings=settings).id
    events(client, parent)
    made = len(models.calls)
    fork = api(client).fork(parent, after="r2.propose.ben")
    events(client, fork.id)
    assert "You are Cyd" in models.calls[made].request.user
    assert turns(client, fork.id).keys() == turns(client, parent).keys()


def test_editing_a_turn_changes_later_turns(client: TestClient, models: ModelServer) -> None:
    parent = finished(client)
    reply = api(client).reply(parent, CRITIQUE)
    assert '"severity": "critical"' in reply
    edit = {"turn": CRITIQUE, "text": reply.replace('"critical"', '"minor"')}
    fork = api(client).fork(parent, edit=edit)
    assert events(client, fork.id)[-1]["event"] == "complete"
    assert turns(client, fork.id)[CRITIQUE]["status"] == "human"
    found = api(client).diff(parent, fork.id)
    assert found.shared_turns == 1
    assert (CRITIQUE, "differs") in [(each.turn, each.change) for each in found.turns]
    rounds = next(each for each in found.facts if each.name == "Rounds")
    assert (rounds.first, rounds.second) == ("2", "1")
    assert {each.where for each in found.answer} == {"both"}
    family = api(client).family(fork.id)
    assert [(each.id, each.parent_id, each.edited) for each in family.debates] == [
        (parent, None, None),
        (fork.id, parent, CRITIQUE),
    ]
    api(client).delete(parent)
    statuses = [each.status for each in api(client).family(fork.id).debates]
    assert statuses == ["deleted", "done"]


def test_a_finished_debate_gets_another_round(client: TestClient, models: ModelServer) -> None:
    parent = finished(client)
    fork = api(client).fork(parent, another_round=True, say="And with ten people?")
    assert events(client, fork.id)[-1]["event"] == "complete"
    assert "r3.propose.proposer" in turns(client, fork.id)
    assert any("And with ten people?" in call.request.text for call in models.calls)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, "give one of at, after, edit and another_round"),
        ({"at": "1", "after": CRITIQUE}, 422, "give one of at, after"),
        ({"another_round": True}, 422, "needs a question in say"),
        ({"at": "one"}, 422, "at: String should match pattern"),
        ({"at": "7"}, 422, "There is no such place in the debate. It has: 1:retrieve, 1:propose"),
        ({"after": "../etc"}, 422, "after: String should match pattern"),
        ({"after": "r9.propose.x"}, 422, "There is no turn 'r9.propose.x'"),
        ({"edit": {"turn": CRITIQUE, "text": " "}}, 422, "is empty"),
        ({"at": "1", "settings": {"nonsense": 1}}, 422, "nonsense"),
        ({"at": "1", "settings": {"skeptic_model": "openai:gone"}}, 422, "does not allow"),
        ({"at": "1", "more": 1}, 422, "more"),
    ],
)
def test_a_refused_fork_is_not_stored(
    models: ModelServer, body: dict[str, Any], status: int, said: str
) -> None:
    with serve(allowed_models=("openai:m",)) as client:
        parent = finished(client)
        made = len(models.calls)
        answer = client.post(f"{DEBATES}/{parent}/forks", json=body)
        assert (answer.status_code, said in answer.text) == (status, True), answer.text
        assert (len(models.calls), len(api(client).list().debates)) == (made, 1)


def test_a_fork_cannot_set_the_output_folder(client: TestClient, models: ModelServer) -> None:
    models.script = floor_script()
    settings = {"round_count": 0, "scoring_enabled": False, "templates": False}
    parent = api(client).start("Why?", protocol="moderated", settings=settings).id
    assert events(client, parent)[-1]["event"] == "complete"
    elsewhere = {"at": "0", "settings": {"output_dir": "elsewhere"}}
    answer = client.post(f"{DEBATES}/{parent}/forks", json=elsewhere)
    assert (answer.status_code, "only be set by the operator" in answer.text) == (422, True)
    assert len(api(client).list().debates) == 1


def test_diff_compares_positions(client: TestClient, models: ModelServer) -> None:
    models.script = floor_script()

    def debate(position: str) -> str:
        sides = [{"name": "Ann", "position": position}, {"name": "Ben", "position": "We wait."}]
        settings = {"round_count": 0, "scoring_enabled": False, "positions": sides}
        settings |= {"templates": False}
        begun = api(client).start("Why?", protocol="moderated", settings=settings).id
        assert events(client, begun)[-1]["event"] == "complete"
        return begun

    found = api(client).diff(debate("We split it."), debate("We sell it."))
    (position,) = [each for each in found.facts if each.name.startswith("Position")]
    assert (position.name, position.first, position.second) == (
        *("Position of Ann", "We split it.", "We sell it."),
    )


def test_refuses_forks_from_other_sites_of_unknown_debates_or_if_full(models: ModelServer) -> None:
    with serve(max_running=1) as client:
        parent = finished(client)
        url = f"{DEBATES}/{parent}/forks"
        foreign = client.post(url, json={"at": "1"}, headers={"Origin": "https://elsewhere.test"})
        assert foreign.status_code == 403
        assert client.post(f"{DEBATES}/{uuid4()}/forks", json={"at": "1"}).status_code == 404
        held = Held(models)
        running = start(client).id
        held.wait()
        assert client.post(url, json={"at": "1"}).status_code == 429
        with pytest.raises(ApiError, match="pause it first"):
            api(client).fork(running, at="1")
        held.go_on()
        events(client, running)


def test_refuses_invalid_comparisons_and_replies(client: TestClient) -> None:
    debate = finished(client)
    for path, said in (
        (f"{debate}/diff/{debate}", "These are the same debate"),
        (f"{debate}/turns/r9.propose.x/reply", "There is no turn"),
    ):
        answer = client.get(f"{DEBATES}/{path}")
        assert (answer.status_code, said in answer.text) == (409, True), answer.text
    assert client.get(f"{DEBATES}/{debate}/diff/{uuid4()}").status_code == 404
    assert client.get(f"{DEBATES}/{debate}/turns/a%20b/reply").status_code == 422
