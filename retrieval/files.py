"""Files read with a limit and written for this user alone, whole or not at all."""

import os
import stat
import tempfile
from pathlib import Path

from contend.graph.errors import BadInput
from contend.models.text import clean_piece


def regular_size(path: Path) -> int:
    """How large a file is that is one: a pipe or a device would be waited for without end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{clean_piece(str(path))} is no regular file.")
    return found.st_size


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a regular file."""
    try:
        if regular_size(path) > most:
            limit = f"{most // 1_000_000} MB" if most >= 1_000_000 else f"{most // 1000} kB"
            raise BadInput(f"{path} is larger than {limit}.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error


def write_private(file: Path, content: bytes) -> None:
    """Put the whole file in its place at once; mkstemp makes it private."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:40]}-")
    try:
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        Path(name).replace(file)
    finally:
        Path(name).unlink(missing_ok=True)
