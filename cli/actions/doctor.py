"""Runs the checks of `contend doctor`, which cost nothing and change nothing."""

import asyncio
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from contend.cli.actions.models import is_unharmed, known_models
from contend.cli.view.console import stdout
from contend.cli.view.format import counted, plain
from contend.debates.exports.page import hanging
from contend.debates.loading import check_records
from contend.debates.migrations import NewerDatabase
from contend.debates.settings_sources import configure
from contend.graph.checkpoints.location import database, is_on_server
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.settings import SETTINGS, data_home
from contend.models.failures import first_line, scrub
from contend.models.keys import source_of
from contend.models.providers.hub import PREFIX
from contend.models.providers.ollama import has_model, pulled_models
from contend.models.providers.registry import API_KEYS, ModelSpec, parse_spec, provider_of
from contend.models.providers.weights import DEFAULT_EMBEDDING, default_chat_model
from contend.models.seats import choose_seats
from contend.service.address import running_service

Level = Literal["ok", "warn", "problem"]

_PACKAGES = (
    "contend", "langgraph", "langgraph-checkpoint-postgres", "langgraph-checkpoint-sqlite",
    "langchain", "langchain-core", "langchain-openai", "langchain-ollama", "langchain-community",
    "faiss-cpu", "langsmith", "onnxruntime", "psycopg", "pydantic", "sqlalchemy", "alembic",
    "typer", "rich", "xllamacpp",
)  # fmt: skip
_KEYS = (*API_KEYS.values(), "LANGSMITH_API_KEY")
_TRACING = [f"{name}_TRACING{v}" for name in ("LANGSMITH", "LANGCHAIN") for v in ("", "_V2")]
_MARGIN, _ROOMY = 8, 80
_STYLES = {"ok": "success", "warn": "warning", "problem": "error"}


@dataclass(frozen=True)
class Finding:
    level: Level
    what: str
    detail: str
    fix: str = ""


def checks(*, verbose: bool) -> list[Finding]:
    packages = (each for each in _packages() if verbose or each.level != "ok")
    order = ("problem", "warn", "ok")
    found = sorted([*_checks(), *packages], key=lambda finding: order.index(finding.level))
    return [_model(), *found]


def _checks() -> list[Finding]:
    return [
        _home(),
        _database(),
        *_weights(),
        _ollama(),
        *_keys(),
        *asyncio.run(_hosted_providers()),
        *_service(),
        _tracing(),
    ]


def print_checks(findings: list[Finding]) -> None:
    screen = stdout()
    roomy = not screen.is_terminal or screen.width >= _ROOMY
    widest = max(len(finding.what) for finding in findings) if roomy else 0
    width = screen.width if screen.is_terminal else sys.maxsize  # on a pipe, lines are not wrapped
    for finding in findings:
        head = f"{finding.level.ljust(_MARGIN)}{finding.what.ljust(widest)}  "
        line = Text(hanging(head + plain(finding.detail), width, len(head) if roomy else _MARGIN))
        line.stylize(_STYLES[finding.level], 0, len(finding.level))
        screen.print(line, soft_wrap=True)
        if finding.fix:
            fix = hanging(f"{' ' * _MARGIN}fix: {plain(finding.fix)}", width, _MARGIN + 5)
            screen.print(Text(fix), soft_wrap=True)


def _model() -> Finding:
    try:
        settings = configure("adversarial", {}, None, None, dict(os.environ)).settings
        plan = asyncio.run(choose_seats(settings))
    except BadInput as refused:
        fix = "run contend config to see where each setting comes from"
        return Finding("problem", "default model", str(refused), fix)
    models = ", ".join(dict.fromkeys(seat.model for seat in plan.seats))
    said = plan.notice if models in plan.notice else f"{models}. {plan.notice}"
    return Finding("ok", "default model", said)


def _packages() -> Iterator[Finding]:
    machine = f"{platform.system()} {platform.machine()}"
    yield Finding("ok", "python", f"{platform.python_version()} on {machine}")
    for package in _PACKAGES:
        try:
            yield Finding("ok", package, version(package))
        except PackageNotFoundError:
            fix = f"{Path(sys.executable).name} -m pip install {package}"
            yield Finding("problem", package, "not installed", fix)


def _home() -> Finding:
    home = data_home()
    try:
        nearest = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
        # Do not trust the permissions: to root, even /proc looks writable.
        with tempfile.TemporaryDirectory(dir=nearest):
            pass
        note = "" if home.exists() else " (created on first use)"
    except OSError:
        fix = "set CONTEND_HOME to a folder you can write to"
        return Finding("problem", "data folder", f"{home} is not writable", fix)
    return Finding("ok", "data folder", f"{home}{note}")


