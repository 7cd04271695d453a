"""Parsing of critiques: verdicts, scores, point ids and statuses."""

import pytest

from contend.graph.protocols.adversarial import stop_rule
from contend.graph.readings import Assessment, Point
from contend.graph.settings import AdversarialSettings
from contend.models.replies.critique import (
    CritiqueBlock,
    CritiquePoint,
    ShortPoint,
    assessment_from_block,
    assessment_from_report,
)
from contend.models.replies.critique_words import assessment_from_text

SIGNAL = "Ready for Synthesis ✅"
KNOWN = [
    Point(id="S1", severity="critical", status="open", text="The cost is guessed."),
    Point(id="S2", severity="major", status="open", text="No migration plan."),
]

# What a critique says, and what it may be read as: the letters of its points (c, m or n for
# critical, major, minor; capital while not resolved), `ready`, a score, or `?` for unread.
READABLE = [
    # one line each, with its mark
    ("🔴 The cost is guessed.", "C"),
    ("🔴 Critical: the cost is guessed.", "C"),
    ("🔴 **Critical:** The cost is guessed.\n🟡 **Major:** No plan.", "C M"),
    ("**🔴 Critical** – The cost is guessed.", "C"),
    ("- 🔴 The cost is guessed.\n- 🟡 No plan.\n- 🟢 A typo.", "C M N"),
    ("* 🔴 The cost is guessed.\n* 🟢 A typo.", "C N"),
    ("1. 🔴 The cost is guessed.\n2. 🟡 No plan.", "C M"),
    ("1) **🔴 Critical:** The cost is guessed.", "C"),
    ("[🔴] The cost is guessed.", "C"),
    ("🔴 The cost is guessed. 🟡 No plan either.", "C M"),
    ("🔴 None of your numbers has a source.", "C"),
    ("🔴 No evidence is given for the cost.", "C"),
    ("🔴 Nothing in the answer deals with migration.", "C"),
    ("🔴 Your own ✅ list hides that the cost is guessed.", "C"),
    ("🔴 The answer ends by calling itself done ✅", "C"),
    ("🔴 Die Kosten sind geraten.", "C"),
    ("🔴 Критично: стоимость угадана ✅ не доказана.", "C"),
    ("🔴 Kritisch: keine.", "C"),
    ("🔴 成本是猜测的。", "C"),
    ("Critical: the cost is guessed.\n🟡 No plan.", "C M"),
    ("**Critical issue:** the cost is guessed.", "C"),
    ("🟡 No plan.\n🟢 A typo.", "M N"),
    ("The rest is fine.\n🟢 Minor: a typo.", "N"),
    # headings with lists below them
    ("### 🔴 Critical\n- The cost is guessed.\n- Latency is ignored.", "C C"),
    ("### 🔴 Critical\n\n1. The cost is guessed.\n\n### 🟡 Major\n\n1. No plan.", "C M"),
    ("## 🔴 Critical Issues\n\n**The cost.** It is guessed.\n\n## 🟢 Minor\n- A typo.", "C N"),
    ("**🔴 Critical:**\n- The cost is guessed.\n**🟢 Minor:**\n- None", "C"),
    ("### 🔴 Critical\n- The cost is guessed.\n  - by a factor of ten\n### 🟢 Minor\nNone.", "C"),
    ("### 🔴 Critical\nNone.\n\n### 🟡 Major\n- No plan.", "M"),
    ("### 🔴 Critical\n- None\n### 🟡 Major\n- No plan.\n- No owner.", "M M"),
    ("### Critical Issues\n- The cost is guessed.\n### Minor Issues\n- A typo.", "C N"),
    ("### 🟡 Major\n- No plan.\n\n### Strengths\n- Clear writing.", "M"),
    ("### 🔴 Critical\n- The cost is guessed.\n\nWhat is good:\n- Clear writing.", "C"),
    ("### ✅ Resolved\n- 🔴 S1: now sourced.\n### ❌ Unresolved\n- 🟡 S2: still no plan.", "c M"),
    # tables
    ("| Severity | Issue |\n|---|---|\n| 🔴 | The cost is guessed. |\n| 🟢 | A typo. |", "C N"),
    ("| S1 | 🔴 | ❌ UNRESOLVED | you call it ✅ but it is not |", "C"),
    # nothing critical, said so
    ("🔴 Critical: none\n🟡 Major: no plan.", "M"),
    ("🔴 Critical: None.\n🟡 Major: None.\n🟢 Minor: None.", ""),
    ("🔴 None remaining", ""),
    ("🔴 No critical issues remain.", ""),
    ("🔴 Critical issues: 0\n🟡 Major issues: 1\n- No plan.", "M"),
    ("🔴 Critical (0)\n🟡 No plan.", "M"),
    ("🔴 Critical: none. 🟡 Major: no plan.", "M"),
    ("No 🔴 critical issues remain.\n🟡 No plan.", "M"),
    ("There are no 🔴 issues left.\n🟢 A typo.", "N"),
    ("No critical issues remain.", ""),
    ("I see no critical issues.", ""),
    # earlier points marked
    ("S1 🔴 ✅ RESOLVED\nS2 🟡 ❌ UNRESOLVED", "c M"),
    ("✅ RESOLVED S1 🔴: now sourced.", "c"),
    ("**S1 🔴** – ✅ **RESOLVED**: now sourced.", "c"),
    ("- S1: ✅ RESOLVED\n- S2: ⚠️ PARTIALLY RESOLVED, no dates.", "c M"),
    ("- S1: ⚠ PARTIALLY RESOLVED\n- S2: ✅ RESOLVED", "C m"),
    ("S1 (🔴): ❌ UNRESOLVED – the source is a blog", "C"),
    ("🔴 S1: the cost has a source now → ✅ RESOLVED", "c"),
    ("🔴 S1: the cost has a source now. RESOLVED ✅", "c"),
    ("🔴 S1 ❌ UNRESOLVED: you claim ✅ RESOLVED", "C"),
    ("🔴 S1: better – ⚠️\n🟡 S2: done – ✅", "C m"),
    ("S1, S2: ✅ RESOLVED\n🟢 A typo.", "c m N"),
    ("S1 ✅ RESOLVED: sourced.\n🔴 The new plan has no rollback.", "c C"),
    # scores
    ("🔴 The cost is guessed.\nScore: 8/10", "C 8"),
    ("🟡 No plan.\n**Score: 8.5**", "M 8.5"),
    ("🟡 No plan.\n**Quality score:** 7 / 10.", "M 7"),
    ("🟡 No plan.\nOverall quality score: 9 out of 10", "M 9"),
    ("🟡 No plan.\n### Score\n10/10 would be a lie.", "M"),
    ("🟡 No plan.\nThe score was 8 last time.", "M"),
    ("🟡 No plan.\nScore: 85/100", "M"),
    ("🟡 No plan.\nScore: 6/10\nScore: 9/10", "M"),
    # ready
    (SIGNAL, "ready"),
    (f"Nothing left to attack.\n\n{SIGNAL}", "ready"),
    (f"**{SIGNAL}**", "ready"),
    (f"### {SIGNAL}", "ready"),
    (f"Verdict: {SIGNAL}", "ready"),
    (f"**Verdict:** {SIGNAL}.", "ready"),
    ("All good.\nready for synthesis ✅", "ready"),
    (f"S1 ✅ RESOLVED\n🟢 A typo.\nScore: 9/10\n\n{SIGNAL}", "c N 9 ready"),
    (f"Score: 5/10\n{SIGNAL}", "5 ready"),
    (f"> {SIGNAL}\n\nYou wish. 🔴 The cost is guessed.\n🔴 No plan.", "C C"),
    (f"🔴 The cost is guessed.\n```\n{SIGNAL}\n```", "C"),
    # what may stand before a signal that counts
    (f"The plan holds now.\n{SIGNAL}", "ready"),
    (f"I would not have bet on it. It holds now.\n{SIGNAL}", "ready"),
    (f"It holds.\n\n---\n\n{SIGNAL}", "ready"),
    (f"## Verdict\n{SIGNAL}", "ready"),
    (f"- 🟢 A typo\n{SIGNAL}", "N ready"),
    (f"🟢 It does not cite a table.\n{SIGNAL}", "N ready"),
    (f"S1 🔴 ✅ RESOLVED\nS2 🟡 ⚠️ PARTIALLY RESOLVED\n{SIGNAL}", "c M ready"),
    (f"**Score: 9/10**\n{SIGNAL}", "9 ready"),
    (f"🔴 The cost is guessed.\n{SIGNAL}", "C ready"),
    (f"My rating is 4.\n{SIGNAL}", "4 ready"),
    # a score or a signal that shares its line
    (f"🟢 fine. Quality score: 8/10\n{SIGNAL}", "N 8 ready"),
    (f"🟢 A typo. {SIGNAL}", "N ready"),
    (f"All points are settled. {SIGNAL}", "ready"),
    (f"All points are settled. Score: 9/10. {SIGNAL}", "9 ready"),
    (f"Score: 9/10 – {SIGNAL}", "9 ready"),
    (f"{SIGNAL} Score: 9/10", "9 ready"),
    (f"{SIGNAL}\nQuality: 9/10", "9 ready"),
    ("🟡 No plan, overall score 7/10", "M 7"),
    ("🟡 It does not name an owner. Score: 7/10", "M 7"),
    ("🔴 The cost is guessed – quality score: 4/10.", "C 4"),
    # what a heading says holds for its list only
    ("### ✅ Resolved\n- 🔴 S1: sourced.\nNew issues\n- 🔴 No rollback.", "c C"),
    ("### 🔴 Critical\n- The critical gap is the cost.", "C"),
    ("🔴 Critical issues: 1\n- The cost is guessed.", "C"),
    ("No critical or major issues remain.\n🟢 A typo.", "N"),
]


