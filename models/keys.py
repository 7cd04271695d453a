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

KEY_NAMES = (*PROVIDER_KEYS.values(), "OLLAMA_API_KEY", "LANGSMITH_API_KEY")
ENVIRONMENT, DOTENV = "the environment", ".env"
_SERVICE = "contend"
_MOST_BYTES = 100_000
# Keys are sent to these addresses. A key and its address must come from the same place; otherwise
# the .env file in a folder from somebody else could send the user's key anywhere.
_ADDRESSES = {
    "OPENAI_BASE_URL": ("OPENAI_API_KEY",),
    "OPENROUTER_BASE_URL": ("OPENROUTER_API_KEY",),
    "OLLAMA_HOST": ("OLLAMA_API_KEY",),
    "LANGSMITH_ENDPOINT": ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"),
}
_OTHERS = {"DATABASE_URL", "LANGSMITH_PROJECT", "LANGSMITH_TRACING"}
# Variables that decide where questions, answers and debates are sent or stored.
_REDIRECTING = {*_ADDRESSES, *_OTHERS, "LANGSMITH_API_KEY", "CONTEND_HOME"}

# The sources of the variables that `load_keys` added to the environment.
_added: dict[str, str] = {}


@dataclass(frozen=True)
class KeySource:
    name: str
    source: str  # empty if the key is not set


def load_keys(folder: Path) -> list[str]:
    """Load .env and the stored keys into the environment, and return notices."""
    _added.clear()
    outside = {*os.environ}
    given, notices = _read_dotenv(folder / ".env")
    _add({name: value for name, value in given.items() if name not in _ADDRESSES}, DOTENV)
    notices += load_stored_keys()
    for name in sorted(_ADDRESSES.keys() & given.keys() - outside):
        keys = [key for key in _ADDRESSES[name] if source_of(key) not in ("", DOTENV)]
        if not keys:
            _add({name: given[name]}, DOTENV)
            continue
        notices.append(
            f"{name} in .env is ignored, because {keys[0]} comes from {source_of(keys[0])}. "
            "Set both in the same place."
        )
    return notices


def load_stored_keys() -> list[str]:
    try:
        stored = _read_stored()
    except BadInput as unreadable:
        return [str(unreadable)]
    notices = []
    for name in [each for each in stored if each not in os.environ]:
        try:
            _add({name: _resolve_key(name, stored[name])}, _place(stored[name]))
        except BadInput as unusable:
            notices.append(str(unusable))
    return notices


def redirected_by_dotenv() -> list[str]:
    """Return the environment variables set by .env that control where data is sent or stored."""
    return [name for name in sorted(_REDIRECTING) if source_of(name) == DOTENV]


def source_of(name: str) -> str:
    if not os.environ.get(name, "").strip():
        return ""
    return _added.get(name, ENVIRONMENT)


def key_sources() -> list[KeySource]:
    return [KeySource(name, source_of(name)) for name in KEY_NAMES]


def store_key(name: str, value: str) -> str:
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
    # Read the key first, because deleting a missing key fails.
    if stored.pop(name) is None and (ring := _keyring()) and _read_keyring(name):
        ring.delete_password(_SERVICE, name)
    _write_stored(stored)


def known_name(name: str) -> str:
    if name in KEY_NAMES:
        return name
    nearest = difflib.get_close_matches(name.upper(), KEY_NAMES, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    raise BadInput(f"There is no key '{name}'.{hint} Known: {', '.join(KEY_NAMES)}.")


def check_key(name: str, value: str) -> str:
    if not value.isprintable() or " " in value:
        raise BadInput(f"{name} contains a space or a line break. Set it to the key alone.")
    return value


def missing_key(provider: str) -> BadInput:
    name = PROVIDER_KEYS[provider]
    fix = _why_unused(name) or f"Add it with `contend keys set {name}`."
    return BadInput(f"{name} is not set; {provider} models need it. {fix}")


def how_to_correct(name: str) -> str:
    source = source_of(name)
    if source in (ENVIRONMENT, DOTENV):
        return f"Correct it in {source}."
    return f"Replace it with `contend keys set {name}`."


def _add(values: dict[str, str], source: str) -> None:
    for name, value in values.items():
        if value and name not in os.environ:  # the keyring may have lost the value
            os.environ[name], _added[name] = value, source


def _read_dotenv(path: Path) -> tuple[dict[str, str], list[str]]:
    if not path.is_file():  # .env may be a folder with a virtual environment
        return {}, []
    from dotenv import dotenv_values  # rarely needed

    try:
        text = read_regular(path, _MOST_BYTES).decode("utf-8-sig")
    except (BadInput, UnicodeDecodeError) as error:
        why = error if isinstance(error, BadInput) else "It is not UTF-8 text."
        return {}, [f".env is ignored. {why}"]
    # Do not interpolate variables, because a password may contain a dollar sign.
    values = dotenv_values(stream=StringIO(text), interpolate=False)
    found = {name: value for name in _known(values) if (value := (values[name] or "").strip())}
    bad = [name for name in found if not (name.isidentifier() and _is_text(found[name]))]
    return {name: found[name] for name in found if name not in bad}, [
        f"{name} in .env is ignored, because a character in it is not allowed." for name in bad
    ]


def _is_text(value: str) -> bool:
    return "".join(value.split()).isprintable()


def _why_unused(name: str) -> str:
    names = (address for address, keys in _ADDRESSES.items() if name in keys)
    address = next((each for each in names if source_of(each) == DOTENV), "")
    return address and (
        f"{address} comes from .env, so its key must be there as well; or delete {address} there."
    )


def _known(names: Iterable[str]) -> list[str]:
    known = {*KEY_NAMES, *_ADDRESSES, *_OTHERS}
    return [name for name in names if name in known or name.startswith("CONTEND_")]


def _stored_path() -> Path:
    return data_home() / "keys.json"


def _read_stored() -> dict[str, Any]:
    """Return the stored keys by name, unchecked. None means that the key is in the keyring."""
    path = _stored_path()
    if not path.is_file():
        return {}
    try:
        stored = json.loads(read_regular(path, _MOST_BYTES))
        return {name: stored[name] for name in KEY_NAMES if name in stored}
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(
            f"The stored keys in {path} are damaged. Delete the file and store them again."
        ) from error


def _write_stored(stored: dict[str, Any]) -> None:
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


def _resolve_key(name: str, value: object) -> str:
    if why := _why_unused(name):
        raise BadInput(f"The stored {name} is not used. {why}")
    key = _read_keyring(name) if value is None else value
    if not isinstance(key, str) or not _is_text(key):
        again = f"Store it again with `contend keys set {name}`."
        raise BadInput(f"The stored {name} is ignored, because it cannot be a key. {again}")
    return key


def _read_keyring(name: str) -> str:
    try:
        return str(_keyring().get_password(_SERVICE, name) or "")
    except Exception as error:
        raise BadInput(
            f"Cannot read {name} from the system's keyring ({type(error).__name__}). "
            f"Store it again with `contend keys set {name}`."
        ) from error
