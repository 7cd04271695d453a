"""The report of a run."""

import re
from typing import Any

from contend.evals.report import build_report
from contend.evals.run_store import ArmDraft, EvalResult

OPTIONS = {"data": ["questions"], "model": "openai:m", "samples": 5, "seed": 0, "judge": None}


def _result(arm: str, number: int, *, right: bool | None = True, **more: Any) -> EvalResult:
    about: dict[str, Any] = {
        "item": f"q/{number}",
        "data": "q",
        "topic": "odd" if number % 2 else "even",
    }
    about |= {"kind": "choice", "arm": arm, "status": "done", "answer": "A", "right": right}
    about |= {
        "calls": 1,
        "input_tokens": 100,
        "output_tokens": 50,
        "cost_usd": 0.01,
        "seconds": 2.0,
    }
    return EvalResult(**about | more)


def _by_key(*results: EvalResult) -> dict[tuple[str, str], EvalResult]:
    return {(each.item, each.arm): each for each in results}


def _cells(markdown: str, arm: str, table: str) -> list[str]:
    section = markdown.split(f"## {table}")[1].split("## ", maxsplit=1)[0]
    row = next(line for line in section.splitlines() if line.startswith(f"| {arm} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_makes_no_claim_on_few_items() -> None:
    results = [_result("single", n, right=n < 5) for n in range(20)]
    results += [_result("refine", n, right=n < 15, debated=True) for n in range(20)]
    text = build_report(OPTIONS, _by_key(*results)).as_markdown()
    assert "Too few items for a claim: n = 20, and at least 30 are needed." in text
    assert "too few items for a claim (+50.0 points" in text
    assert "- refine against single: better" not in text


def test_makes_a_claim_on_enough_items() -> None:
    results = [_result("single", n, right=n < 10) for n in range(40)]
    results += [_result("refine", n, right=n < 30) for n in range(40)]
    text = build_report(OPTIONS, _by_key(*results)).as_markdown()
    assert "- refine against single: better (+50.0 points" in text
    assert _cells(text, "single", "Accuracy and cost")[:4] == [
        "single",
        "25.0%",
        "14.2% to 40.2%",
        "40",
    ]
    assert _cells(text, "single", "Accuracy and cost")[4:] == ["1.0", "150", "2.0", "$0.4000"]


def test_counts_failed_and_unreadable_runs_separately() -> None:
    results = [
        _result("single", 1),
        _result("single", 2, right=False, answer=None),
        _result("single", 3, right=None, status="failed", error="Debater (m): no credit"),
        _result("single", 4, right=None, status="not_applicable"),
    ]
    text = build_report(OPTIONS, _by_key(*results)).as_markdown()
    assert _cells(text, "single", "Accuracy and cost")[1:4] == ["50.0%", "9.5% to 90.5%", "2"]
    assert _cells(text, "single", "Runs") == ["single", "4", "2", "1", "1", "1"]
    assert "| q/3 | single | Debater (m): no credit |" in text


def test_an_unknown_price_is_shown_as_unknown() -> None:
    text = build_report(OPTIONS, _by_key(_result("single", 1, cost_usd=None))).as_markdown()
    assert _cells(text, "single", "Accuracy and cost")[-1] == "unknown"


def test_reports_what_the_exchange_changed() -> None:
    drafts = [
        ArmDraft(seat="a", answer="A", right=True),
        ArmDraft(seat="b", answer="B", right=False),
    ]
    results = [
        _result("refine", 1, right=False, drafts=drafts, vote_right=True),
        _result("refine", 2, right=True, drafts=drafts, vote_right=False),
        _result("refine", 3, right=True, drafts=drafts, vote_right=False),
    ]
    report = build_report(OPTIONS, _by_key(*results))
    row = _cells(report.as_markdown(), "refine", "What the exchange changed")
    assert row == ["refine", "3", "1 (33%)", "2 (67%)", "1", "2", "3 (100%)", "50.0%"]
    assert report.as_html().count("<svg") == 2


def test_reports_probabilities_the_gate_and_topics() -> None:
    results = [
        _result("forecast", 1, kind="forecast", probability=0.8, truth="yes"),
        _result("forecast", 2, kind="forecast", probability=0.4, truth="no"),
        _result("gated", 1, debated=False, calls=5),
        _result("gated", 2, debated=True, calls=13),
        _result("refine", 1, debated=True, calls=13),
        _result("refine", 2, debated=True, calls=13),
    ]
    report = build_report(OPTIONS, _by_key(*results))
    text = report.as_markdown()
    assert _cells(text, "forecast", "Probabilities")[:3] == ["forecast", "2", "0.100"]
    assert "Not debated, because the drafts agreed: 1 of 2 items." in text
    assert "Mean calls per item: 9.00; refine without the gate: 13.00." in text
    assert "| odd | 1 of 1 | 1 of 1 | 1 of 1 |" in text
    assert "Reliability diagram" in report.as_html()


def test_html_report_is_self_contained_and_escapes_model_text() -> None:
    bad = _result("single", 1, right=None, status="failed", error="<script>alert(1)</script>")
    page = build_report(OPTIONS, _by_key(bad, _result("single", 2))).as_html()
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page)
    assert "default-src 'none'" in page
