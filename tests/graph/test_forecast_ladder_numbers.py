"""Unreadable numbers of a forecast are requested once more, then reported missing."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from contend.graph.forecast_contract.terms import ROLES
from tests.graph.test_forecast_ladder import asks, gaps, result_of
from tests.support.forecasting import (
    QUESTION,
    arguing,
    asked_for,
    fenced,
    forecasted,
    panel,
    request,
    scores,
)
from tests.support.scripted import Sent


class TestNumbers:
    async def test_incomplete_probabilities_count_for_the_outcomes_they_cover(self) -> None:
        """One role covers one of three outcomes; the judge's percentages add up to 103."""
        outcomes = [{"id": each, "label": each.upper()} for each in "abc"]
        given = request(outcomes=outcomes)
        stated = {
            "optimist": {"a": 0.6, "b": 0.3, "c": 0.1},
            "pessimist": {"a": 0.4, "b": 0.4, "c": 0.2},
            "judge": {"a": 0.8},
        }

        def role(name: str) -> Callable[[Sent], str]:
            def say(sent: Sent) -> str:
                if asked_for(sent) == "numbers":
                    return "still no numbers"
                block = {"outcome": "a", "probabilities": stated[name], "confidence": 0.5}
                return fenced(sent, block | {"point": "P."}, f"{name} speaks.")

            return say

        def judge(sent: Sent) -> str:
            match asked_for(sent):
                case "score":
                    return fenced(sent, scores(), "Sound.")
                case "verdict":
                    percent = {"a": 62, "b": 31, "c": 10}
                    return fenced(sent, {"probabilities": percent, "confidence": 70}, "A.")
            return role("judge")(sent)

        cast = panel(optimist=role("optimist"), pessimist=role("pessimist"), judge=judge)
        roles = ("optimist", "pessimist", "judge")
        played = await forecasted(
            cast, {"question": QUESTION, "request": given}, roles=roles, max_rounds=1
        )
        result = result_of(played)
        rows = {each.outcome_id: each for each in result.probability_distribution}
        assert {o: row.consensus_probability for o, row in rows.items()} == pytest.approx(
            {"a": 0.6, "b": 0.35, "c": 0.15}
        )
        assert {o: row.judge_probability for o, row in rows.items()} == pytest.approx(
            {"a": 62 / 103, "b": 31 / 103, "c": 10 / 103}, abs=1e-4
        )
        assert {o: row.probability for o, row in rows.items()} == pytest.approx(
            {"a": 0.578043, "b": 0.308253, "c": 0.113704}, abs=1e-4
        )
        assert [each.role for each in rows["b"].role_assessments] == ["optimist", "pessimist"]
        assert gaps(result) == [("probabilities", "judge", 1), ("confidence", "judge", None)]
        assert result.report.gaps[0].why == "no readable probability for b, c, asked twice"
        raw = {(each.part, each.role): each.values for each in result.report.raw_probabilities}
        assert raw["verdict", "judge"] == {"a": 62, "b": 31, "c": 10}
        assert raw["argument", "judge"] == {"a": 0.8}
        # Means 0.5, 0.35 and 0.15: an incomplete voice enters no pool of whole distributions.
        assert [each.linear for each in result.report.pools] == pytest.approx([0.5, 0.35, 0.15])
        assert len(asks(played, "judge", "numbers")) == 1
        # a: 0.6, 0.4, 0.8; b: 0.3, 0.4; c: 0.1, 0.2.
        by_outcome = [each.consensus_score for each in result.report.consensus_by_outcome]
        assert by_outcome == pytest.approx([1 - 0.163299 / 0.471405, 0.9, 0.9], abs=1e-4)
        assert result.consensus_score == pytest.approx(sum(by_outcome) / 3, abs=1e-4)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "given",
        [
            "It will open, I think.",
            "Probabilities: yes 90 %, no 90 %",
            '```json\n{"nonce": "0000000000", "probabilities": {"yes": 1, "no": 0}}\n```',
        ],
        ids=["no numbers", "no distribution", "another's nonce"],
    )
    async def test_unreadable_numbers_are_asked_for_once_more(self, given: str) -> None:
        form = {
            "outcome": "yes",
            "probabilities": [
                {"outcome": "yes", "probability": 75},
                {"outcome": "no", "probability": 25},
            ],
            "confidence": 0.4,
        }

        def optimist(sent: Sent) -> str:
            if asked_for(sent) == "references":
                return json.dumps({"refers_to": ["P1"]})
            return json.dumps(form) if sent.schema else given

        played = await forecasted(panel(optimist=optimist))
        result = result_of(played)
        assert not result.report.partial
        first = result.probability_distribution[0].role_assessments[0]
        assert (first.role, first.probability, first.confidence) == ("optimist", 0.75, 0.4)
        assert result.debate_log.rounds[0].arguments[0].outcome_supported == "yes"
        assert result.metadata.sonnet_calls == 35
        assert len(asks(played, "optimist", "numbers")) == 3
        assert given in asks(played, "optimist", "numbers")[0].user

    async def test_missing_numbers_are_not_replaced_by_a_uniform_distribution(self) -> None:
        def optimist(sent: Sent) -> str:
            return "{}" if sent.schema else "Surely it opens."

        result = result_of(await forecasted(panel(optimist=optimist)))
        for row in result.probability_distribution:
            assert "optimist" not in [each.role for each in row.role_assessments]
        kinds = {gap[0] for gap in gaps(result)}
        assert kinds == {"probabilities", "outcome_supported", "assessment", "references"}
        yes = result.probability_distribution[0]
        assert yes.consensus_probability == pytest.approx((0.4 + 0.5 + 0.6 + 0.7) / 4)

    async def test_numbers_in_plain_text_are_parsed_without_a_block(self) -> None:
        words = "It opens.\nSupports: yes\nProbabilities: yes 70 %, no 30 %\nConfidence: 0.9"
        played = await forecasted(panel(optimist=words))
        first = result_of(played).probability_distribution[0].role_assessments[0]
        assert [first.probability, first.confidence] == pytest.approx([0.7, 0.9])
        assert asks(played, "optimist", "numbers") == []

    async def test_text_numbers_and_outcome_labels_need_no_second_call(self) -> None:
        def loosely(block: dict[str, Any]) -> dict[str, Any]:
            given = {"It opens": "70%", "NO ": "0.3"}
            return block | {"outcome": "it opens", "probabilities": given}

        played = await forecasted(panel(optimist=arguing("optimist", loosely)))
        result = result_of(played)
        assert result.probability_distribution[0].role_assessments[0].probability == 0.7
        assert result.debate_log.rounds[0].arguments[0].outcome_supported == "yes"
        assert asks(played, "optimist", "numbers") == []

    async def test_endlessly_repeated_digit_is_not_a_number(self) -> None:
        def optimist(sent: Sent) -> str:
            return "{}" if sent.schema else f"Probabilities: yes {'9' * 400}, no 1"

        result = result_of(await forecasted(panel(optimist=optimist)))
        assert ("assessment", "optimist", None) in gaps(result)

    async def test_lone_surrogates_in_a_block_are_removed(self) -> None:
        odd = {"point": "The\udfff ice.", "evidence": ["\ud83d report"]}
        said = arguing("optimist", lambda block: block | odd)
        played = await forecasted(panel(optimist=said))
        assert not result_of(played).report.partial
        assert asks(played, "judge", "verdict")[0].user.count(": The ice.") == 3

    async def test_without_any_numbers_there_is_no_distribution(self) -> None:
        mute: dict[str, Any] = {
            role: (lambda sent: "{}" if sent.schema else "Who knows.") for role in ROLES
        }

        def judge(sent: Sent) -> str:
            if asked_for(sent) == "score" and not sent.schema:
                return fenced(sent, scores(), "Sound.")
            return "{}" if sent.schema else "Who knows."

        result = result_of(await forecasted(panel(**mute | {"judge": judge}), max_rounds=1))
        for row in result.probability_distribution:
            assert row.probability is None
            assert row.consensus_probability is None
            assert row.judge_probability is None
        assert result.consensus_score is None
        assert result.report.confidence is None
        assert all(each.log_odds is None for each in result.report.pools)
