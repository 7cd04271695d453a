"""The stop rules, and comments as turns."""

from typing import Any

import pytest

from contend.graph.protocols.adversarial import stop_rule
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import Assessment, Point, PointStatus, Severity
from contend.graph.routing import after_answering, after_judging
from contend.graph.settings import SETTINGS, AdversarialSettings, DebateSettings
from contend.graph.state import DebateState
from contend.graph.stop_reasons import StopDecision
from contend.nodes.judge_continue import human_turn
from tests.support.scripted import refine_settings
from tests.support.states import state, turn


def said(
    ready: bool = False,
    score: float | None = None,
    worst: Severity = "critical",
    status: PointStatus = "open",
) -> Assessment:
    point = Point(id="S1", severity=worst, status=status, text="the cost is guessed")
    left = worst == "critical" and status != "resolved"
    return Assessment(ready=ready, score=score, points=(point,), none_critical=not left)


CLEAN = said(worst="major")
UNREAD = None


@pytest.mark.parametrize(
    ("assessment", "round_number", "reason"),
    [
        # a ready signal stops in any round
        (said(ready=True, worst="major"), 1, "skeptic_ready"),
        (said(ready=True, worst="major"), 2, "skeptic_ready"),
        (said(ready=True, status="resolved"), 5, "skeptic_ready"),
        (said(ready=True, worst="major", score=8), 1, "skeptic_ready"),
        (said(ready=True, status="resolved", score=10), 3, "skeptic_ready"),
        # unless a critical issue is open, listed or not
        (said(ready=True), 1, None),
        (said(ready=True, score=9), 4, None),
        (Assessment(ready=True, unlisted_critical=True), 3, None),
        # unless its own score is too low
        (said(ready=True, worst="major", score=5), 1, None),
        (said(ready=True, worst="minor", score=7.9), 2, None),
        (Assessment(ready=True, unstated_score=5), 3, None),
        (Assessment(ready=True, unstated_score=9), 1, "skeptic_ready"),
        (said(ready=True, score=5), 5, "max_rounds"),
        # a score is enough from the minimum on
        (said(worst="major", score=8), 1, None),
        (said(worst="major", score=8), 2, None),
        (said(worst="major", score=8), 3, "score_reached"),
        (said(worst="major", score=8.5), 4, "score_reached"),
        (said(score=7.9), 3, None),
        # unless a critical issue is open
        (said(score=8), 3, None),
        (said(score=10, status="partial"), 4, None),
        (said(score=10, status="resolved"), 4, "score_reached"),
        # also in the last round, before the maximum is named
        (said(worst="major", score=8), 5, "score_reached"),
        # the maximum
        (said(), 4, None),
        (said(), 5, "max_rounds"),
        (said(), 6, "max_rounds"),
        (CLEAN, 5, "max_rounds"),
        # no critical issue left, from the minimum on
        (CLEAN, 1, None),
        (CLEAN, 2, None),
        (CLEAN, 3, "no_critical_issues"),
        (said(worst="minor"), 4, "no_critical_issues"),
        (said(status="resolved"), 3, "no_critical_issues"),
        (said(status="partial"), 3, None),
        (Assessment(ready=False, none_critical=True), 3, "no_critical_issues"),
        # which a critique that lists nothing does not say
        (Assessment(ready=False), 3, None),
        # a score is named before the absence of critical issues
        (said(worst="minor", score=9), 3, "score_reached"),
        # and an unready score below the mark does not hide it
        (said(worst="minor", score=3), 3, "no_critical_issues"),
        # a critique nobody could read stops nothing but the last round
        (UNREAD, 1, None),
        (UNREAD, 3, None),
        (UNREAD, 4, None),
        (UNREAD, 5, "max_rounds"),
    ],
)
def test_adversarial_stop_rule(
    assessment: Assessment | None, round_number: int, reason: str | None
) -> None:
    stop = stop_rule(assessment, round_number, AdversarialSettings())
    assert (stop.reason if stop else None) == reason
    assert stop is None or (stop.round == round_number and stop.evidence)