UNREADABLE = [
    "",
    "   \n\n",
    "I have my doubts.",
    "The answer is wrong, and critically so.",
    "Looks good to me!",
    "Ready for synthesis.",
    "Keine kritischen Punkte mehr.",
    "Bereit zur Synthese ✅",
    # the signal quoted, denied, conditional, or not at the end
    f'"{SIGNAL}"',
    f"`{SIGNAL}`",
    f"“{SIGNAL}” is what I cannot say.\n🟡 No plan.",
    f"Not {SIGNAL}\n🟡 No plan.",
    f"This is NOT {SIGNAL}",
    f"🟡 No plan.\nI would only say {SIGNAL} once there is one.",
    f"{SIGNAL}\n\nBut first mend the plan.",
    f"{SIGNAL} (almost)",
    f"{SIGNAL}? No.",
    f"Once S1 is mended: {SIGNAL}",
    f"{SIGNAL}\n{SIGNAL}",
    f"I will not say\n{SIGNAL}",
    f"I will never sign this.\n{SIGNAL}",
    f"The Proposer wants me to say:\n{SIGNAL}",
    f"The Proposer asks for the signal.\n{SIGNAL}",
    f"Only once the cost is sourced,\n{SIGNAL}",
    f"Is this what you hoped for?\n{SIGNAL}",
    f"The cost is fine now. I can't write this yet.\n\n---\n{SIGNAL}",
    f"- I will not say\n{SIGNAL}",
    f"🟡 I refuse to close with\n{SIGNAL}",
    f"You wrote:\n> all is well\n{SIGNAL}",
    f"> The Proposer ends with\n{SIGNAL}",
    f"> {SIGNAL}\n\nIndeed.\n{SIGNAL}",
    f"```\n```json\n{SIGNAL}",
    # ready, with something critical nobody accounts for
    f"The 🔴 about cost stands.\n{SIGNAL}",
    f"> 🔴 Critical: unsafe\n\nIt holds.\n{SIGNAL}",
    # ready, with a score that cannot be told
    f"I would give it 5/10 today.\n{SIGNAL}",
    f"Score: 9/10, or rather 5/10\n{SIGNAL}",
    # a critical issue that is somewhere in the prose
    "The 🔴 issue of round 1 stands.\n🟡 No plan.",
    "🟡 No plan.\nStill open: the 🔴 about cost.",
    "🟡 No plan.\nOne critical issue remains, the cost.",
    "🟡 No plan.\nNo 🔴 critical issues remain, except the cost.",
    "🟡 No plan.\nNo new 🔴 issues, but the old one stands.",
    "Summary: 🔴 1, 🟡 2, 🟢 0",
    "🔴 Critical: 2\n🟡 Major: none",
    "> 🔴 Critical: unsafe\n\n🟡 No plan.",
    "```\n🔴 the cost is guessed\n```\n🟡 No plan.",
    "1. The answer is unsafe (critical)\n2. 🟡 No plan.",
    "🟡 No plan, and 🔴 no cost.",
    "🟡 The critical path is missing.",
    "🟡 No plan.\nNo, critical issues remain.",
    "🟡 No plan.\nNo new 🔴 issues.",
    # a critical point that is not plainly settled, or was never raised
    "🔴 S1: ✅ RESOLVED? No, it is guessed.",
    "🔴 S1: ✅ RESOLVED, but only for one region.",
    "🔴 The cost → ✅ RESOLVED",
    "### ✅ Resolved\n- 🔴 The cost.",
    "| S1 | The cost | 🔴 Critical | ✅ |",
    # a heading with nothing readable under it
    "### 🔴 Critical\n\n### 🟡 Major\n- No plan.",
    "### 🔴 Critical\n```\nthe cost is guessed\n```\n🟡 No plan.",
    "🔴 Critical / 🟡 Major / 🟢 Minor",
    "### 🟢 Minor\nNone",
    # open points nobody can place
    "❌ UNRESOLVED: the cost.",
    "⚠️ PARTIALLY RESOLVED: the cost.\n🟢 A typo.",
    "### ❌ Unresolved\n- the cost\n\n🟢 A typo.",
]


