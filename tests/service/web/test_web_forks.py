"""Forking and comparing debates on the web page."""

from typing import Any

import pytest

from tests.cli.support import debaters
from tests.service.web.browser import needs_browser, open_browser, serve_page
from tests.service.web.test_web_accessibility import barriers

pytestmark = [pytest.mark.slow, needs_browser]

QUESTION = "Should we split the monolith?"
QUICK = {"min_rounds": 1, "max_rounds": 2, "templates": False}


def finished(page: Any, address: str) -> str:
    """Start a debate, show it, and wait until it is done; return its address."""
    asked = {"question": QUESTION, "settings": QUICK}
    started = page.request.post(f"{address}/api/v1/debates", data=asked).json()
    page.goto(f"{address}/#/debates/{started['id']}")
    page.wait_for_selector(".pill-done")
    return str(page.url)


def choose(page: Any, turn: str, item: str) -> None:
    """Choose an item of a turn's menu, with the keyboard."""
    card = page.locator(f".turn:has-text('{turn}')").first
    card.locator(".fork-button").focus()
    page.keyboard.press("Enter")
    if item != "Fork from here…":
        page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == item
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")


def test_edits_a_turn_and_compares_both_debates(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        parent = finished(page, address)
        choose(page, "This is critique 1", "Edit and fork…")
        text = page.input_value("dialog textarea")
        assert '"severity": "critical"' in text
        assert barriers(page) == []
        browser.take_picture(page, "fork-edit")
        page.fill("dialog textarea", text.replace('"critical"', '"minor"'))
        page.click("dialog button:has-text('Start the fork')")
        page.wait_for_url(lambda url: "/debates/" in url and url != parent)
        page.wait_for_selector(".pill-done:has-text('done')")
        assert "human" in page.inner_text(".card:has-text('This is critique 1')")
        page.click(".panel:has-text('Family') a:has-text('Compare')")
        page.wait_for_selector("h1:has-text('Two debates compared')")
        assert "The first turn is the same." in page.inner_text(".compare")
        pairs = page.locator(".compare-turn")
        titles = pairs.locator("h3").all_inner_texts()
        assert titles == ["Round 1, Skeptic", "Round 2, Proposer", "Round 2, Skeptic"]
        assert "a person" in pairs.first.locator(".card").last.inner_text()
        assert pairs.last.locator(".compare-none").count() == 1
        columns = pairs.first.locator(".card").evaluate_all(
            "cards => cards.map(card => card.getBoundingClientRect().left)"
        )
        assert columns[0] < columns[1]
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            browser.take_picture(page, f"compare-{theme}")
            assert barriers(page) == []
        page.set_viewport_size({"width": 390, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.take_picture(page, "compare-390")
        assert browser.errors == []


def test_a_fork_accepts_a_comment_and_a_finished_debate_a_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        parent = finished(page, address)
        choose(page, "This is proposal 1", "Fork from here…")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        assert page.url == parent
        choose(page, "This is proposal 1", "Fork from here…")
        page.fill("dialog textarea", "Assume twice the team.")
        page.click("dialog button:has-text('Start the fork')")
        page.wait_for_selector(".is-human:has-text('Assume twice the team.')")
        page.wait_for_selector(".pill-done")
        page.goto(parent)
        page.wait_for_selector(".panel:has-text('Family') li >> nth=1")
        page.click("text=Ask further…")
        page.fill("dialog textarea", "And with ten people?")
        page.click("dialog button:text-is('Ask')")
        page.wait_for_selector(".is-human:has-text('And with ten people?')")
        page.wait_for_selector(".round-title:has-text('Round 3')")
        page.wait_for_selector(".pill-done")
        assert browser.errors == []


def test_a_person_can_be_chosen_for_a_seat(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        page.click("[aria-label='Model: All seats']")
        page.wait_for_selector(".option:has-text('openai')")
        assert page.locator(".option:visible:has-text('human')").count() == 0
        page.click("[aria-label='Model: Skeptic']")
        page.click(".option:visible:has-text('human')")
        page.fill("textarea.question-field", QUESTION)
        page.click(".start")
        page.wait_for_selector(".composer h2:has-text('Skeptic, it is your turn')")
        assert browser.errors == []
