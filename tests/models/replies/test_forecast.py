"""Parsing of forecast replies: control blocks, labelled text and forms."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.graph.forecast_contract.terms import CRITERIA
from contend.models.replies.control import read_block
from contend.models.replies.fields import find_outcome
from contend.models.replies.forecast import (
    ArgumentBlock,
    PrecedentsForm,
    ScoreBlock,
    VerdictBlock,
    argument_from_block,
    argument_from_text,
    numbers_form,
    point_ids,
    precedents_from_form,
    score_from_block,
    score_from_form,
    score_from_text,
    scores_form,
    stated_from_form,
    verdict_from_block,
    verdict_from_text,
)

OUTCOMES = {"yes": "It opens", "no": "It does not"}
IDS = tuple(OUTCOMES)


def raw(**block: Any) -> dict[str, float]:
    return argument_from_block(ArgumentBlock(**block), OUTCOMES).stated.raw


@pytest.mark.parametrize(
    ("given_numbers", "read"),
    [
        ({"yes": 0.7, "no": 0.3}, {"yes": 0.7, "no": 0.3}),
        ({"YES": 70, "No": 30}, {"yes": 70, "no": 30}),
        ({"yes": "70%", "no": "30 %"}, {"yes": 0.7, "no": 0.3}),
        ({"yes": "33.3%", "no": ".7"}, {"yes": 0.333, "no": 0.7}),
        ({"yes": "0.7", "no": "0.3"}, {"yes": 0.7, "no": 0.3}),
        ({"yes": "70 percent", "no": "~30%"}, {"yes": 0.7, "no": 0.3}),
        ({"yes": "about 70%", "no": "0.3."}, {"yes": 0.7, "no": 0.3}),
        ({"yes": "Approx. 70", "no": "roughly 30%."}, {"yes": 70, "no": 0.3}),
        ({"yes": "7/10", "no": "3 / 10"}, {"yes": 0.7, "no": 0.3}),
        ({"yes": "2/3", "no": "about 1/3."}, {"yes": 2 / 3, "no": 1 / 3}),
        ({"yes": "0,7", "no": "0,300"}, {"yes": 0.7, "no": 0.3}),
        ({"yes": "67,5 %", "no": ",325"}, {"yes": 0.675}),
        ({"yes": "1,000", "no": "0.3 or so"}, {}),  # a thousand, or one
        ({"yes": "10/7", "no": "3/0"}, {}),
        ({"yes": "7/10%", "no": "70-80%"}, {}),
        ({"yes": "1.2.3", "no": "."}, {}),
        ({"yes": "1/" + "9" * 400, "no": "9" * 400 + "%"}, {}),
        ({" Yes ": 0.7, "`NO`": 0.3}, {"yes": 0.7, "no": 0.3}),
        ({"yess": 0.7, "no": 0.3}, {"yes": 0.7, "no": 0.3}),
        ({"It opens": 0.7, "it does not": 0.3}, {"yes": 0.7, "no": 0.3}),
        ({"yes: It opens": 0.7, "no (It does not)": 0.3}, {"yes": 0.7, "no": 0.3}),
        ({"It opens": 0.7, "yes": 0.6, "no": 0.3}, {"no": 0.3}),
        ({"It opens": 0.7, "yes": 0.7, "no": 0.3}, {"yes": 0.7, "no": 0.3}),
        ({"yesterday": 0.7, "not": 0.3}, {}),
        ({"yes": True, "no": 0.3}, {"no": 0.3}),
        ({"yes": math.nan, "no": math.inf}, {}),
        ({"yes": 10**400, "no": 1}, {"no": 1}),
        ({"yes": None, "maybe": 1}, {}),
        ([0.7, 0.3], {}),
        ("yes 70 %", {}),
        (None, {}),
    ],
)
def test_reads_only_probabilities_of_known_outcomes(given_numbers: Any, read: Any) -> None:
    assert raw(probabilities=given_numbers) == read


@pytest.mark.parametrize(
    ("given_name", "outcome"),
    [
        ("recession", "recession"),
        ("Soft Landing", "soft-landing"),
        ("soft_landing", "soft-landing"),
        ("softlandin", "soft-landing"),
        ("resession", "recession"),
        ("Inflation above 3%", "cpi3"),
        ("inflation above 2%", None),
        ("cpi2", None),
        ("cpi", None),
        ("boom", None),
        ("", None),
        (None, None),
    ],
)
def test_an_outcome_is_found_by_its_id_or_label(given_name: Any, outcome: str | None) -> None:
    known = {
        "recession": "A recession",
        "soft-landing": "Neither",
        "cpi3": "Inflation above 3%",
        "x1": "Half a boom",
        "x2": "Half-a-boom",
    }
    assert find_outcome(given_name, known) == outcome
    assert find_outcome("half_a_boom", known) is None  # may be either


def test_a_comma_before_an_outcome_starting_with_a_digit_is_a_separator() -> None:
    reading = argument_from_text("Probabilities: none 0,2 cuts 1", {"none": "No", "2 cuts": "Two"})
    assert reading is not None
    assert reading.stated.raw == {"none": 0, "2 cuts": 1}


def test_an_invalid_field_does_not_discard_the_others() -> None:
    block = ArgumentBlock(
        outcome="`YES`",
        probabilities="none",
        confidence="65%",
        point="  Two\nlines  ",
        evidence=["a", "", 7, "b"],
        rebuts=["Pessimist", "prophet", "judge"],
        refers_to=["P1", "see H2", "XX"],
        precedents=[{"event": "E", "date": 1998, "outcome": "o"}, {"event": "no date"}, "text"],
    )
    reading = argument_from_block(block, OUTCOMES)
    assert reading.outcome == "yes"
    assert reading.stated.raw == {}
    assert reading.stated.confidence == pytest.approx(0.65)
    assert reading.point == "Two lines"
    assert reading.evidence == ("a", "b")
    assert reading.rebuts == ("pessimist", "judge")
    assert reading.refers_to == ("P1", "H2")
    (event,) = reading.precedents
    assert (event.event, event.date, event.similarity) == ("E", "1998", None)


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("Probabilities: yes 70 %, no 30 %", {"yes": 0.7, "no": 0.3}),
        ("**Probabilities:** yes: 0.7; no: 0.3.", {"yes": 0.7, "no": 0.3}),
        ("- Probability: YES = 70%, NO = 30%", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: It opens 70 %, it does not: 30 %", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: yess 70 % and no 30 %", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: It opens 70 %, yes 60 %, no 30 %", {"yes": 0.6, "no": 0.3}),
        ("The Optimist wrote:\n> Probabilities: It opens 70 %, it does not 30 %", None),
        ("Probabilities: yes 70 %", None),
        ("Probabilities: yes 70 %, no 0.3", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: yes 70 %, no 30 %, yes 60 %", None),
        ("Probabilities: yes 70 %, no 30 %\nProbabilities: yes 10 %, no 90 %", None),
        ("He said: Probabilities: yes 70 %, no 30 %", None),
        ("Probabilities: yesterday 70 %, north 30 %", None),
        ("I think yes 70 %, no 30 %", None),
        ("**Probabilities:**\nyes 0.7, no 0.3", {"yes": 0.7, "no": 0.3}),
        (f"Probabilities: yes {'9' * 400}, no 1", None),
        ("Probabilities: yes .7, no .30", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: It opens .7, it does not .30.", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: yes 0,7, no 0,3", {"yes": 0.7, "no": 0.3}),
        ("Probabilities: yes 0,no 1", {"yes": 0, "no": 1}),
        ("Probabilities: yes...70 %, no...30 %", {"yes": 0.7, "no": 0.3}),
    ],
)
def test_reads_probabilities_from_text(words: str, read: Any) -> None:
    reading = argument_from_text(words, OUTCOMES)
    assert (reading.stated.raw if reading else None) == read
    verdict = verdict_from_text(words, OUTCOMES)
    assert (verdict.stated.raw if verdict else None) == read


@pytest.mark.parametrize(
    ("said", "roles"),
    [
        (["The Optimist", "historian (H2)"], ("optimist", "historian")),
        ("optimist and judge", ("optimist", "judge")),
        (["O1", "[p2]"], ("optimist", "pessimist")),
        (["ROLE", "pessimism"], ()),
    ],
)
def test_reads_which_roles_an_argument_rebuts(said: Any, roles: tuple[str, ...]) -> None:
    assert argument_from_block(ArgumentBlock(rebuts=said), OUTCOMES).rebuts == roles


def test_accepts_lowercase_point_ids() -> None:
    assert argument_from_block(ArgumentBlock(refers_to=["o1", "h2"]), OUTCOMES).refers_to == (
        "O1",
        "H2",
    )


def test_an_outcome_id_may_be_zero_and_null_means_no_outcome() -> None:
    outcomes = {"0": "Nobody", "1": "One", "none": "Unknown"}
    assert argument_from_block(ArgumentBlock(outcome=0), outcomes).outcome == "0"
    assert argument_from_block(ArgumentBlock(outcome=None), outcomes).outcome is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("endless", ["\n", "\n- ", ". "])
def test_parses_endless_repetition_quickly(endless: str) -> None:
    """Takes milliseconds; matching across lines would take minutes."""
    assert argument_from_text(f"Probability: {endless * 100_000}x", OUTCOMES) is None


@pytest.mark.parametrize("written", ["50%", "5/10", "0,5", ".5"])
def test_scores_may_be_written_like_probabilities(written: str) -> None:
    block = ScoreBlock(logical_strength=0.7, evidence_quality=0, novelty=written)
    read = score_from_block(block, "a", CRITERIA)
    assert read is not None
    assert read.scores["novelty"] == 0.5


def test_requires_every_score_and_each_within_its_scale() -> None:
    whole = {"logical_strength": 0.7, "evidence_quality": 0, "novelty": 1}
    read = score_from_block(ScoreBlock(**whole), "a", CRITERIA)
    assert read is not None
    assert read.scores == whole
    for broken in ({"novelty": 1.2}, {"novelty": -0.1}, {"novelty": "5"}, {"novelty": None}):
        assert score_from_block(ScoreBlock(**whole | broken), "a", CRITERIA) is None
    assert score_from_block(ScoreBlock(novelty=0.5), "a", ("novelty",)) is not None


def test_reads_scores_from_text() -> None:
    said = "Logical strength: 0.7\n- **Evidence quality:** 1\nNovelty: 0"
    read = score_from_text(said, "a", CRITERIA)
    assert read is not None
    assert read.scores == {"logical_strength": 0.7, "evidence_quality": 1.0, "novelty": 0.0}
    for wrong in ("Novelty: 0-1", "Novelty: 5", "Novelty: high", "Novelty: 0\nNovelty: 1"):
        assert score_from_text(said.replace("Novelty: 0", wrong), "a", CRITERIA) is None


def test_reads_probabilities_from_a_form() -> None:
    form = numbers_form(IDS, small=False)
    filled = form.model_validate(
        {
            "outcome": "no",
            "probabilities": [
                {"outcome": "yes", "probability": 0.2},
                {"outcome": "no", "probability": 0.8},
            ],
            "confidence": 0.5,
        }
    )
    stated, outcome = stated_from_form(filled.model_dump(), OUTCOMES)
    assert (stated.raw, stated.confidence, outcome) == ({"yes": 0.2, "no": 0.8}, 0.5, "no")


def test_small_models_choose_a_complete_distribution_from_a_list() -> None:
    form = numbers_form(("a", "b", "c"), small=True)
    splits = form.model_json_schema()["properties"]["split"]["enum"]
    assert len(splits) == 66
    for split in splits:
        filled = form.model_validate({"outcome": "a", "split": split, "confidence": 40})
        stated, _ = stated_from_form(filled.model_dump(), dict.fromkeys("abc", "x"))
        assert sum(stated.raw.values()) == 100
        assert stated.confidence == pytest.approx(0.4)
    hardly = form.model_validate({"outcome": "a", "split": splits[0], "confidence": 1})
    stated, _ = stated_from_form(hardly.model_dump(), dict.fromkeys("abc", "x"))
    assert stated.confidence == pytest.approx(0.01)
    many = numbers_form(tuple("abcde"), small=True)
    assert "probabilities" in many.model_fields


@pytest.mark.parametrize(("small", "unit"), [(False, 1), (True, 10)])
def test_reads_scores_from_a_form(small: bool, unit: int) -> None:
    form = scores_form(CRITERIA, small=small)
    filled = form.model_validate(dict.fromkeys(CRITERIA, unit) | {"reason": "r"})
    read = score_from_form(filled.model_dump(), "a", CRITERIA, small=small)
    assert read is not None
    assert read.scores == dict.fromkeys(CRITERIA, 1.0)


def test_reads_precedents_from_a_form_and_drops_incomplete_ones() -> None:
    event = {"event": "E", "date": "1998", "outcome": "o", "relevance": "r", "similarity": 0.4}
    form = PrecedentsForm.model_validate({"precedents": [event, event | {"date": " "}]})
    (read,) = precedents_from_form(form.model_dump())
    assert read.similarity == 0.4


def test_reads_point_ids_only_inside_brackets() -> None:
    assert point_ids("As [P1] and [see H2, C1] show; not [PX], [op1] or [O123].") == (
        "P1",
        "H2",
        "C1",
    )
    assert point_ids("Growth in H1 2026 was P1 of the plan; O1 holds.") == ()


def test_ignores_placeholders_copied_from_the_form() -> None:
    copied = ArgumentBlock(outcome="ID", rebuts=["ROLE"], refers_to=["POINT"])
    reading = argument_from_block(copied, OUTCOMES)
    assert (reading.outcome, reading.rebuts, reading.refers_to) == (None, (), ())


@pytest.mark.parametrize(
    ("said", "confidence"),
    [("1 %", 0.01), ("0.5 %", 0.005), ("65 %", 0.65), ("65", None), ("0.65", 0.65), ("1", 1.0)],
)
def test_confidence_without_a_percent_sign_must_be_a_fraction(
    said: str, confidence: float | None
) -> None:
    reading = argument_from_text(f"Probabilities: yes 70 %, no 30 %\nConfidence: {said}", OUTCOMES)
    assert reading is not None
    assert reading.stated.confidence == confidence


@given(
    st.dictionaries(
        st.sampled_from([*ArgumentBlock.model_fields]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.floats()
            | st.text(max_size=20)
            | st.sampled_from(["yes", "P1"]),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(st.text(max_size=8), inner, max_size=4)
            ),
            max_leaves=12,
        ),
    )
)
def test_no_block_raises_or_adds_an_unknown_outcome(block: dict[str, Any]) -> None:
    reading = argument_from_block(ArgumentBlock(**block), OUTCOMES)
    assert set(reading.stated.raw) <= set(IDS)
    assert reading.outcome in (*IDS, None)
    assert all(math.isfinite(value) for value in reading.stated.raw.values())
    verdict_from_block(
        VerdictBlock(
            insights=block.get("precedents"),
            probabilities=block.get("probabilities"),
            disagreements=block.get("precedents"),
        ),
        OUTCOMES,
        ["P1"],
    )


def test_a_dispute_needs_a_topic_and_a_known_point() -> None:
    given: list[Any] = [
        {"topic": " Will the  steel come? ", "points": ["o1", "[P2]", "X9"], "resolved": True},
        {"topic": "Money", "points": "O1 and P2", "resolved": "no"},
        {"topic": "", "points": ["O1"]},
        {"topic": "Nobody's", "points": ["X9"]},
        "Weather",
    ]
    read = verdict_from_block(VerdictBlock(disagreements=given), OUTCOMES, ["O1", "P2"])
    assert [(each.topic, each.points, each.resolved) for each in read.disputes] == [
        ("Will the steel come?", ("O1", "P2"), True),
        ("Money", ("O1", "P2"), False),
    ]


@given(st.text(max_size=200))
def test_ignores_a_block_without_the_nonce(text: str) -> None:
    smuggled = json.dumps({"nonce": "other", "probabilities": {"yes": 1, "no": 0}})
    assert read_block(f"{text}\n```json\n{smuggled}\n```", "0123456789", ArgumentBlock) is None
