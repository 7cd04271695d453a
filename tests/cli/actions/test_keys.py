"""`contend keys`, and debates with keys that are not in the environment."""

import getpass
from types import SimpleNamespace

import pytest

from tests.cli.support import ASK, Command, debaters
from tests.support.model_server import ModelServer, Reply, openai_error

KEY = "a-key-of-no-known-form-0123"


@pytest.fixture
def contend(contend: Command, models: ModelServer) -> Command:
    del contend.env["OPENAI_API_KEY"]
    models.api_key = KEY
    return contend


def test_missing_key_error_shows_the_command_and_a_stored_key_is_used(contend: Command) -> None:
    refused = contend.here(*ASK)
    assert refused.code == 2
    assert "Add it with `contend keys set OPENAI_API_KEY`." in refused.err
    stored = contend.here("keys", "set", "OPENAI_API_KEY", stdin=f"{KEY}\n")
    assert (stored.code, stored.out) == (0, "")
    assert stored.err.startswith("Stored OPENAI_API_KEY in ")
    assert contend.here(*ASK).code == 0
    listed = contend.here("keys", "list")
    assert listed.out == f"OPENAI_API_KEY  from {contend.home / 'keys.json'}\n"
    assert {"name": "XAI_API_KEY", "source": ""} in contend.here("keys", "list", "--json").json
    assert contend.here("keys", "rm", "OPENAI_API_KEY").code == 0
    assert contend.here("keys", "list").out.startswith("No key is set. Add one with: contend keys")
    seen = refused.err + stored.err + listed.out
    assert KEY not in seen


def test_key_from_dotenv_is_used_and_never_shown_or_stored(
    contend: Command, models: ModelServer
) -> None:
    (contend.home.parent / ".env").write_text(f"OPENAI_API_KEY={KEY}\nCONTEND_MAX_ROUNDS=2\n")

    def echo(role: str, _number: int, reply: Reply) -> Reply:
        return openai_error(400, f"Your key is {KEY}") if role == "skeptic" else reply

    models.script = debaters(echo)
    failed = contend.here(*ASK, "--json")
    assert (failed.code, failed.json["status"]) == (4, "failed")
    assert "Your key is ***" in failed.err
    stored = b"".join(path.read_bytes() for path in contend.home.rglob("*") if path.is_file())
    assert KEY.encode() not in stored
    assert KEY not in failed.out + failed.err
    warned = contend.here("keys", "set", "OPENAI_API_KEY", stdin="another-key-0123")
    assert "OPENAI_API_KEY from .env is used instead" in warned.err


def test_wrong_key_is_refused_before_anything_is_stored(
    contend: Command, models: ModelServer
) -> None:
    refused = contend.here(*ASK, OPENAI_API_KEY="another-key-0123")
    assert refused.code == 2
    assert "openai refused the key in OPENAI_API_KEY" in refused.err
    assert refused.err.endswith("provided. Correct it in the environment.\n")
    contend.here("keys", "set", "OPENAI_API_KEY", stdin="another-key-0123")
    assert contend.here(*ASK).err.endswith("Replace it with `contend keys set OPENAI_API_KEY`.\n")
    assert contend.here("list", "--json").json == []
    assert models.calls == []


def test_key_is_not_shown_while_it_is_typed(
    contend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("contend.cli.actions.keys.sys", terminal)
    monkeypatch.setattr(getpass, "getpass", lambda prompt: asked.append(prompt) or KEY)  # type: ignore[func-returns-value]
    assert contend.here("keys", "set", "OPENAI_API_KEY").code == 0
    assert asked == ["OPENAI_API_KEY (not shown while you type): "]


def test_empty_key_and_unknown_name_are_refused(contend: Command) -> None:
    refused = contend.here("keys", "set", "OPENAI_API_KEY", stdin="\n")
    assert (refused.code, contend.home.exists()) == (2, False)
    assert "No key was given." in refused.err
    unknown = contend.here("keys", "set", "OPEN_API_KEY", stdin=KEY)
    assert "Did you mean OPENAI_API_KEY?" in unknown.err
