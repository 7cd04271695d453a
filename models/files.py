import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import yaml

from contend.graph.errors import BadInput
from contend.models.text import clean_piece

# File systems allow 255 bytes.
_MOST_NAME_BYTES = 200


def regular_size(path: Path) -> int:
    """Return a file's size. Refuse pipes and devices, because reading them could block forever."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{clean_piece(str(path))} is not a regular file.")
    return found.st_size


def read_regular(path: Path, most: int) -> bytes:
    try:
        if regular_size(path) > most:
            limit = f"{most // 1_000_000} MB" if most >= 1_000_000 else f"{most // 1000} kB"
            raise BadInput(f"{path} is larger than {limit}.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror or error}.") from error


def make_private_folder(folder: Path) -> None:
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


@contextmanager
def replace_file(file: Path) -> Iterator[IO[bytes]]:
    """Open a private temporary file that replaces `file` when the block ends without an error."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:40]}-")
    try:
        with os.fdopen(descriptor, "wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        Path(name).replace(file)
    finally:
        Path(name).unlink(missing_ok=True)


def write_private_file(file: Path, content: bytes) -> None:
    make_private_folder(file.parent)
    with replace_file(file) as sink:
        sink.write(content)


def parse_yaml(text: str, *, fast: bool = False) -> Any:
    """Parse YAML, but refuse aliases, because they can make a small text enormous."""
    # The fast loader is less exact about where an error is.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, loader)):
        raise yaml.YAMLError("aliases are not supported")
    return yaml.load(text, loader)  # noqa: S506 - a safe loader


def usable_name(given: str) -> str:
    """Convert an uploaded file's name to one that every file system accepts."""
    printable = "".join(each for each in given if each.isprintable())
    name = Path(printable.replace("\\", "/")).name.lstrip(".")
    # Keep the end, because the suffix tells what kind of file it is.
    return name.encode()[-_MOST_NAME_BYTES:].decode(errors="ignore").lstrip(".") or "file"
