"""Concessions count only when stated explicitly, with a name that fits one seat."""

import pytest

from contend.models.replies.conviction import (
    Claim,
    ConvictionBlock,
    claim_from_block,
    claim_from_report,
    claim_from_text,
    named_seat,
)

KNOWN = {
    "ann": "ann",
    "Ann": "ann",
    "model-b": "ben",
    "Ben": "ben",
    "model-b-2": "cyd",
    "Debater 3": "cyd",
    "Debater 30": "dan",
}


@pytest.mark.parametrize(
    ("speech", "convinced"),
    [
        ("NOT CONVINCED", False),
        ("NOT CONVINCED: B is wrong", False),
        ("**NOT CONVINCED**\nCONVINCED they are not.", False),
        ("I am not convinced.", False),
        ("CONVINCED: model-b.", True),
        ("CONVINCED: Ben - the costs decide", True),
        ("**CONVINCED:** Ben", True),
        ("CONVINCED by Ben", True),
        ("I am convinced: Ben", True),
        ("I read it again.\n\nCONVINCED: Ben", True),
        ("", None),
        ("Ben says that I am CONVINCED: Ben.", None),
        ("> CONVINCED: Ben", None),
        ("Convinced as I am of my answer, I stay.", None),
        ("Ben wanted me to be\nCONVINCED: Ben", None),
        ("Hm.\n\nNOT CONVINCED\n\nOr rather:\n\nCONVINCED: Ben", None),
    ],
)
def test_reads_a_concession_from_its_own_line(speech: str, convinced: bool | None) -> None:
    claim = claim_from_text(speech)
    assert (claim.convinced if claim else None) == convinced


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"convinced": True, "convinced_by": ""}, "Ben"),
        ({"convinced": True, "convinced_by": " "}, "Ben"),
        ({"convinced": True}, "Ben"),
        ({"convinced": True, "convinced_by": "Ann"}, "Ann"),
        ({"convinced": False}, ""),
    ],
)
def test_a_block_without_a_name_takes_the_name_from_the_speech(
    said: dict[str, object], named: str
) -> None:
    block = ConvictionBlock.model_validate(said)
    assert claim_from_block(block, "CONVINCED: Ben\nThe costs decide.").named == named


def test_null_fields_count_as_missing() -> None:
    left_empty = {"convinced_by": None, "argument": None, "quote": None, "reasoning": None}
    block = ConvictionBlock.model_validate({"convinced": "false"} | left_empty)
    assert claim_from_block(block, "Mine holds.") == Claim(convinced=False, reasoning="Mine holds.")


@pytest.mark.parametrize(
    ("named", "seat"),
    [
        ("model-b.", "ben"),
        ("model-b", "ben"),
        ("MODEL-B - because of the costs", "ben"),
        ("model-b-2", "cyd"),
        ("model-b-3", None),
        ("Debater 3", "cyd"),
        ("Debater 30: the costs", "dan"),
        ("Debater 31", None),
        ("**Ann**", "ann"),
        ("“Ann”, who is right", "ann"),
        ("Anna", None),
        ("the last speaker", None),
        ("", None),
    ],
)
def test_matches_a_name_to_one_seat(named: str, seat: str | None) -> None:
    assert named_seat(named, KNOWN) == seat


def test_prefers_the_exact_match_among_similar_names() -> None:
    known = {"b": "b", "b-2": "bang", "B": "b", "B!": "bang", "B-2": "two"}
    assert named_seat("B-2", known) == "two"
    assert named_seat("B!", known) == "bang"
    assert named_seat("B", known) == "b"


def test_extraction_cannot_concede_for_the_speaker() -> None:
    report = ConvictionBlock(convinced=True, convinced_by="Ben")
    assert claim_from_report(report, "Ben is wrong in every respect.") is None
    claim = claim_from_report(report, "All in all Ben persuaded me.")
    assert claim is not None
    assert (claim.convinced, claim.read_from) == (True, "extraction")
    stays = claim_from_report(ConvictionBlock(convinced=False), "Ben is wrong.")
    assert stays is not None
    assert not stays.convinced
