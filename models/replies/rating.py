import re
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, StringConstraints

from contend.models.replies.own_words import own_sentences
from contend.models.replies.signals import labelled_value

WEIGHTS = {"correctness": 0.40, "completeness": 0.25, "clarity": 0.20, "depth": 0.15}

# Some models keep the brackets of the form: `Depth: [7]`.
_BRACKETED = re.compile(r"\A\[\s*(\w+)\s*\]")
_Rating = Annotated[int, Field(ge=1, le=10)]


class RatingBlock(BaseModel):
    """The content of the control block with the judge's ratings."""

    small_prompt: ClassVar[str] = "shared/small/extract.score"

    correctness: _Rating
    completeness: _Rating
    clarity: _Rating
    depth: _Rating
    justification: Annotated[str, StringConstraints(min_length=1, max_length=1200)] = Field(
        description="Two or three sentences that explain the ratings."
    )
    would_benefit_from_finetune: bool

    @property
    def weighted(self) -> float:
        ratings = self.model_dump(include=set(WEIGHTS))
        return float(round(sum(ratings[name] * share for name, share in WEIGHTS.items()), 2))


class RatingReport(RatingBlock):
    """A RatingBlock with a length limit, for small models."""

    justification: Annotated[str, StringConstraints(min_length=1, max_length=300)]


def ratings_from_text(speech: str) -> RatingBlock | None:
    """Parse lines like `Correctness: 7`. Return None unless each criterion appears once."""
    ratings: dict[str, int] = {}
    for name in WEIGHTS:
        value = labelled_value(speech, rf"{name}(?:\s*\(\d+\s*%\))?")
        # Half points, ranges and other scales are not accepted.
        value = _BRACKETED.sub(r"\1", value)
        found = re.fullmatch(r"(10|[1-9])(?:\s*/\s*10)?(?!\w|[.,]\d|\s*[-–/]\s*\d).*", value)
        if found is None:
            return None
        ratings[name] = int(found[1])
    reason = labelled_value(speech, "justification")
    finetune = labelled_value(speech, r"would[- ]benefit[- ]from[- ]finetune").lower()
    finetune = _BRACKETED.sub(r"\1", finetune)
    if not reason or finetune not in ("true", "false"):
        return None
    return RatingBlock(
        **ratings, justification=reason[:1200], would_benefit_from_finetune=finetune == "true"
    )


def ratings_from_report(report: RatingBlock, speech: str) -> RatingBlock | None:
    """Return an extracted block, or None if one of its numbers is not in the judge's text."""
    numbers = set(re.findall(r"\d+", " ".join(own_sentences(speech))))
    given = report.model_dump(include=set(WEIGHTS)).values()
    return report if numbers.issuperset(str(rating) for rating in given) else None