def shown(assessment: Assessment | None) -> str:
    if assessment is None:
        return "?"
    letter = {"critical": "c", "major": "m", "minor": "n"}
    points = [
        letter[p.severity] if p.status == "resolved" else letter[p.severity].upper()
        for p in assessment.points
    ]
    score = [] if assessment.score is None else [f"{assessment.score:g}"]
    return " ".join(points + score + ["ready"] * assessment.ready)


@pytest.mark.parametrize(("speech", "meaning"), READABLE)
def test_reads_points_readiness_and_score_of_a_critique(speech: str, meaning: str) -> None:
    assessment = assessment_from_text(speech, KNOWN)
    assert shown(assessment) == meaning
    assert assessment is not None
    assert assessment.read_from == "words"


@pytest.mark.parametrize("speech", UNREADABLE)
def test_ambiguous_critiques_are_not_interpreted(speech: str) -> None:
    assert shown(assessment_from_text(speech, KNOWN)) == "?"


@pytest.mark.parametrize("speech", UNREADABLE)
def test_an_unreadable_critique_does_not_stop_the_debate(speech: str) -> None:
    assert stop_rule(assessment_from_text(speech, KNOWN), 4, AdversarialSettings()) is None


@pytest.mark.parametrize(
    ("speech", "said"),
    [
        ("🔴 Critical: none", True),
        ("No 🔴 critical issues remain.\n🟡 No plan.", True),
        ("S1 🔴 ✅ RESOLVED", True),
        ("🟡 No plan.", True),
        ("S1 🔴 ✅ RESOLVED\n🔴 No rollback.", False),
        ("🔴 Critical: none\n🔴 No rollback.", False),
        (f"🔴 No rollback.\n{SIGNAL}", False),
        (SIGNAL, False),
    ],
)
def test_reads_whether_no_critical_point_is_left(speech: str, said: bool) -> None:
    assessment = assessment_from_text(speech, KNOWN)
    assert assessment is not None
    assert assessment.none_critical is said


