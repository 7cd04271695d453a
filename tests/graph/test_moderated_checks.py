"""The fact checker: its claims, sources, verdicts and failures."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contend.graph.readings import FactCheck
from contend.graph.settings import data_home
from contend.graph.values import Document
from contend.models.replies.moderated import CheckBlock
from contend.retrieval.documents import load_documents, save_corpus
from tests.support.floor import HELD, TOPIC, asked_for, debate, floor_cast, told, with_block
from tests.support.scripted import Cast, Played, Sent

REPORT = """The audit of 2024 found 12 holes in the open project and 31 in the closed one.

Both projects were reviewed by four people over six weeks.
"""
FALSE = "The audit of 2024 found 50 holes in the open project."
TRUE = "Both projects were reviewed by four people."
UNKNOWN = "Most people prefer open software."


@pytest.fixture
def documents(tmp_path: Path) -> list[Document]:
    (tmp_path / "audit.txt").write_text(REPORT)
    loaded, _ = load_documents([tmp_path / "audit.txt"])
    save_corpus(loaded, data_home())
    return [each.document for each in loaded]


def check(sent: Sent) -> str:
    """Decide from the passages in the prompt, as a real checker would."""
    claim = sent.user.split("## The claim to check")[1]
    if FALSE in claim and "found 12 holes" in sent.user:
        found = {"verdict": "contradicted", "source": "[audit:1]", "why": "It found 12."}
    elif TRUE in claim and "four people" in sent.user:
        found = {"verdict": "supported", "source": "audit:1", "why": "It says so."}
    else:
        found = {"verdict": "unverifiable", "source": "made up:9", "why": "Nobody knows."}
    return with_block("Checked.", **found)(sent)


def claims_of(sent: Sent) -> str:
    """List the claims of Ben's argument, and none for other statements."""
    about = sent.user.split("## The statement\n")[1]
    listed = [FALSE, TRUE, UNKNOWN] if about.startswith("Ben, argument:") else []
    return with_block("Listed.", claims=listed)(sent)


def checking_cast(**lines: Any) -> Cast:
    checker: dict[str, Any] = {"claims": claims_of, "check": check}
    ben = {"argument": f"{FALSE} {UNKNOWN}", "correction": "I take the 50 back: it was 12."}
    return floor_cast(**{"checker": checker, "ben": ben} | lines)


async def checked(cast: Cast, documents: list[Document], **changes: Any) -> Played:
    given = {"question": TOPIC, "documents": documents}
    return await debate(cast, given, **{"round_count": 1, "fact_check": True} | changes)


def scored(cast: Cast, stage: str) -> Sent:
    """Return the call that scores a stage in spoken order; the calls arrive in any order."""
    asked, first = f"## The statements to score: {stage}\n", f"Speaker 1: {HELD['Ann']}"
    return next(s for s in cast.sent_to("judge") if asked in s.user and first in s.user)


async def test_speaker_of_a_contradicted_claim_can_correct_it(
    documents: list[Document],
) -> None:
    cast = checking_cast()
    played = await checked(cast, documents)
    lines = told(played)
    at = lines.index("ben argument 1")
    assert lines[at : at + 4] == [
        "ben argument 1",
        "fact_checker fact_check 1",
        "ben correction 1",
        "moderator request 1",
    ]
    found = played.turns[at + 1].assessment
    assert isinstance(found, FactCheck)
    assert [(c.claim, c.verdict, c.source) for c in found.claims] == [
        (FALSE, "contradicted", "audit:1"),
        (TRUE, "supported", "audit:1"),
        (UNKNOWN, "unverifiable", "no source"),
    ]
    assert found.claims[2].why == "Nobody knows. It named 'made up:9', which it was not shown."
    assert found.turn == "r1.argument.ben"
    asked = next(s for s in cast.sent_to("ben") if asked_for(s) == "correction")
    wrong = asked.user.split("## What the fact checker found")[1]
    assert FALSE in wrong
    assert TRUE not in wrong.split("## ")[0]
    assert "[audit:1]" in wrong
    assert "At most 100 tokens" in wrong
    correction = played.turns[at + 2]
    assert correction.replies_to == "r1.argument.ben"
    assert correction.text == "I take the 50 back: it was 12."


