"""The page shows attacks in any field, live or stored, as plain text."""

import json
import re
import threading
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from sqlite3 import connect
from typing import Any

import httpx
import pytest

from tests.cli.support import debaters
from tests.debates.exports.test_safe_html import ATTACKS
from tests.service.web.browser import Browser, needs_browser, open_browser, serve_page
from tests.support.floor_server import floor_script, part_of, with_block
from tests.support.forecasting import forecasters
from tests.support.model_server import Reply, Request
from tests.support.scripted import as_sent, concedes, forum_cast

pytestmark = [pytest.mark.slow, needs_browser]

ALL_ATTACKS = "\n\n".join(ATTACKS)
TAG = "<img src=x onerror=alert(1)>"
CONCEDING = {"conviction": concedes("Debater 2", "The costs decide.", "Ann argues in round 1.")}


def moderate(request: Request) -> Any:
    """Hold a moderated debate in which a claim is checked."""
    reply = floor_script()(request)
    if part_of(request) != "claims":
        return reply
    return with_block(Reply(), request, claims=["Most outages come from changes."])


SPEAKERS: dict[str, Any] = {
    "adversarial": debaters(),
    "forum": lambda sent: forum_cast(ann=CONCEDING).say(replace(as_sent(sent), model="ann")),
    "refine": debaters(),
    "moderated": moderate,
    "forecast": forecasters(),
}
NAMES = [
    {"name": f"{TAG} {letter}", "position": f"{letter} {ALL_ATTACKS}"[:2000]} for letter in "AB"
]
SETTINGS: dict[str, dict[str, Any]] = {
    "adversarial": {"min_rounds": 1, "max_rounds": 1},
    "forum": {"max_rounds": 2},
    "moderated": {"positions": NAMES, "round_count": 1, "fact_check": True},
}
# Runs before the page's own scripts, and looks at everything that ever enters the page.
WATCH = """
window.found = [];
const isOwn = (node) => node.closest("head, .composer, .ask-form, .filters, .dialog");
const TAGS = "script, img, iframe, object, embed, video, base, form, style, meta, link, input";
const LINKS = ["href", "src", "action", "formaction", "data"];
const isBad = (node) => node.matches(TAGS) && !isOwn(node)
  || [...node.attributes].some(({ name }) => /^on|^style$/i.test(name))
  || LINKS.some((name) => /^\\s*(javascript|vbscript|data):/i.test(node.getAttribute(name) || ""));
const look = (node) => [node, ...(node.querySelectorAll?.("*") || [])].forEach((each) => {
  if (each.matches && isBad(each)) window.found.push(each.outerHTML.slice(0, 300));
});
new MutationObserver((changes) => changes.forEach((change) => {
  change.addedNodes.forEach(look);
  if (change.type === "attributes") look(change.target);
})).observe(document, { childList: true, subtree: true, attributes: true });
"""


class Watched:
    """Open pages without their CSP, so that only their own escaping protects them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._seen: list[str] = []

    def open(self, path: str) -> Any:
        return self._browser.open(path, self._prepare, bypass_csp=True)

    def _prepare(self, page: Any) -> None:
        page.add_init_script(WATCH)
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._note(request.url))

    def _dismiss(self, dialog: Any) -> None:
        self._seen.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _note(self, url: str) -> None:
        if not url.startswith((self._browser.address, "file:")):
            self._seen.append(f"request {url}")

    def assert_harmless(self, page: Any) -> None:
        shown = page.inner_text("body")
        assert "<script>alert(1)</script>" in shown
        assert page.evaluate("window.found") == []
        assert self._seen == []


class Hostile:
    """Simulate models that reply with attacks once a viewer is watching."""

    def __init__(self) -> None:
        self.is_watched = threading.Event()
        self._attacks = cycle(ATTACKS)

    def __call__(self, request: Request) -> Reply:
        assert self.is_watched.wait(120)
        given = SPEAKERS[request.model](request)
        reply = given if isinstance(given, Reply) else Reply(given)
        prose, fence, block = reply.text.partition("```json\n")
        text = f"{prose}\n\n{ALL_ATTACKS}"
        if fence:
            data = self._add_attacks(json.loads(block.removesuffix("\n```")))
            text += f"\n\n```json\n{json.dumps(data)}\n```"
        return replace(reply, text=text, reasoning=ALL_ATTACKS, chunk_size=300, chunk_delay=0.01)

    def _add_attacks(self, value: Any) -> Any:
        """Add an attack to each text of a control block."""
        if isinstance(value, dict):
            return {key: self._add_attacks(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._add_attacks(each) for each in value]
        is_text = isinstance(value, str) and " " in value
        return f"{value} {next(self._attacks)}" if is_text else value


@pytest.mark.parametrize("protocol", SPEAKERS)
def test_attacks_stay_inactive_live_stored_and_exported(
    protocol: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    models = Hostile()
    body: dict[str, Any] = {"question": ALL_ATTACKS, "protocol": protocol}
    body |= {"model": f"openai:{protocol}", "settings": SETTINGS.get(protocol, {})}
    if protocol == "forecast":
        body["outcomes"] = [f"yes: It opens {TAG}", f"no: It does not {TAG}"]
    with (
        serve_page(models, monkeypatch, [protocol]) as address,
        open_browser(address) as browser,
        httpx.Client(base_url=f"{address}/api/v1", timeout=60) as api,
    ):
        started = api.post("/debates", json=body)
        assert started.status_code == 201, started.text
        debate = started.json()["id"]
        watched = Watched(browser)
        page = watched.open(f"#/debates/{debate}")
        page.wait_for_selector(".pill-running")
        models.is_watched.set()
        page.fill(".composer textarea", ALL_ATTACKS)
        page.click("text=Send")
        page.wait_for_selector(".pill-done")
        watched.assert_harmless(page)
        poison_stored(tmp_path / "home" / "contend.db")
        for path in (f"#/debates/{debate}", "#/library", "#/"):
            page = watched.open(path)
            page.wait_for_selector(".answer-foot, .debate-row")
            watched.assert_harmless(page)
        exported = tmp_path / "debate.html"
        exported.write_text(api.get(f"/debates/{debate}/export?format=html").text, "utf-8")
        page = watched.open(exported.as_uri())
        watched.assert_harmless(page)


def poison_stored(database: Path) -> None:
    """Add all attacks to every stored text of the only debate."""
    columns = [("debates", "state"), ("debate_turns", "turn"), ("debate_events", "event")]
    with closing(connect(database)) as opened, opened:
        opened.create_function("poison", 1, lambda text: json.dumps(poison(json.loads(text))))
        for table, name in columns:
            opened.execute(f"UPDATE {table} SET {name} = poison({name})")  # noqa: S608 - our names


def poison(value: Any) -> Any:
    """Add all attacks to every text that contains spaces, so codes and ids stay unchanged."""
    if isinstance(value, dict):  # the lengths of a request are checked again when it is read
        return {key: each if key == "request" else poison(each) for key, each in value.items()}
    if isinstance(value, list):
        return [poison(each) for each in value]
    is_text = isinstance(value, str) and re.search(r"\s", value)
    return f"{value}\n\n{ALL_ATTACKS}" if is_text else value
