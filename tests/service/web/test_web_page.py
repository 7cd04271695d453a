"""The web page in a real browser."""

import json
import re
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from contend.debates.presets import presets_folder
from tests.cli.support import debaters
from tests.service.web.browser import (
    PICTURES,
    fill_in,
    needs_browser,
    open_browser,
    serve_page,
    start,
)
from tests.support.floor_server import floor_script
from tests.support.forecasting import forecasters
from tests.support.model_server import Reply, Request, Script, openai_error
from tests.support.scripted import as_sent, forum_cast

pytestmark = [pytest.mark.slow, needs_browser]

QUESTION = "Should a team of four split its monolith?"
LOOKS = [(theme, width) for theme in ("light", "dark") for width in (390, 1400)]
LONG = "\n\n".join(f"Paragraph {n} says the same thing in other words." for n in range(40))


def slowed(script: Any, delay: float = 0.02) -> Script:
    """Stream every reply in small pieces."""

    def answer(request: Request) -> Reply:
        given = script(request)
        reply = Reply(given) if isinstance(given, str) else given
        return replace(reply, chunk_size=6, chunk_delay=delay)

    return answer


def held(script: Script, gate: Event) -> Script:
    """Delay every reply until the gate is open."""

    def answer(request: Request) -> Reply:
        given = script(request)
        return replace(Reply(given) if isinstance(given, str) else given, until=gate.is_set)

    return answer


def cast_of_forum(request: Request) -> str:
    sent = as_sent(request)
    return forum_cast().say(replace(sent, model="ann"))


SCRIPTS: dict[str, Script] = {
    "adversarial": slowed(debaters()),
    "forum": slowed(cast_of_forum),
    "refine": slowed(debaters()),
    "moderated": slowed(floor_script(), 0.002),
    "forecast": slowed(forecasters(), 0.01),
}