async def test_fact_checks_are_recorded_and_shown_to_speakers_and_judge(
    documents: list[Document],
) -> None:
    cast = checking_cast()
    played = await checked(cast, documents)
    checks = played.state["trace"]["fact_checks"]
    assert [(c["seat"], c["verdict"]) for c in checks] == [
        ("ben", "contradicted"),
        ("ben", "supported"),
        ("ben", "unverifiable"),
    ]
    assert checks[0]["correction"] == "I take the 50 back: it was 12."
    assert checks[1]["correction"] is None
    closing = next(s for s in cast.sent_to("ann") if asked_for(s) == "closing")
    assert f"contradicted [audit:1]: {FALSE}" in closing.user
    round_one = scored(cast, "round 1")
    assert f"S3: contradicted [audit:1]: {FALSE}" in round_one.user
    assert "the speaker's reply: I take the 50 back" in round_one.user
    (event,) = [e for e in played.named("fact_check") if e["metadata"]["claims"]]
    assert event["metadata"]["turn"] == "r1.argument.ben"


@pytest.mark.parametrize("verdict", ["contradicted", "supported"])
async def test_verdict_with_an_unknown_source_is_unverifiable(verdict: str) -> None:
    found = {"verdict": verdict, "source": "audit:7", "why": "It says so."}
    checker: Any = {"claims": claims_of, "check": with_block("Checked.", **found)}
    played = await debate(checking_cast(checker=checker), round_count=1, fact_check=True)
    checks = played.state["trace"]["fact_checks"]
    assert {(c["verdict"], c["source"]) for c in checks} == {("unverifiable", "no source")}
    assert "which it was not shown" in checks[0]["why"]
    assert not [turn for turn in played.turns if turn.phase == "correction"]


@pytest.mark.parametrize(
    ("named", "source"),
    [
        ("[audit:1], [terms-and-more:2]", "audit:1, terms-and-more:2"),
        ("[audit:1] [terms-and-more:2]", "audit:1, terms-and-more:2"),
        ("audit:1 and own knowledge.", "audit:1"),
        ("Own knowledge.", "own knowledge"),
        ("audit:1; audit:7", "no source"),
    ],
)
def test_fact_check_can_cite_several_sources(named: str, source: str) -> None:
    block = CheckBlock(verdict="contradicted", source=named, why="It says so.")
    found = block.of(FALSE, ["audit:1", "terms-and-more:2"])
    assert found.source == source
    assert found.verdict == ("unverifiable" if source == "no source" else "contradicted")


async def test_every_fact_check_call_has_its_own_nonce() -> None:
    checker: Any = {"claims": with_block("Two.", claims=[TRUE, UNKNOWN]), "check": check}
    cast = floor_cast(checker=checker)
    await debate(cast, round_count=1, fact_check=True)
    nonces = [sent.nonce for sent in cast.sent_to("checker")]
    assert len(nonces) == 8 * 3
    assert len(set(nonces)) == len(nonces)


async def test_judge_and_moderator_see_which_quotes_were_not_found(
    documents: list[Document],
) -> None:
    made_up = "“the closed one was never audited by Ann at all”"
    real = "“reviewed by four people over six weeks”"
    cast = floor_cast(ben={"argument": f"It says {made_up} [audit:1], and {real} [audit:1]."})
    await checked(cast, documents, fact_check=False)
    round_one = scored(cast, "round 1")
    assert "NOT FOUND" not in scored(cast, "opening statements").user
    neutral = made_up.replace("Ann", "Speaker 1")
    assert f"S3: NOT FOUND in the documents, cited as [audit:1]: {neutral}" in round_one.user
    assert f"S3: FOUND at [audit:1]: {real}" in round_one.user
    for part in ("summary", "final"):
        (sent,) = [s for s in cast.sent_to("moderator") if asked_for(s) == part]
        assert f"(Ben, round 1): {made_up}" in sent.user


async def test_every_statement_is_checked_and_nothing_else() -> None:
    cast = floor_cast()
    played = await debate(cast, round_count=1, fact_check=True)
    checks = [turn for turn in played.turns if turn.phase == "fact_check"]
    said = [t.id for t in played.turns if t.role == "position_advocate"]
    assert [turn.replies_to for turn in checks] == said
    assert checks[0].text == "There is nothing in this statement that could be checked."
    assert not [turn for turn in played.turns if turn.phase == "correction"]


