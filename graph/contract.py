"""What clients give a graph and get from it: the forms and the results that Studio shows."""

from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from contend.graph.forecast_contract.request import Outcome
from contend.graph.readings import AutoScore, DebateScores
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Degradation, Document, Image, Seat


class QuestionInput(BaseModel):
    """The question of a debate, and what its speakers may read."""

    question: str = Field(min_length=1, description="The question to debate.")
    documents: list[Document] = Field(
        default=[], description="Documents that are stored where the debate runs."
    )
    images: list[Image] = Field(
        default=[], description="Images that are stored where the debate runs."
    )
    seats: SkipJsonSchema[list[Seat]] = []  # chosen by a front end


class ForecastInput(QuestionInput):
    """The question of a forecast, and the outcomes that it gives probabilities."""

    outcomes: list[Outcome] = Field(
        default=[], description="The possible outcomes, at least two, of which one will come true."
    )
    due: date | None = Field(None, description="The date by which one of them has come true.")
    request: SkipJsonSchema[dict[str, Any]] = {}  # in the published form


class DebateOutput(TypedDict, total=False):
    """The results of a debate."""

    final_answer: Annotated[str, Field(description="The answer.")]
    stop: Annotated[StopDecision, Field(description="Why the rounds ended.")]
    auto_score: Annotated[AutoScore, Field(description="The judge's rating of the answer.")]
    verdict: Annotated[DebateScores, Field(description="The scores of a moderated debate.")]
    forecast: Annotated[dict[str, Any], Field(description="The result of a forecast.")]
    degraded: Annotated[list[Degradation], Field(description="What did not go as planned.")]
    trace: Annotated[dict[str, Any], Field(description="The whole record.")]
