"""The facts shown at the end of a debate."""

from typing import Any

import pytest

from contend.cli.view.summary import end_facts
from contend.debates.exports.wording import count_quotes
from contend.debates.record import StoredDebate
from contend.graph.readings import Conviction
from contend.graph.state import Turn
from tests.cli.screen import debate_of
from tests.cli.view.test_renderer import CONVINCED, LEFT
from tests.support.scripted import forum_settings, scripted_settings
from tests.support.states import turn


def facts(debate: StoredDebate, *turns: Turn) -> list[tuple[str, str]]:
    told = end_facts(debate.model_copy(update={"turns": list(turns)}).as_json())
    return [fact for fact in told if fact[0] not in ("Time", "Tokens", "Cost")]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (LEFT | {"reasoning": "So."}, "Nobody is left to watch two services at night."),
        (LEFT | {"argument": "", "reasoning": "It is late."}, "It is late."),
        (LEFT | {"argument": "", "reasoning": ""}, "no argument given"),
    ],
)
def test_concessions_are_listed_with_their_reasons(entry: dict[str, Any], why: str) -> None:
    said = {"phase": "conviction_check", "seat": "ben", "assessment": Conviction(**CONVINCED)}
    debate = debate_of(
        forum_settings(("Ann", "Ben")),
        active=["ann"],
        eliminations=[{"seat": "ben", "round": 2, **entry}],
    )
    assert facts(debate, turn("propose", 2).model_copy(update=said))[1:] == [
        ("Winner", "Ann"),
        ("Conceded", f"Ben to Ann in round 2: {why}"),
        ("Score", "not rated"),
    ]


@pytest.mark.parametrize(
    ("eliminations", "why"),
    [([], "nobody conceded"), (["ann", "ben"], "the concessions were tied")],
)
def test_nobody_wins_a_tie(eliminations: list[str], why: str) -> None:
    gone = [
        {"seat": f"x{n}", "round": 2, **LEFT, "reasoning": "So.", "convinced_by": to}
        for n, to in enumerate(eliminations)
    ]
    debate = debate_of(forum_settings(("Ann", "Ben")), active=["ann", "ben"], eliminations=gone)
    written = turn("synthesize", 3).model_copy(update={"seat": "ann"})
    assert dict(facts(debate, written))["Winner"] == f"nobody: {why}; Ann wrote the answer"


@pytest.mark.parametrize(
    ("degraded", "why"),
    [
        ([], "the judge stopped the debate"),
        ([{"seat": "judge", "round": 2, "what": "judge_silent", "why": "so"}], None),
    ],
)
def test_failed_judge_is_not_shown_as_having_stopped_the_debate(
    degraded: list[dict[str, Any]], why: str | None
) -> None:
    stop = {"reason": "judge_stop", "round": 2, "evidence": "so"}
    debate = debate_of(forum_settings(), active=["ann", "ben"], stop=stop, degraded=degraded)
    told = dict(facts(debate, turn("propose", 2)))["Stopped"]
    assert told == f"after 1 round: {why or 'the judge could not be asked'}"


@pytest.mark.parametrize(("seat", "told"), [("skeptic", True), ("judge", False)])
def test_objections_are_unparsed_only_if_a_critique_is_unreadable(seat: str, told: bool) -> None:
    unread = [{"seat": seat, "round": 1, "what": "unreadable", "why": "so"}]
    debate = debate_of(scripted_settings(), degraded=unread)
    assert (("Objections", "could not be parsed") in facts(debate, turn("critique"))) is told


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (
            ["so it is", "[ghost:3]"],
            "0 found in the documents, 1 not found; 1 citation of missing places",
        ),
        (["[ghost:3]", "[ghost:3]"], "2 citations of missing places"),
    ],
)
def test_citation_of_a_missing_place_is_not_counted_as_a_quote(texts: list[str], told: str) -> None:
    checks = [{"text": each, "status": "not_found", "written": "[ghost:3]"} for each in texts]
    assert count_quotes(checks).startswith(told)
