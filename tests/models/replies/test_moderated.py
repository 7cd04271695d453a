import pytest
from pydantic import ValidationError

from contend.models.replies.moderated import StageBlock, StatementMarks

CRITERIA = [name for name in StatementMarks.model_fields if name != "statement"]


def test_the_schema_of_a_score_has_its_bounds() -> None:
    marks = StageBlock.model_json_schema()["$defs"]["StatementMarks"]["properties"]
    for name in CRITERIA:
        assert marks[name] == {
            "type": "number",
            "title": name.replace("_", " ").title(),
            "minimum": 0,
            "maximum": 10,
        }


@pytest.mark.parametrize(("written", "score"), [(7.5, 7.5), ("8 out of 10", 8), ("6", 6)])
def test_a_score_may_be_written_as_text(written: object, score: float) -> None:
    marks = StatementMarks.model_validate({"statement": "S1"} | dict.fromkeys(CRITERIA, written))
    assert marks.persuasiveness == score


@pytest.mark.parametrize("written", [11, "11", True, "good"])
def test_other_scores_are_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        StatementMarks.model_validate({"statement": "S1"} | dict.fromkeys(CRITERIA, written))
