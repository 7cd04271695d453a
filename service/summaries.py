from typing import Any

from pydantic import BaseModel, Field

from contend.debates.exports.safe_html import to_html
from contend.debates.record import StoredDebate
from contend.graph.record import Status
from contend.models.text import shorten

_EXCERPT = 280


class SeatSummary(BaseModel):
    id: str
    name: str
    role: str
    model: str


class DebateSummary(BaseModel):
    """A debate in a list."""

    id: str
    protocol: str
    question: str
    title: str | None = Field(
        None, description="A title set by a user; it is shown instead of the question."
    )
    status: Status
    created_at: str
    updated_at: str
    round: int = Field(description="The current round; 0 before the first.")
    seats: list[SeatSummary]
    stop_reason: str | None
    quality_score: float | None = Field(
        description="Your rating if there is one, otherwise the judge's."
    )
    user_rating: int | None
    answer_excerpt: str | None
    demonstration: bool
    error: str | None
    due: str | None = None
    resolution: str | None = None
    waiting_for_you: bool = Field(
        False, description="Whether it is paused and waits for your reply."
    )
    here: bool = Field(False, description="Whether this service is running it and can pause it.")


class DebateDetails(DebateSummary):
    """A debate with its whole record."""

    record: dict[str, Any] = Field(description="What `contend show --json` prints.")
    html: dict[str, Any] = Field(description="The answer and the turns as HTML.")


def summarize(debate: StoredDebate, *, here: bool, waiting_for_you: bool) -> DebateSummary:
    return DebateSummary(**_summary(debate, here=here, waiting_for_you=waiting_for_you))


def _summary(debate: StoredDebate, *, here: bool, waiting_for_you: bool) -> dict[str, Any]:
    state = debate.state
    rated = state.get("auto_score") or {}
    answer = state.get("final_answer")
    own = debate.user_rating
    return {
        **debate.model_dump(
            include={
                *(
                    "id",
                    "protocol",
                    "question",
                    "title",
                    "status",
                    "created_at",
                    "updated_at",
                    "error",
                ),
                *("demonstration", "user_rating", "stop_reason"),
            }
        ),
        "stop_reason": debate.stop_reason,
        "round": state.get("round", 0),
        "seats": [SeatSummary.model_validate(seat) for seat in state.get("seats", [])],
        "quality_score": own if own is not None else rated.get("score"),
        "answer_excerpt": shorten(answer, _EXCERPT) if answer else None,
        **debate.forecast_fate(),
        "waiting_for_you": waiting_for_you,
        "here": here,
    }


def describe(debate: StoredDebate, *, here: bool, waiting_for_you: bool) -> DebateDetails:
    answer = debate.state.get("final_answer")
    html = {
        "answer": to_html(answer) if answer else None,
        "turns": {turn.id: to_html(turn.text) for turn in debate.turns},
    }
    summary = _summary(debate, here=here, waiting_for_you=waiting_for_you)
    return DebateDetails(**summary, record=debate.as_json(), html=html)
