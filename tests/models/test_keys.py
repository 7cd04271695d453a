"""API keys from the environment, .env and `contend keys set`."""

import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from contend.graph.errors import BadInput
from contend.models import keys
from contend.models.failures import scrub
from contend.models.keys import (
    KeySource,
    key_sources,
    load_keys,
    load_stored_keys,
    missing_key,
    remove_key,
    source_of,
    store_key,
)

KEY = "a-key-of-no-known-form-0123"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the environment after the test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(keys, "_added", {})
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "OLLAMA_API_KEY"):
        os.environ.pop(name, None)


def dotenv(folder: Path, *lines: str) -> list[str]:
    (folder / ".env").write_text("\n".join(lines), encoding="utf-8")
    return load_keys(folder)


def test_the_environment_wins_over_dotenv_which_wins_over_stored_keys(tmp_path: Path) -> None:
    os.environ["OPENAI_API_KEY"] = "from-the-environment"
    names = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY")
    for name in names:
        store_key(name, "from-a-stored-key")
    assert dotenv(tmp_path, *(f"{name}=from-dotenv" for name in names[:2])) == []
    assert [os.environ[name] for name in names] == [
        *["from-the-environment", "from-dotenv", "from-a-stored-key"]
    ]
    stored = str(tmp_path / "home" / "keys.json")
    assert [source_of(name) for name in names] == ["the environment", ".env", stored]
    assert KeySource("XAI_API_KEY", "") in key_sources()


def test_dotenv_reads_only_known_variables_without_expansion(tmp_path: Path) -> None:
    lines = ["PATH=/tmp", "LD_PRELOAD=x", "OPENAI_API_KEY=", "export CONTEND_MAX_ROUNDS=4"]
    path = os.environ["PATH"]
    os.environ["OPENROUTER_API_KEY"] = KEY
    lines.append("OPENROUTER_BASE_URL=")
    assert not dotenv(tmp_path, *lines, "GROQ_API_KEY='pa$$word-${PATH}' # mine")
    assert (os.environ["PATH"], "LD_PRELOAD" in os.environ) == (path, False)
    assert os.environ["CONTEND_MAX_ROUNDS"] == "4"
    assert os.environ["GROQ_API_KEY"] == "pa$$word-${PATH}"
    assert "OPENAI_API_KEY" not in os.environ


@pytest.mark.parametrize("key_from", ["environment", "store", "both"])
def test_ignores_a_dotenv_base_url_if_the_key_comes_from_elsewhere(
    tmp_path: Path, key_from: str
) -> None:
    address = "OPENAI_BASE_URL=http://evil.example/v1"
    if key_from == "store":
        store_key("OPENAI_API_KEY", KEY)
    else:
        os.environ["OPENAI_API_KEY"] = KEY
    also = ["OPENAI_API_KEY=mine-too-0123"] if key_from == "both" else []
    (notice,) = dotenv(tmp_path, address, *also)
    assert "OPENAI_BASE_URL in .env is ignored, because OPENAI_API_KEY comes from" in notice
    assert "OPENAI_BASE_URL" not in os.environ


@pytest.mark.parametrize("key", ["", "OPENAI_API_KEY=mine-0123456"])
def test_accepts_a_dotenv_base_url_with_its_own_key_or_no_key(tmp_path: Path, key: str) -> None:
    assert dotenv(tmp_path, "OPENAI_BASE_URL=http://127.0.0.1:8000/v1", key) == []
    assert os.environ["OPENAI_BASE_URL"] == "http://127.0.0.1:8000/v1"


def test_a_key_stored_later_is_not_sent_to_a_dotenv_base_url(tmp_path: Path) -> None:
    dotenv(tmp_path, "OPENAI_BASE_URL=http://evil.example/v1")
    store_key("OPENAI_API_KEY", KEY)
    store_key("GROQ_API_KEY", KEY)
    (notice,) = load_stored_keys()
    assert "The stored OPENAI_API_KEY is not used. OPENAI_BASE_URL comes from .env" in notice
    assert "OPENAI_API_KEY" not in os.environ
    assert os.environ["GROQ_API_KEY"] == KEY
    assert "OPENAI_BASE_URL comes from .env" in str(missing_key("openai"))


@pytest.mark.parametrize(
    ("address", "key"),
    [("OLLAMA_HOST", "OLLAMA_API_KEY"), ("LANGSMITH_ENDPOINT", "LANGCHAIN_API_KEY")],
)
def test_ollama_and_langsmith_keys_are_not_sent_to_dotenv_urls(
    tmp_path: Path, address: str, key: str
) -> None:
    os.environ[key] = KEY
    (notice,) = dotenv(tmp_path, f"{address}=http://evil.example")
    assert f"{address} in .env is ignored, because {key} comes from the environment" in notice
    assert address not in os.environ