@pytest.mark.parametrize(
    ("speech", "text", "note"),
    [
        ("🔴 **Critical:** The cost is guessed.", "The cost is guessed.", ""),
        ("- 🔴 Critical – The *cost* is guessed.", "The cost is guessed.", ""),
        ("- 🔴 Critical – The *price* is a guess.", "The *price* is a guess.", ""),
        ("S1 🔴 ✅ RESOLVED", "The cost is guessed.", ""),
        ("🔴 S1: has a source now → ✅ RESOLVED", "The cost is guessed.", "has a source now"),
        ("### 🔴 Critical\n- The cost is guessed.", "The cost is guessed.", ""),
        ("🔴 3 of 4 numbers are guessed.", "3 of 4 numbers are guessed.", ""),
    ],
)
def test_stores_the_text_of_a_point_without_its_label(speech: str, text: str, note: str) -> None:
    assessment = assessment_from_text(speech, KNOWN)
    assert assessment is not None
    assert [(point.text, point.note) for point in assessment.points] == [(text, note)]


def test_known_points_keep_their_ids_and_new_ones_get_the_next() -> None:
    assessment = assessment_from_text("S2 🟡 ❌ still\n🔴 No rollback.\n🟢 S9: a typo.", KNOWN)
    assert assessment is not None
    assert [point.id for point in assessment.points] == ["S2", "S3", "S4"]


def raised(claimed: str, text: str, status: str = "open") -> CritiquePoint:
    return CritiquePoint.model_validate(
        {"id": claimed, "severity": "major", "status": status, "text": text}
    )


