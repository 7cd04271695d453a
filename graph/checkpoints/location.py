import os
from pathlib import Path
from typing import TYPE_CHECKING

from contend.graph.settings import data_home

if TYPE_CHECKING:  # the driver is loaded only if a server is used
    from contend.graph.checkpoints.postgres import Postgres

CHECKPOINT_TABLES = {
    "sqlite": ("checkpoints", "writes", "checkpoint_constants"),
    "postgresql": ("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
}


def database() -> "Path | Postgres":
    if not is_on_server():
        return database_path()
    from contend.graph.checkpoints.postgres import read_address

    return read_address(os.environ["DATABASE_URL"].strip())


def is_on_server() -> bool:
    return bool(os.environ.get("DATABASE_URL", "").strip())


def database_path() -> Path:
    """Return the path of the private database file, creating the file if it is missing."""
    home = data_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / "contend.db"
    if not path.exists():
        # Open only a new file here. Closing an existing one would drop the locks this process holds
        # on it, so the next reader would think the database unused and delete its write-ahead log.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path
