"""The keys of providers: from the environment, from .env, or stored by `contend keys set`."""

import difflib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.failures import SHORTEST_SECRET
from contend.models.files import read_regular, write_private_file
from contend.models.providers.registry import PROVIDER_KEYS

KEY_NAMES = (*PROVIDER_KEYS.values(), "LANGSMITH_API_KEY")
ENVIRONMENT, DOTENV = "the environment", ".env"
_SERVICE = "contend"
_MOST_BYTES = 100_000
# A key goes to the address next to it. If the two came from different places, the .env of a
# folder that somebody else wrote could send the user's key anywhere.
_ADDRESSES = {
    "OPENAI_BASE_URL": "OPENAI_API_KEY",
    "OPENROUTER_BASE_URL": "OPENROUTER_API_KEY",
    "LANGSMITH_ENDPOINT": "LANGSMITH_API_KEY",
}
_OTHERS = {"DATABASE_URL", "OLLAMA_HOST", "LANGSMITH_PROJECT", "LANGSMITH_TRACING"}

# Where the variables come from that `load_keys` added to the environment.
_added: dict[str, str] = {}


@dataclass(frozen=True)
class KeySource:
    name: str
    source: str  # empty if the key is not set


def load_keys(folder: Path) -> list[str]:
    """Add the variables of .env and the stored keys to the environment, and return notices."""
    _added.clear()
    outside = {*os.environ}
    given, notices = _read_dotenv(folder / ".env")
    _add({name: value for name, value in given.items() if name not in _ADDRESSES}, DOTENV)
    notices += load_stored_keys()
    for name in _ADDRESSES.keys() & given.keys() - outside:
        source = source_of(_ADDRESSES[name])
        if source in ("", DOTENV):
            _add({name: given[name]}, DOTENV)
        else:
            notices.append(
                f"{name} in .env is ignored, because {_ADDRESSES[name]} comes from {source}. "
                "Set both in the same place."
            )
    return notices


def load_stored_keys() -> list[str]:
    """Add the stored keys to the environment, which wins over them, and return notices."""
    try:
        for name, value in _read_stored().items():
            if name not in os.environ:
                _add({name: _reveal(name, value)}, _place(value))
    except BadInput as unreadable:
        return [str(unreadable)]
    return []


def source_of(name: str) -> str:
    """Return where a variable comes from; empty if it is not set."""
    if not os.environ.get(name, "").strip():
        return ""
    return _added.get(name, ENVIRONMENT)


def key_sources() -> list[KeySource]:
    return [KeySource(name, source_of(name)) for name in KEY_NAMES]


def store_key(name: str, value: str) -> str:
    """Store a key in the system's keyring, or else in a private file; return where."""
    known_name(name)
    if len(check_key(name, value)) < SHORTEST_SECRET:
        raise BadInput(f"{name} is too short for a key. Set it to the whole key.")
    stored = _read_stored()
    stored[name] = None if _keep_in_keyring(name, value) else value
    _write_stored(stored)
    return _place(stored[name])


def remove_key(name: str) -> None:
    stored = _read_stored()
    if name not in stored:
        raise BadInput(f"{known_name(name)} is not stored. `contend keys list` shows every key.")
    if stored.pop(name) is None and (ring := _keyring()):
        ring.delete_password(_SERVICE, name)
    _write_stored(stored)


def known_name(name: str) -> str:
    if name in KEY_NAMES:
        return name
    nearest = difflib.get_close_matches(name.upper(), KEY_NAMES, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    raise BadInput(f"There is no key '{name}'.{hint} Known: {', '.join(KEY_NAMES)}.")


def check_key(name: str, value: str) -> str:
    """Return the key, or refuse what cannot be one, without showing it."""
    if not value.isprintable() or " " in value:
        raise BadInput(f"{name} contains a space or a line break. Set it to the key alone.")
    return value


def missing_key(provider: str) -> BadInput:
    name = PROVIDER_KEYS[provider]
    return BadInput(
        f"{name} is not set; {provider} models need it. Add it with `contend keys set {name}`."
    )


def how_to_correct(name: str) -> str:
    source = source_of(name)
    if source in (ENVIRONMENT, DOTENV):
        return f"Correct it in {source}."
    return f"Replace it with `contend keys set {name}`."


def _add(values: dict[str, str], source: str) -> None:
    for name, value in values.items():
        if value and name not in os.environ:  # a keyring may have lost its value
            os.environ[name], _added[name] = value, source


def _read_dotenv(path: Path) -> tuple[dict[str, str], list[str]]:
    if not path.is_file():  # it may be a folder of packages
        return {}, []
    from dotenv import dotenv_values  # rarely needed

    try:
        text = read_regular(path, _MOST_BYTES).decode("utf-8-sig")
    except (BadInput, UnicodeDecodeError) as error:
        why = error if isinstance(error, BadInput) else "It is not UTF-8 text."
        return {}, [f".env is ignored. {why}"]
    # As written: a password may contain a dollar sign.
    values = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value for name in _known(values) if (value := (values[name] or "").strip())}, []


def _known(names: Iterable[str]) -> list[str]:
    known = {*KEY_NAMES, *_ADDRESSES, *_OTHERS}
    return [name for name in names if name in known or name.startswith("CONTEND_")]


def _stored_path() -> Path:
    return data_home() / "keys.json"


def _read_stored() -> dict[str, str | None]:
    """Read the stored keys by name; those in the keyring are None."""
    path = _stored_path()
    if not path.is_file():
        return {}
    try:
        stored = json.loads(read_regular(path, _MOST_BYTES))
        return {name: stored[name] for name in KEY_NAMES if name in stored}
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"The stored keys in {path} are damaged. Delete the file and store them again."
        ) from error


def _write_stored(stored: dict[str, str | None]) -> None:
    path = _stored_path()
    try:
        write_private_file(path, json.dumps(stored, indent=2).encode())
    except OSError as error:
        raise BadInput(f"Cannot write {path}: {error.strerror or error}.") from error


def _place(value: str | None) -> str:
    return "the system's keyring" if value is None else str(_stored_path())


def _keyring() -> Any:
    try:
        import keyring  # optional, and slow to import
    except ImportError:
        return None
    return keyring


def _keep_in_keyring(name: str, value: str) -> bool:
    if not (ring := _keyring()):
        return False
    try:
        ring.set_password(_SERVICE, name, value)
        return bool(ring.get_password(_SERVICE, name) == value)
    except Exception:  # noqa: BLE001 - every system has errors of its own
        return False


def _reveal(name: str, value: str | None) -> str:
    if value is not None:
        return value
    try:
        return str(_keyring().get_password(_SERVICE, name) or "")
    except Exception as error:
        raise BadInput(
            f"Cannot read {name} from the system's keyring ({type(error).__name__}). "
            f"Store it again with `contend keys set {name}`."
        ) from error
