import getpass
import sys

from contend.graph.errors import BadInput
from contend.models.keys import DOTENV, ENVIRONMENT, known_name, source_of, store_key


def ask_and_store(name: str) -> str:
    known_name(name)  # checked before the user types the key
    source = source_of(name)
    stored = f"Stored {name} in {store_key(name, _read_key(name))}."
    if source in (ENVIRONMENT, DOTENV):
        return f"{stored} {name} from {source} is used instead, as long as it is set there."
    return stored


def _read_key(name: str) -> str:
    if sys.stdin.isatty():
        given = getpass.getpass(f"{name} (not shown while you type): ")
    else:
        given = sys.stdin.readline()
    if not given.strip():
        raise BadInput(
            f"No key was given. Type it when asked, or use: contend keys set {name} < FILE"
        )
    return given.strip()
