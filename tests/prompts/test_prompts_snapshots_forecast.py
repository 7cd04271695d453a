"""Snapshots of the prompts of a forecast; see test_prompts_snapshots."""

import json
import re
from typing import Any

from tests.graph.test_forecast_contract import REQUEST
from tests.prompts.test_prompts_snapshots import FOLDER, WRITE, sheet
from tests.support.forecasting import (
    arguing,
    asked_for,
    fenced,
    forecasted,
    judging,
    panel,
    round_of,
    scored_role,
    scores,
)
from tests.support.scripted import Cast, Sent

WANTED: dict[str, tuple[str, str, int, str]] = {
    "optimist_opening": ("optimist", "argument", 1, ""),
    "contrarian_rebuttal": ("contrarian", "argument", 2, ""),
    "historian_closing": ("historian", "argument", 3, ""),
    "historian_precedents": ("historian", "precedents", 0, ""),
    "pessimist_stronger": ("pessimist", "stronger", 1, ""),
    "optimist_numbers": ("optimist", "numbers", 0, ""),
    "pessimist_references": ("pessimist", "references", 0, ""),
    "judge_score": ("judge", "score", 2, "optimist"),
    "judge_final": ("judge", "verdict", 0, ""),
}

# Stands for the day on which the tests run.
TODAY = "2026-11-18"


def cast() -> Cast:
    """Return a panel that makes every kind of call."""

    def optimist(sent: Sent) -> str:
        return "It opens, surely." if round_of(sent) == 1 else arguing("optimist")(sent)

    def pessimist(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            return fenced(sent, {"probabilities": {"yes": 0.2, "no": 0.8}}, "Once more.")
        if asked_for(sent) == "references":
            return json.dumps({"refers_to": ["O1"]})
        return arguing("pessimist", lambda block: block | {"refers_to": []})(sent)

    def score(sent: Sent) -> dict[str, Any]:
        weak = scored_role(sent) == "pessimist" and round_of(sent) == 1
        return scores(0, 0, 0) if weak and "Once more" not in sent.user else scores()

    def historian(sent: Sent) -> str:
        few = arguing("historian", lambda block: block | {"precedents": []})
        return json.dumps({"precedents": []}) if sent.schema else few(sent)

    def lines(sent: Sent) -> str:
        return "{}" if sent.schema else optimist(sent)

    return panel(optimist=lines, pessimist=pessimist, historian=historian, judge=judging(score))


async def test_prompts_match_the_snapshots() -> None:
    question = REQUEST["prediction_context"]["task"]["question"]
    played = await forecasted(cast(), {"question": question, "request": REQUEST})
    sent = {(s.model, asked_for(s), round_of(s), scored_role(s)): s for s in played.cast.sent}
    for name, call in WANTED.items():
        file = FOLDER / "forecast" / f"{name}.md"
        told = re.sub(r"(?<=^Today: )[\d-]+$", TODAY, sheet(sent[call].messages), flags=re.M)
        if WRITE:
            file.write_text(told, encoding="utf-8")
        assert told == file.read_text(encoding="utf-8"), name