@pytest.mark.parametrize(
    ("assessment", "round_number", "reason"),
    [
        (said(ready=True, worst="major"), 1, None),
        (said(ready=True, worst="major", score=10), 2, None),
        (said(ready=True, worst="major"), 3, "skeptic_ready"),
        (said(worst="major", score=9), 2, None),
        (said(worst="major", score=9), 3, "score_reached"),
    ],
)
def test_min_rounds_can_apply_to_a_ready_signal(
    assessment: Assessment, round_number: int, reason: str | None
) -> None:
    settings = AdversarialSettings(ready_respects_min_rounds=True)
    stop = stop_rule(assessment, round_number, settings)
    assert (stop.reason if stop else None) == reason


@pytest.mark.parametrize("source", ["block", "words", "extraction"])
@pytest.mark.parametrize(("status", "reason"), [("open", None), ("resolved", "skeptic_ready")])
def test_ready_never_overrides_an_open_critical_point(
    source: str, status: PointStatus, reason: str | None
) -> None:
    assessment = said(ready=True, status=status).model_copy(update={"read_from": source})
    stop = stop_rule(assessment, 1, AdversarialSettings())
    assert (stop.reason if stop else None) == reason


@pytest.mark.parametrize(("mark", "reason"), [(9.5, "no_critical_issues"), (9, "score_reached")])
def test_early_stop_score_is_configurable(mark: float, reason: str | None) -> None:
    stop = stop_rule(said(worst="major", score=9), 3, AdversarialSettings(early_stop_score=mark))
    assert (stop.reason if stop else None) == reason


def test_one_round_is_enough_when_it_is_the_maximum() -> None:
    stop = stop_rule(UNREAD, 1, AdversarialSettings(min_rounds=1, max_rounds=1))
    assert stop is not None
    assert stop.reason == "max_rounds"


@pytest.mark.parametrize(
    ("number", "statuses", "changes", "reason"),
    [
        (0, ["ok", "ok"], {}, None),
        (1, ["ok", "ok"], {}, None),
        (2, ["ok", "ok"], {}, "max_rounds"),
        (0, ["ok"], {"max_debate_rounds": 0}, "max_rounds"),
        (0, ["ok", "ok"], {"enable_debate": False}, "max_rounds"),
        # one who kept its answer stops nobody, a fallback model's is an answer like any other
        (1, ["ok", "kept_previous"], {}, None),
        (1, ["fallback_model", "kept_previous"], {}, None),
        # nobody could refine
        (1, ["kept_previous", "kept_previous"], {}, "failed"),
        (2, ["kept_previous"], {}, "failed"),
    ],
)
def test_refine_stop_rule(
    number: int, statuses: list[str], changes: dict[str, Any], reason: str | None
) -> None:
    earlier = turn("propose", number - 1, id="earlier")
    turns = [turn("propose", number, id=f"t{at}", status=s) for at, s in enumerate(statuses)]
    stop = strategy_for(refine_settings(**changes)).stop_decision(
        state(round=number, turns=[earlier, *turns])
    )
    assert (stop.reason if stop else None) == reason
    assert stop is None or (stop.round == number and stop.evidence)


@pytest.mark.parametrize("schema", SETTINGS.values(), ids=SETTINGS)
def test_every_protocol_has_a_strategy(schema: type[DebateSettings]) -> None:
    assert strategy_for(schema()).settings.protocol == schema.protocol


def test_the_edge_follows_the_decision() -> None:
    stop = StopDecision(reason="max_rounds", round=5, evidence="all 5 rounds were used")
    assert after_judging({"round": 2}) == "propose"
    assert after_judging({"round": 5, "stop": stop}) == "synthesize"
    assert after_answering({"round": 2}) == "critique"
    assert after_answering({"round": 5, "stop": stop}) == "synthesize"


def test_each_comment_of_a_person_is_a_separate_turn() -> None:
    state = DebateState(round=2, turns=[])
    first = human_turn(state, "mind the budget")
    second = human_turn(DebateState(round=2, turns=[first]), "and the team")
    assert (first.role, first.status, first.round) == ("user", "human", 2)
    assert first.id != second.id