@pytest.mark.parametrize("named", ["", "Own knowledge"])
async def test_checker_uses_its_own_knowledge_without_documents(named: str) -> None:
    made_up = with_block("Checked.", verdict="contradicted", source=named, why="It is not so.")
    cast = checking_cast(checker={"claims": claims_of, "check": made_up})
    played = await debate(cast, round_count=1, fact_check=True)
    sources = {each["source"] for each in played.state["trace"]["fact_checks"]}
    assert sources == {"own knowledge"}
    assert told(played).count("ben correction 1") == 1


async def test_each_claim_is_checked_with_its_nearest_passages(documents: list[Document]) -> None:
    cast = checking_cast()
    played = await checked(cast, documents, passages=1)
    asked = [s for s in cast.sent_to("checker") if asked_for(s) == "check"]
    assert "found 12 holes" in asked[0].user
    turn = next(t for t in played.turns if t.phase == "fact_check" and t.passages)
    assert turn.passages == ("audit:1",)


async def test_the_claims_of_a_statement_are_checked_at_the_same_time() -> None:
    cast, waiting, together = checking_cast(), 0, asyncio.Event()

    async def gate(sent: Sent) -> None:
        nonlocal waiting
        if "Check this one claim" not in sent.user:
            return
        waiting += 1
        if waiting == 3:
            together.set()
        async with asyncio.timeout(5):
            await together.wait()

    cast.before = gate
    played = await debate(cast, round_count=1, fact_check=True)
    assert waiting == 3
    assert played.degraded == []


async def test_the_stages_are_scored_at_the_same_time() -> None:
    cast, waiting, together = floor_cast(), 0, asyncio.Event()

    async def gate(sent: Sent) -> None:
        nonlocal waiting
        if "Score each of these" not in sent.user:
            return
        waiting += 1
        if waiting == 8:
            together.set()
        async with asyncio.timeout(5):
            await together.wait()

    cast.before = gate
    played = await debate(cast, round_count=2)
    assert waiting == 8
    assert played.degraded == []


async def test_no_more_than_five_claims_are_checked() -> None:
    many = with_block("Listed.", claims=[f"Claim number {n} is so." for n in range(9)])
    cast = floor_cast(
        checker={"claims": many, "check": with_block("x", verdict="supported", source="", why="")}
    )
    played = await debate(cast, round_count=0, fact_check=True)
    first = next(turn for turn in played.turns if turn.phase == "fact_check")
    assert isinstance(first.assessment, FactCheck)
    assert len(first.assessment.claims) == 5


async def test_unreadable_claim_list_is_reported_and_nothing_is_checked() -> None:
    cast = floor_cast(checker={"claims": "I have my doubts."})
    played = await debate(cast, round_count=0, fact_check=True)
    assert {(entry.what, entry.seat) for entry in played.degraded} == {
        ("not_checked", "fact_checker")
    }
    assert played.state["trace"]["fact_checks"] == []


async def test_unreadable_fact_check_leaves_the_claim_unverifiable() -> None:
    cast = checking_cast(checker={"claims": claims_of, "check": "Hm."})
    played = await debate(cast, round_count=1, fact_check=True)
    verdicts = {(c["verdict"], c["source"]) for c in played.state["trace"]["fact_checks"]}
    assert verdicts == {("unverifiable", "no source")}
    assert [entry.what for entry in played.degraded] == ["not_checked"] * 3


async def test_failed_checker_does_not_stop_the_debate() -> None:
    def fail(sent: Sent) -> str:
        raise ConnectionError("down")

    cast = floor_cast(checker={"claims": fail})
    played = await debate(cast, round_count=0, fact_check=True, max_retries=0)
    assert played.state["final_answer"] == "The summary of the debate."
    assert [e.what for e in played.degraded if e.what == "not_checked"] == ["not_checked"] * 4


@pytest.mark.parametrize(
    ("who", "what"), [("checker", "claims"), ("checker", "check"), ("judge", "stage")]
)
async def test_tokens_of_calls_without_a_result_are_counted(who: str, what: str) -> None:
    lines: dict[str, Any] = {"claims": claims_of, "check": check} if who == "checker" else {}
    cast = checking_cast(**{who: lines | {what: ""}})
    played = await debate(cast, round_count=1, fact_check=True, max_retries=0)
    used, calls = played.state["trace"]["usage"], len(cast.sent)
    assert (used["input_tokens"], used["output_tokens"]) == (10 * calls, 5 * calls)
