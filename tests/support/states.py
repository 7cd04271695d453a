"""Builders for turns and states with default values."""

from datetime import UTC, datetime, timedelta
from typing import Any

from contend.graph.readings import Assessment, Point
from contend.graph.state import DebateState, Turn
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Retrieval, TemplateUse
from tests.support.scripted import as_state, scripted_settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_ROLES = {
    "propose": "proposer",
    "critique": "skeptic",
    "synthesize": "synthesizer",
    "score": "judge",
    "remark": "user",
}


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def turn(phase: str, number: int = 1, text: str = "", **changes: Any) -> Turn:
    role = _ROLES[phase]
    values: dict[str, Any] = {
        "id": f"r{number}.{phase}.{role}",
        "round": number,
        "phase": phase,
        "seat": role,
        "role": role,
        "model": f"scripted:{role}",
        "text": text or f"{role} speaks in round {number}",
        "started_at": NOON,
        "ended_at": NOON,
        "status": "human" if phase == "remark" else "ok",
    }
    return Turn(**values | changes)


def rounds(count: int, text: str = "") -> list[Turn]:
    """Return complete rounds of answer and critique."""
    pairs = [(turn("propose", n, text), turn("critique", n, text)) for n in range(1, count + 1)]
    return [each for pair in pairs for each in pair]


def assessed(*points: Point, ready: bool = False, score: float | None = None) -> Assessment:
    return Assessment(ready=ready, score=score, points=points)


def template(name: str = "first-principles") -> TemplateUse:
    return TemplateUse(id=name, title=f"The {name}", text=f"Steps of {name}.", score=0.8)


def retrieval(*templates: TemplateUse) -> Retrieval:
    return Retrieval(
        templates=templates, embedding_model="scripted:embed", started_at=at(0), ended_at=at(0.5)
    )


def state(**values: Any) -> DebateState:
    """Return a debate in its first round, with a scripted model in every seat."""
    usual: dict[str, Any] = {
        "question": "Should a four-person team split its monolith?",
        "seats": scripted_settings().build_seats(),
        "retrieval": retrieval(),
        "round": 1,
        "turns": [],
    }
    return as_state(usual | values)


def stopped(number: int = 3) -> StopDecision:
    return StopDecision(reason="max_rounds", round=number, evidence="all 3 rounds were used")
