from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from contend.graph.values import HUMAN

if TYPE_CHECKING:  # every command loads this module, and --help must not wait for langgraph
    from contend.graph.readings import DebateScores
    from contend.graph.state import DebateState


def sharing_models(state: "DebateState", judging: Iterable[str]) -> list[str]:
    used = {seat.id: {seat.model} for seat in state["seats"]}
    for turn in state.get("turns", []):  # includes fallback models
        used.get(turn.seat, set()).add(turn.model)
    others = [seat.id for seat in state["seats"] if seat.role != "judge"]
    models = set(judging) - {HUMAN}  # two people share no model
    return [seat for seat in others if not used[seat].isdisjoint(models)]


def scoring_of(state: "DebateState", verdict: "DebateScores") -> dict[str, Any]:
    contested = [t.turn for each in verdict.standings for t in each.turns if t.contested]
    return {
        "judge_model": verdict.judge_model,
        "judge_shares_model_with": sharing_models(state, verdict.judge_model.split(", ")),
        "margin": verdict.margin,
        "contested": contested,
        "unscored": list(verdict.unscored),
        "no_winner": verdict.no_winner,
        "draw": verdict.draw,
        "lead": verdict.lead,
        "winner_margin": verdict.winner_margin,
    }


def result_words(scoring: Mapping[str, Any], winner: str | None) -> str:
    lead = scoring.get("lead")  # release 0.1 stored no lead
    if winner:
        return winner if lead is None else f"{winner}, by {lead:.2f} points"
    if not scoring["no_winner"]:
        return ""
    return f"nobody{', a draw' if scoring.get('draw') else ''}: {scoring['no_winner']}"


def scoring_notes(scoring: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    sharing = [names.get(seat, seat) for seat in scoring["judge_shares_model_with"]]
    notes = [f"the judge shares its model with {', '.join(sharing)}"] if sharing else []
    contested, unscored = len(scoring["contested"]), len(scoring["unscored"])
    if contested:
        apart = f"more than {scoring['margin']:g}, or twice that on one criterion"
        notes.append(f"{contested} contested: two readings differ by {apart}")
    if unscored:
        notes.append(f"{unscored} without readable scores")
    return notes