@pytest.mark.parametrize(
    "line", ["OPENAI_API_KEY=a\0b", "'CONTEND_A=B'=c", "OPENAI_API_KEY=\x1b[2J"]
)
def test_ignores_dotenv_lines_with_forbidden_characters(tmp_path: Path, line: str) -> None:
    (notice,) = dotenv(tmp_path, line, "XAI_API_KEY=of-dotenv-0123456", 'CONTEND_X="a\nb"')
    assert "in .env is ignored, because a character in it is not allowed" in notice
    assert (os.environ["XAI_API_KEY"], os.environ["CONTEND_X"]) == ("of-dotenv-0123456", "a\nb")


@pytest.mark.parametrize("value", [5, ["a"], {}, True, "a\0b", "\ud800"])
def test_ignores_an_invalid_stored_key_which_can_be_removed(tmp_path: Path, value: object) -> None:
    stored = {"OPENAI_API_KEY": value, "GROQ_API_KEY": KEY}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "keys.json").write_text(json.dumps(stored))
    (notice,) = load_keys(tmp_path)
    assert "The stored OPENAI_API_KEY is ignored" in notice
    assert os.environ["GROQ_API_KEY"] == KEY
    remove_key("OPENAI_API_KEY")
    assert load_keys(tmp_path) == []


def test_reports_and_ignores_unreadable_key_files(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"OPENAI_API_KEY=\xff\xfe")
    assert load_keys(tmp_path) == [".env is ignored. It is not UTF-8 text."]
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").mkdir()
    assert load_keys(tmp_path) == []
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "keys.json").write_text("[")
    (notice,) = load_keys(tmp_path)
    assert "are damaged. Delete the file" in notice


def test_a_stored_key_is_private_and_can_be_removed(tmp_path: Path) -> None:
    file = tmp_path / "home" / "keys.json"
    assert store_key("OPENAI_API_KEY", KEY) == str(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    remove_key("OPENAI_API_KEY")
    assert KEY not in file.read_text()
    with pytest.raises(BadInput, match="is not stored"):
        remove_key("OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("OPENAI_KEY", KEY, "Did you mean OPENAI_API_KEY"),
        ("PATH", KEY, "There is no key 'PATH'"),
        ("OPENAI_API_KEY", "two words", "a space or a line break"),
        ("OPENAI_API_KEY", "sk-1234", "too short"),
    ],
)
def test_refuses_an_invalid_key_without_showing_it(name: str, value: str, why: str) -> None:
    with pytest.raises(BadInput, match=why) as refused:
        store_key(name, value)
    assert value not in str(refused.value)


class Keyring(SimpleNamespace):
    """A fake system keyring; if locked, every call fails."""

    def __init__(self, *, is_locked: bool = False) -> None:
        super().__init__(kept={}, is_locked=is_locked)

    def set_password(self, service: str, name: str, value: str) -> None:
        if self.is_locked:
            raise RuntimeError("locked")
        self.kept[service, name] = value

    def get_password(self, service: str, name: str) -> str | None:
        if self.is_locked:
            raise RuntimeError("locked")
        found: str | None = self.kept.get((service, name))
        return found

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


def test_the_systems_keyring_is_used_if_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert store_key("OPENAI_API_KEY", KEY) == "the system's keyring"
    assert json.loads((tmp_path / "home" / "keys.json").read_text()) == {"OPENAI_API_KEY": None}
    assert load_keys(tmp_path) == []
    assert (os.environ["OPENAI_API_KEY"], source_of("OPENAI_API_KEY")) == (
        KEY,
        "the system's keyring",
    )
    del os.environ["OPENAI_API_KEY"]
    ring.is_locked = True
    (notice,) = load_keys(tmp_path)
    assert "Cannot read OPENAI_API_KEY from the system's keyring (RuntimeError)" in notice
    ring.is_locked = False
    remove_key("OPENAI_API_KEY")
    assert ring.kept == {}


def test_a_key_that_is_gone_from_the_keyring_can_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ring = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", ring)
    store_key("OPENAI_API_KEY", KEY)
    ring.kept.clear()
    remove_key("OPENAI_API_KEY")
    with pytest.raises(BadInput, match="is not stored"):
        remove_key("OPENAI_API_KEY")


def test_without_a_working_keyring_a_file_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Keyring(is_locked=True))
    assert store_key("OPENAI_API_KEY", KEY) == str(tmp_path / "home" / "keys.json")


def test_loaded_keys_are_scrubbed(tmp_path: Path) -> None:
    store_key("GROQ_API_KEY", KEY)
    dotenv(tmp_path, "XAI_API_KEY=of-dotenv-0123456")
    assert scrub(f"401: {KEY} and of-dotenv-0123456 are wrong") == "401: *** and *** are wrong"