@pytest.mark.parametrize("protocol", SCRIPTS)
def test_a_debate_of_each_protocol_streams_and_ends(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serve_page(SCRIPTS[protocol], monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, protocol, QUESTION)
        start(page)
        page.wait_for_selector(".is-writing, .turn:not(.is-live)")
        for theme, width in LOOKS:
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": 900})
            browser.take_picture(page, f"{protocol}-live-{theme}-{width}")
        page.wait_for_selector(".pill-done")
        assert page.inner_text("h1") == QUESTION
        assert page.inner_text(".answer-body").strip()
        assert page.locator(".rail-item.is-past").count() >= 2
        for theme, width in LOOKS:
            shown = browser.open(page.url.split("/", 3)[3], width=width, color_scheme=theme)
            shown.wait_for_selector(".answer-foot")
            browser.take_picture(shown, f"{protocol}-done-{theme}-{width}")
            assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert shown.evaluate("scrollY") == 0
        assert browser.errors == []


@pytest.mark.parametrize("protocol", SCRIPTS)
def test_a_debate_is_paused_reloaded_resumed_rated_exported_and_deleted(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Event()
    with (
        serve_page(held(SCRIPTS[protocol], gate), monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, protocol, QUESTION)
        page.wait_for_selector("text=/calls, about .* tokens/")
        start(page)
        page.wait_for_selector(".pill-running")
        with page.expect_response("**/pause"):
            page.keyboard.press("p")
        gate.set()
        page.wait_for_selector(".pill-paused")
        gate.clear()
        turns = page.locator(".turn").count()
        page.reload()
        page.wait_for_selector(".pill-paused")
        page.wait_for_function(
            "wanted => document.querySelectorAll('.turn').length >= wanted", arg=turns
        )
        page.fill(".composer textarea", "Count the cost of hiring.")
        page.click(".composer button:has-text('Continue')")
        page.wait_for_selector(".is-human:has-text('Count the cost of hiring.')")
        with page.expect_response("**/finish"):
            page.click("text=Finish now")
        gate.set()
        page.wait_for_selector(".pill-done")
        page.click("[aria-label='Your rating'] button:text-is('8')")
        page.wait_for_selector("[aria-pressed=true]:text-is('8')")
        page.click("text=Export ▾")
        with page.expect_download() as download:
            page.click("text=Web page to share")
        assert QUESTION in Path(download.value.path()).read_text("utf-8")
        page.click("text=Library")
        page.fill("#search", "monolith")
        page.wait_for_selector(".row-about:has-text('you rated it 8')")
        page.fill("#search", "nothing like it")
        page.wait_for_selector("text=No debate matches.")
        page.go_back()
        delete = page.wait_for_selector(".controls button:text-is('Delete')")
        page.wait_for_selector(".is-human:has-text('Count the cost of hiring.')")
        assert delete.evaluate("button => button.isConnected"), "a click must not get lost"
        delete.click()
        page.click("dialog button:has-text('Delete')")
        page.wait_for_selector("text=There are no debates yet.")
        assert browser.errors == []


def test_rates_a_debate_in_the_library_with_the_keyboard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        start(page)
        page.wait_for_selector(".pill-done")
        page.goto(f"{address}/#/library")

        def open_rating() -> Any:
            page.locator(".row-menu").press("Enter")
            page.get_by_role("menuitem", name="Rate").press("Enter")
            return page.get_by_role("group", name=f"Your rating of {QUESTION}")

        rating = open_rating()
        assert page.evaluate("document.activeElement.textContent") == "1"
        page.keyboard.press("Escape")
        assert rating.count() == 0
        assert page.evaluate("document.activeElement.className").endswith("row-menu")
        open_rating()
        for _ in range(8):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        page.wait_for_selector(".row-about:has-text('you rated it 8')")
        assert page.locator("#announcer").text_content() == "Rated 8 of 10"
        assert rating.count() == 0
        assert page.evaluate("document.activeElement.className").endswith("row-menu")
        assert page.url.endswith("#/library"), "the debate is not opened"
        open_rating()
        pressed = page.get_by_role("button", name="8", exact=True)
        assert pressed.get_attribute("aria-pressed") == "true"
        assert pressed.evaluate("button => button === document.activeElement")
        for width in (390, 1400):
            page.set_viewport_size({"width": width, "height": 700})
            page.screenshot(path=PICTURES / f"library-rating-{width}.png")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Cancel").click()
        page.reload()
        page.wait_for_selector(".row-about:has-text('you rated it 8')")
        assert browser.errors == []


def test_a_stale_record_does_not_overwrite_a_rating(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, loads = Event(), []
    with (
        serve_page(held(debaters(), gate), monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        start(page)
        page.wait_for_selector(".pill-running")
        record = re.compile("/api/v1/debates/[0-9a-f-]{36}$")
        page.route(record, lambda route: loads.append((route, route.fetch())))
        with page.expect_request(record):
            gate.set()
        eight = page.wait_for_selector("[aria-label='Your rating'] button:text-is('8')")
        eight.click()
        page.wait_for_selector("[aria-pressed=true]:text-is('8')")
        for route, response in loads:
            route.fulfill(json={**response.json(), "title": "The monolith"})
        page.wait_for_function("() => document.title.includes('The monolith')")
        assert eight.get_attribute("aria-pressed") == "true"
        assert eight.evaluate("button => button.isConnected"), "a click must not get lost"


def test_a_person_answers_for_a_seat_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        settings = {"skeptic_model": "human", "min_rounds": 1, "max_rounds": 2}
        asked = {"question": QUESTION, "settings": settings}
        started = page.request.post(f"{address}/api/v1/debates", data=asked).json()
        page.goto(f"{address}/#/debates/{started['id']}")
        page.wait_for_selector(".composer h2:has-text('Skeptic, it is your turn')")
        browser.take_picture(page, "person-asked")
        page.fill(".composer textarea", "Who knows?")
        page.click(".composer button:has-text('Send')")
        page.wait_for_selector(".composer:has-text('Your answer could not be read.')")
        page.fill(".composer textarea", "No critical issues.\n\nReady for synthesis")
        page.click(".composer button:has-text('Send')")
        page.wait_for_selector(".pill-done")
        assert "human" in page.inner_text(".card:has-text('No critical issues.')")
        browser.take_picture(page, "person-done")
        assert browser.errors == []


def test_streaming_text_does_not_scroll_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = slowed(debaters(lambda _role, _n, reply: replace(reply, text=f"{LONG}\n\n{reply.text}")))
    with (
        serve_page(long, monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        start(page)
        page.wait_for_selector(".card:not(.is-live)")
        page.locator(".card:not(.is-live)").first.evaluate("card => card.scrollIntoView()")
        page.evaluate("document.querySelector('.card:not(.is-live)').id = 'read'")
        place = "Math.round(document.getElementById('read').getBoundingClientRect().top)"
        before = page.evaluate(place)
        for number in (2, 3):
            page.wait_for_selector(f".rail-title:text-is('Round {number}')")
            page.wait_for_selector(".card.is-writing", state="attached")
            assert abs(page.evaluate(place) - before) <= 1


def test_a_failed_debate_shows_the_error_and_can_be_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replies = iter([openai_error(401, "Incorrect API key provided.", "invalid_api_key")])
    speak = debaters()
    with (
        serve_page(lambda request: next(replies, None) or speak(request), monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        page.click("text=Start debate")
        page.wait_for_selector(".pill-failed")
        assert "Incorrect API key" in page.inner_text("[role=alert]")
        browser.take_picture(page, "failed")
        page.click("text=Library")
        page.wait_for_selector(".row-excerpt:has-text('Incorrect API key')")
        page.go_back()
        page.click(".composer button:has-text('Try again')")
        page.wait_for_selector(".pill-done")
        assert page.locator(".notice-error").count() == 0


def test_a_document_can_be_dropped_on_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEND_EMBEDDING_MODEL", "openai:m")
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        dropped = page.evaluate_handle(
            """() => {
              const given = new DataTransfer();
              given.items.add(new File(["The night shift costs 40,000 a year."], "notes.md"));
              return given;
            }"""
        )
        page.dispatch_event(".ask-form form", "drop", {"dataTransfer": dropped})
        page.wait_for_selector(".file:has-text('notes.md')")
        start(page)
        page.wait_for_selector(".decided:has-text('notes.md')")
        page.wait_for_selector(".pill-done")
        assert browser.errors == []


def test_a_preset_can_be_chosen_on_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    presets_folder().mkdir(parents=True)
    preset = "description: One round of m.\nmodel: openai:m\nmin_rounds: 1\nmax_rounds: 1\n"
    (presets_folder() / "mine.yaml").write_text(preset)
    with serve_page(debaters(), monkeypatch) as address, open_browser(address) as browser:
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        page.select_option("#preset", "mine")
        page.wait_for_selector("#preset-about:has-text('One round of m.')")
        page.wait_for_selector(".estimate:has-text('4 calls')")
        page.screenshot(path=PICTURES / "ask-preset.png")
        start(page)
        page.wait_for_selector(".pill-done")
        assert browser.errors == []


def test_an_invalid_setting_is_reported_at_its_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        serve_page(debaters(), monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        page.click(".settings summary")
        page.fill("#setting-max_rounds", "99")
        page.click("text=Start debate")
        page.wait_for_selector("#setting-max_rounds-problem:has-text('between 1 and 50')")
        page.wait_for_selector("#setting-max_rounds:focus")


def test_keyboard_shortcuts_move_through_turns_and_open_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        serve_page(debaters(), monkeypatch) as address,
        open_browser(address) as browser,
    ):
        page = browser.open()
        fill_in(page, "adversarial", QUESTION)
        start(page)
        page.wait_for_selector(".pill-done")
        seen = []
        for key in "jjk":
            page.keyboard.press(key)
            seen.append(page.evaluate("document.activeElement.id || 'answer'"))
        assert seen[0] == seen[2] != seen[1]
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open] kbd")
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        page.wait_for_selector("#search:focus")
        assert json.loads(page.evaluate("JSON.stringify(location.hash)")).startswith("#/library")