def _database() -> Finding:
    path = data_home() / "contend.db"
    fix = f"move {path} away, or restore a backup"
    if is_on_server():
        fix = "check the server and DATABASE_URL, or unset it to use a local file"
    elif not path.exists():
        return Finding("ok", "database", "SQLite, created with the first debate")
    try:
        if not is_on_server():
            _check_integrity(path)
        where = database()
        found = check_records(where)
    except BadInput as unusable:
        fix = "upgrade Contend" if isinstance(unusable, NewerDatabase) else fix
        return Finding("problem", "database", str(unusable), fix)
    except (DatabaseUnavailable, SQLAlchemyError, sqlite3.Error) as error:
        return Finding("problem", "database", first_line(getattr(error, "orig", error)), fix)
    name = "SQLite" if isinstance(where, Path) else str(where)
    if found is None:
        return Finding("ok", "database", f"{name}, tables are created with the first debate")
    detail = f"{name}, {counted(found.debates, 'debate')}"
    if not found.damaged:
        return Finding("ok", "database", detail)
    damaged = ", ".join(each.debate_id for each in found.damaged)
    fix = "restore a backup, or delete damaged debates with: contend prune --damaged"
    return Finding("problem", "database", f"{detail}; damaged: {damaged}", fix)


def _check_integrity(path: Path) -> None:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
        (found,) = opened.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"the file is damaged: {found}")


def _weights() -> Iterator[Finding]:
    needed = (default_chat_model(data_home()).name, DEFAULT_EMBEDDING)
    for model in known_models():
        what = str(model["spec"])
        name = what.partition(":")[2]
        if not model["pulled"]:
            if name in needed:
                fix = "run contend models pull, or let the first contend ask download it"
                yield Finding("warn", what, f"not downloaded; for {model['good_for']}", fix)
        elif name.startswith(PREFIX):
            yield Finding("ok", what, "downloaded")
        elif is_unharmed(name):
            detail = f"downloaded, checksums match; for {model['good_for']}"
            yield Finding("ok", what, detail)
        else:
            fix = f"contend models rm {name}, then contend models pull {name}"
            yield Finding("problem", what, "damaged: wrong checksum", fix)


def _ollama() -> Finding:
    try:
        pulled = asyncio.run(pulled_models())
    except BadInput:
        fix = "run `ollama serve` or set OLLAMA_HOST; only needed for ollama: models"
        return Finding("warn", "ollama", "not reachable", fix)
    wanted = {seat.model for schema in SETTINGS.values() for seat in schema().build_seats()}
    names = sorted(parse_spec(model).name for model in wanted)
    missing = [name for name in names if not has_model(name, pulled)]
    detail = f"reachable, {counted(len(pulled), 'model')}"
    if not missing:
        return Finding("ok", "ollama", f"{detail}, including all default models")
    fix = f"ollama pull {missing[0]}, or choose another model with --model"
    return Finding("warn", "ollama", f"{detail}; missing: {', '.join(missing)}", fix)


def _keys() -> Iterator[Finding]:
    for key in _KEYS:
        source = source_of(key)
        yield Finding("ok", key, f"set in {source}" if source else "not set (optional)")
    if address := os.environ.get("OPENAI_BASE_URL"):
        yield Finding("ok", "OPENAI_BASE_URL", scrub(address))


async def _hosted_providers() -> list[Finding]:
    names = [name for name, key in API_KEYS.items() if os.environ.get(key, "").strip()]
    return list(await asyncio.gather(*map(_hosted_provider, names)))


async def _hosted_provider(name: str) -> Finding:
    try:
        await provider_of(ModelSpec(name, "")).check([])
    except BadInput as refused:
        fix = (
            f"check the address and the network, or store another key: contend keys set "
            f"{API_KEYS[name]}; only needed for {name}: models"
        )
        return Finding("warn", name, str(refused), fix)
    return Finding("ok", name, "reachable")


def _service() -> Iterator[Finding]:
    """Report the running service's state, including the providers that it no longer calls."""
    running = running_service()
    if running is None:
        return
    here = f"runs at {running.address}"
    if running.problem:
        detail, fix = f"{here}. {running.problem}", "see what the service prints"
        yield Finding("warn", "service", detail, fix)
    elif running.providers_down:
        names = ", ".join(
            f"{name} until {until.astimezone():%H:%M:%S}" for name, until in running.providers_down
        )
        detail = f"{here}; after repeated failures it does not call {names}"
        fix = "check the provider; the service then tries it again by itself"
        yield Finding("warn", "service", detail, fix)
    else:
        yield Finding("ok", "service", f"{here} and is ready")


def _tracing() -> Finding:
    on = [name for name in _TRACING if os.environ.get(name, "").lower() in ("true", "1")]
    if not on:
        return Finding("ok", "tracing", "off")
    fix = f"unset {on[0]} if debates must stay on this machine"
    return Finding("warn", "tracing", f"on ({on[0]} is set): debates are sent to LangSmith", fix)
