import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from contend.service.address import published_address
from tests.cli.support import QUESTION, Command


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    shown: list[str] = []

    def show(address: str) -> bool:
        shown.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    return shown


def _text(address: str) -> str:
    return Path(unquote(urlparse(address).path)).read_text("utf-8")


def test_open_writes_and_opens_a_file_without_a_service(
    contend: Command, opened: list[str]
) -> None:
    debate = contend.ask_here("--json").json["id"]
    ended = contend.here("open", debate[:8])
    assert (ended.code, ended.err) == (0, "")
    assert opened == [ended.out.strip()]
    assert f"<h1>{QUESTION}</h1>" in _text(opened[0])


def test_no_open_prints_the_address_only(contend: Command, opened: list[str]) -> None:
    debate = contend.ask_here("--json").json["id"]
    ended = contend.here("open", debate, "--no-open")
    assert QUESTION in _text(ended.out.strip())
    assert opened == []


def test_missing_browser_is_reported(contend: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    ended = contend.here("open", contend.ask_here("--json").json["id"])
    assert ended.code == 0
    assert ended.err == "No browser was found; open the address yourself.\n"


def test_address_of_a_stopped_service_is_not_opened(
    contend: Command, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    debate = contend.ask_here("--json").json["id"]
    monkeypatch.setenv("CONTEND_HOME", str(contend.home))
    for left in (b'{"host": "127.0.0.1", "port": 1}', b"{", b"[]"):
        (contend.home / "service.json").write_bytes(left)
        assert contend.here("open", debate).out.startswith("file://")


def test_an_address_is_published_only_while_the_service_runs(
    contend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEND_HOME", str(contend.home))
    with published_address("0.0.0.0", 8000):
        assert (contend.home / "service.json").read_text() == '{"host": "127.0.0.1", "port": 8000}'
    assert not (contend.home / "service.json").exists()
