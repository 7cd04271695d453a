import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Self
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest, Outcome, request_of_outcomes
from contend.graph.forecast_contract.terms import OUTCOME_ID
from contend.graph.protocols.base import strategy_for
from contend.graph.settings.forecast import request_of
from contend.graph.state import DebateState, seat_with_role
from contend.graph.values import Seat, WorkSpan
from contend.models.seats import is_small
from contend.nodes.calls.turn import fill_form
from contend.nodes.prompting.values import fence_mark
from contend.nodes.retrieve import checked_question, find_seats
from contend.nodes.timing import steady_now
from contend.prompts import fence, render

_UNUSABLE = "The model proposed no usable outcomes. Give two or more, each with an id and a label."
_YES = ("", "yes", "y", "ok")


class ProposedOutcome(BaseModel):
    id: Annotated[str, StringConstraints(max_length=30)]
    label: Annotated[str, StringConstraints(max_length=80)]
    description: Annotated[str, StringConstraints(max_length=200)]


class ProposedOutcomes(BaseModel):
    outcomes: Annotated[list[ProposedOutcome], Field(min_length=2, max_length=5)]
    due: str | None = None

    @property
    def named(self) -> list[dict[str, str]]:
        return [
            each.model_dump() | {"id": outcome_slug(each.id, number)}
            for number, each in enumerate(self.outcomes, 1)
        ]

    @property
    def day(self) -> date | None:
        try:
            return date.fromisoformat(self.due or "")
        except ValueError:
            return None


class OutcomesAnswer(BaseModel):
    """A person's answer to proposed outcomes: yes, or other outcomes."""

    model_config = ConfigDict(extra="forbid")

    outcomes: list[Outcome] = Field(
        default=[],
        description="Other outcomes, at least two; omit to accept the proposed outcomes.",
    )
    due: date | None = Field(None, description="The date by which one of them has come true.")

    @model_validator(mode="before")
    @classmethod
    def _accept_yes(cls, answer: Any) -> Any:
        said_yes = answer is True or (isinstance(answer, str) and answer.strip().lower() in _YES)
        return {} if said_yes else answer

    @model_validator(mode="after")
    def _check_outcomes(self) -> Self:
        # Check them here, because a person cannot answer again if a later check fails.
        if self.outcomes:
            asked = request_of_outcomes("Which?", _as_json(self.outcomes), None)
            try:
                DebateRequest.model_validate_json(json.dumps(asked))
            except ValidationError as error:
                raise ValueError(error.errors()[0]["msg"]) from error
        return self


def outcome_slug(name: str, number: int) -> str:
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", name.strip()).lstrip("-._").rstrip("-.")
    return slug if re.fullmatch(OUTCOME_ID, slug) else f"o{number}"


def outcomes_prompt(question: str, judge: Seat) -> list[BaseMessage]:
    small = "small/" if is_small([judge]) else ""
    mark = fence_mark(str(uuid4()))
    values = {
        "question": lambda: question if small else fence("question", question, mark),
        "data_short": lambda: render("forecast/data", {"mark": lambda: mark}),
        "today": lambda: steady_now().date().isoformat(),
    }
    return [HumanMessage(render(f"forecast/{small}outcomes", values))]


async def find_outcomes(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    settings, question = runtime.context, checked_question(state.get("question", ""))
    seats = await find_seats(state, settings, question)
    asked: DebateState = {**state, "question": question, "seats": seats, "round": 0}
    judge, began = seat_with_role(asked, "judge"), steady_now()
    filled = await fill_form(
        asked, runtime, judge, outcomes_prompt(question, judge), ProposedOutcomes
    )
    if filled["block"] is None:
        raise BadInput(_UNUSABLE)
    proposed = ProposedOutcomes.model_validate(filled["block"])
    due: DebateState = {"due": proposed.day.isoformat()} if proposed.day else {}
    found: DebateState = {"question": question, "seats": seats, "outcomes": proposed.named, **due}
    _check(found, settings)
    used = WorkSpan(started_at=began, ended_at=steady_now(), calls=1, usage=filled["usage"])
    chosen = settings.with_models({seat.id: seat.model for seat in seats})
    about = {"protocol": settings.protocol, "settings": chosen.model_dump(mode="json")}
    return {**found, **about, "spans": [used], "degraded": filled["degraded"]}


async def confirm_outcomes(
    state: DebateState,
    runtime: Runtime[Any],  # noqa: ARG001 - langgraph passes it by name
) -> dict[str, Any]:
    shown = {"outcomes": state["outcomes"], "due": state.get("due")}
    answer: OutcomesAnswer = interrupt(shown, response_schema=OutcomesAnswer)
    changed: DebateState = {}
    if answer.outcomes:
        changed["outcomes"] = _as_json(answer.outcomes)
    if answer.due:
        changed["due"] = answer.due.isoformat()
    return {**changed}


def _as_json(outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    return [each.model_dump(mode="json", exclude_none=True) for each in outcomes]


def _check(given: DebateState, settings: Any) -> None:
    request_of({**given, **strategy_for(settings).derived_input(given)})
