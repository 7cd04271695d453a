import base64
import binascii
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import Outcome
from contend.graph.readings import AutoScore, DebateScores
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Degradation, Document, Image, Seat


class InlineDocument(BaseModel):
    """A document sent as text, because a server cannot read its clients' files."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, description="File name, such as plan.md.")
    text: str = Field(min_length=1, description="The whole text.")

    @property
    def content(self) -> bytes:
        return self.text.encode()


class InlineImage(BaseModel):
    """An image sent in base64, because a server cannot read its clients' files."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, description="File name, such as chart.png.")
    data: str = Field(min_length=1, description="The file in base64, or a data URL.")

    @property
    def content(self) -> bytes:
        try:
            return base64.b64decode(self.data.rpartition(",")[2], validate=True)
        except binascii.Error as error:
            raise BadInput(f"The image {self.name} is not in base64.") from error


class QuestionInput(BaseModel):
    """A debate's question, and the documents and images for its speakers."""

    question: str = Field(min_length=1, description="The question to debate.")
    documents: list[InlineDocument | SkipJsonSchema[Document]] = Field(
        default=[], description="Documents as text, each with a name; speakers may cite them."
    )
    images: list[InlineImage | SkipJsonSchema[Image]] = Field(
        default=[], description="Images in base64, each with a name, for the first round."
    )
    seats: SkipJsonSchema[list[Seat]] = []  # chosen by a front end


class ForecastInput(QuestionInput):
    """A forecast's question, and its possible outcomes."""

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
