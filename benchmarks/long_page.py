"""Compares scrolling through 200 long turns with scrolling through a static page of the text."""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.harness import QUESTION, Result
from benchmarks.viewer_server import WRITER
from benchmarks.viewers import viewer_server

LIMIT = 1.5
_SEATS, _ROUNDS = 8, 25
TURNS = _SEATS * _ROUNDS
_SECONDS_TO_END = 600
# Milliseconds between frames while the whole page scrolls by.
_SCROLL = """async () => {
  const frames = [];
  let last = performance.now();
  for (let y = 0; y < document.documentElement.scrollHeight; y += 300) {
    window.scrollTo(0, y);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames;
}"""


def results() -> list[Result]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("No Chromium, so the long page is not measured.", file=sys.stderr)
        return []
    from playwright.sync_api import sync_playwright

    with viewer_server("service") as server, sync_playwright() as playwright:
        address = f"http://127.0.0.1:{server.port}"
        debate = _run_debate(address)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        ours = _scroll(browser, f"{address}/#/debates/{debate}", TURNS)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "debate.html"
            file.write_bytes(_request(f"{address}/api/v1/debates/{debate}/export?format=html"))
            static = _scroll(browser, file.as_uri(), 0)
        browser.close()
    slow = [quantiles(frames, n=20)[-1] for frames in (ours, static)]
    note = (
        f"one frame in 20 takes over {slow[0]:.0f} ms, the worst {max(ours):.0f} ms; the exported "
        f"page {slow[1]:.0f} and {max(static):.0f} ms"
    )
    return [Result(f"scrolling through {TURNS} turns", slow[0] / slow[1], LIMIT, "x", note)]


def _run_debate(address: str) -> str:
    seats = [{"name": f"seat{number}", "model": f"simulated:{WRITER}"} for number in range(_SEATS)]
    settings = {"seats": seats, "judge_mode": "display_only", "max_rounds": _ROUNDS}
    body = {"question": QUESTION, "protocol": "forum", "settings": settings}
    started = json.loads(_request(f"{address}/api/v1/debates", json.dumps(body).encode()))
    place = f"{address}/api/v1/debates/{started['id']}"
    end = time.monotonic() + _SECONDS_TO_END
    while json.loads(_request(place))["status"] == "running":
        if time.monotonic() > end:
            raise RuntimeError("the debate did not end")
        time.sleep(1)
    return str(started["id"])


def _request(address: str, body: bytes | None = None) -> bytes:
    request = Request(address, body, {"Content-Type": "application/json"})  # noqa: S310 - our own
    with urlopen(request) as answer:  # noqa: S310
        return bytes(answer.read())


def _scroll(browser: Any, address: str, turns: int) -> list[float]:
    page = browser.new_context().new_page()
    page.goto(address)
    page.wait_for_function("n => document.querySelectorAll('.turn').length >= n", arg=turns)
    frames: list[float] = page.evaluate(_SCROLL)
    page.context.close()
    return frames