def test_duplicate_and_unknown_ids_in_a_block_are_replaced() -> None:
    points = [raised("S1", "a"), raised("S1", "b"), raised("S77", "c"), raised("", "d")]
    assessment = assessment_from_block(CritiqueBlock(ready=False, points=points), "…", KNOWN)
    assert [point.id for point in assessment.points] == ["S1", "S3", "S4", "S5"]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("The cost is guessed.", "S1"),
        ("the COST is guessed", "S1"),
        ("The cost is still guessed.", "S1"),
        ("No migration plan", "S2"),
        ("The latency is guessed.", "S3"),
        ("No plan.", "S3"),
        ("", "S3"),
    ],
)
def test_an_objection_repeated_in_a_block_keeps_its_id(text: str, point: str) -> None:
    block = CritiqueBlock(ready=False, points=[raised("", text)])
    assert [p.id for p in assessment_from_block(block, "…", KNOWN).points] == [point]
    assert [p.id for p in assessment_from_report(block, "…", KNOWN).points] == [point]


def test_an_objection_repeated_in_text_keeps_its_id() -> None:
    assessment = assessment_from_text("🔴 The cost is guessed.\n🟡 Nobody is named.", KNOWN)
    assert assessment is not None
    assert [p.id for p in assessment.points] == ["S1", "S3"]


def test_extraction_cannot_add_a_ready_signal_or_score() -> None:
    report = CritiqueBlock(ready=True, score=9, points=[raised("S2", "still none")])
    assert shown(assessment_from_report(report, "It is fine, a nine.", KNOWN)) == "M"
    assert shown(assessment_from_report(report, "Split it into 9 services.", KNOWN)) == "M"
    said = "Ready for synthesis: 9 of 10."
    assert shown(assessment_from_report(report, said, KNOWN)) == "M 9 ready"


def test_an_extracted_score_cannot_override_an_open_critical_point() -> None:
    critical = raised("S1", "guessed").model_copy(update={"severity": "critical"})
    report = CritiqueBlock(ready=False, score=9, points=[critical])
    read = assessment_from_report(report, "Score: 9 of 10.", KNOWN)
    assert read.score == 9
    assert stop_rule(read, 4, AdversarialSettings()) is None


def test_an_empty_block_clears_critical_points_unless_the_text_marks_one() -> None:
    empty = CritiqueBlock(ready=False, points=[])
    assert not assessment_from_report(empty, "I have my doubts.", []).none_critical
    assert assessment_from_block(empty, "Nothing is left to mend.", []).none_critical
    assert not assessment_from_block(empty, "🔴 It is wrong.", []).none_critical
    only_major = CritiqueBlock(ready=False, points=[raised("", "No plan.")])
    assert assessment_from_block(only_major, "🟡 No plan.", []).none_critical
    assert not assessment_from_block(only_major, "🔴 Wrong.\n🟡 No plan.", []).none_critical


def test_points_without_text_keep_their_stored_text() -> None:
    settled = CritiquePoint(id="S2", severity="minor", status="resolved", text="")
    left = CritiquePoint(id="S1", severity="critical", status="open", text="")
    assessment = assessment_from_block(
        CritiqueBlock(ready=False, points=[settled, left]), "…", KNOWN
    )
    assert [(p.id, p.status, p.text) for p in assessment.points] == [
        ("S2", "resolved", "No migration plan."),
        ("S1", "open", "The cost is guessed."),
    ]
    assert not assessment.none_critical


def test_extraction_cannot_resolve_a_point_that_was_never_raised() -> None:
    new = CritiquePoint(severity="critical", status="resolved", text="No rollback.")
    old = CritiquePoint(id="S1", severity="critical", status="resolved", text="Sourced.")
    report = CritiqueBlock(ready=False, points=[new, old])
    assert shown(assessment_from_report(report, "…", KNOWN)) == "C c"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It is short", "It is short"),
        ("word " * 23 + "falla", "word " * 22 + "word…"),
        ("word " * 17 + "clust", "word " * 16 + "word…"),
        ("x" * 120, "x" * 119 + "…"),
        ("word " * 23 + "end .", "word " * 23 + "end ."),
    ],
)
def test_a_truncated_objection_ends_at_a_word(text: str, kept: str) -> None:
    point = ShortPoint.model_validate({"severity": "major", "status": "open", "text": text})
    assert point.text == kept
    assert ShortPoint.model_json_schema()["properties"]["text"]["maxLength"] == 120


@pytest.mark.parametrize(
    ("written", "status"),
    [("UNRESOLVED", "open"), ("new", "open"), ("Partially_resolved", "partial"), ("Open", "open")],
)
def test_accepts_synonyms_for_a_status(written: str, status: str) -> None:
    assert raised("S1", "guessed", written).status == status
