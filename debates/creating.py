"""A moderated debate from Python, in as few lines as it takes to name who argues for what."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from langgraph.runtime import RunControl

from contend.debates.attachments import Attachments, keep_attachments, read_attachments
from contend.debates.outputs import check_writable
from contend.debates.run import open_repository, run_debate, write_debate
from contend.debates.settings_sources import settings_from
from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.providers.weights import WeightsUnavailable, pull
from contend.models.seats import choose_seats, missing_files, models_of, preflight
from contend.nodes.retrieve import checked_question

if TYPE_CHECKING:
    from contend.debates.events import Event, Watch
    from contend.debates.repository import StoredDebate
    from contend.graph.settings import DebateSettings

Role = Literal["position_advocate", "moderator", "fact_checker", "judge"]


@dataclass(frozen=True)
class Participant:
    """Somebody who takes part; what is not given is the protocol's default."""

    role: Role
    name: str = ""
    position: str = ""
    model: str | None = None
    system_prompt: str = ""
    temperature: float | None = None
    fallbacks: tuple[str, ...] = ()


def advocate(name: str, position: str, model: str | None = None, **more: Any) -> Participant:
    """One who argues for a position."""
    return Participant("position_advocate", name, position, model, **more)


def moderator(name: str = "Moderator", model: str | None = None, **more: Any) -> Participant:
    """The one who leads the debate."""
    return Participant("moderator", name, model=model, **more)


def fact_checker(name: str = "Fact checker", model: str | None = None, **more: Any) -> Participant:
    """The one who checks claims; without one nothing is checked."""
    return Participant("fact_checker", name, model=model, **more)


def judge(model: str | None = None, **more: Any) -> Participant:
    """The one who scores."""
    return Participant("judge", "Judge", model=model, **more)


@dataclass(frozen=True)
class DebateResult:
    """What a debate came to."""

    id: str
    end_reason: str
    """Why the rounds ended; the debate's status if it did not come so far."""
    duration_ms: int
    summary: str | None
    scores: dict[str, dict[str, Any]]
    """By name: `total`, `breakdown` by criterion, and `turns`; empty without scoring."""
    winner: str | None
    fact_checks: list[dict[str, Any]]
    output_dir: Path | None
    error: str | None
    record: dict[str, Any]
    """Everything that is known of the debate, as `contend show --json` prints it."""


class PreparedDebate:
    """A debate whose settings are good; it begins with `run`."""

    def __init__(self, topic: str, settings: DebateSettings, brought: Attachments) -> None:
        self.topic, self.settings, self._brought = topic, settings, brought

    async def run(self, watch: Watch | None = None) -> DebateResult:
        """Run it to its end; `watch` is called with every event."""
        seating = await choose_seats(self.settings)
        embedding = seating.embedding_model
        await _pull_missing(models_of(seating.seats))
        await preflight(seating.seats, self.settings, self.topic)
        if self.settings.folder_plan is not None:
            check_writable(self.settings.folder_plan.base)
        if self._brought.documents:
            await _pull_missing([embedding])
        elif self.settings.templates:
            with suppress(BadInput):  # templates are a help; the record tells that there are none
                await _pull_missing([embedding])
        await keep_attachments(self._brought, self.settings, embedding, lambda _done, _all: None)
        records = open_repository()
        try:
            debate = write_debate(records, self.topic, self.settings, seating, self._brought)
            done = await run_debate(records, debate, watch or _nobody, RunControl())
        finally:
            records.close()
        return _result(done)


async def _pull_missing(models: list[str]) -> None:
    """Fetch the files of embedded models that this machine has not got."""
    for weights in missing_files(models):
        try:
            await asyncio.to_thread(pull, weights, data_home(), lambda _done, _all: None)
        except WeightsUnavailable as error:
            raise BadInput(str(error)) from error


def _nobody(_: Event) -> None:
    """Watches nothing."""


def create_debate(
    topic: str,
    participants: Sequence[Participant],
    settings: Mapping[str, Any] | None = None,
    documents: Sequence[Path | str] = (),
) -> PreparedDebate:
    """A moderated debate of these participants; whatever is wrong with them is said here."""
    values = {**_laid(participants), **(settings or {})}
    chosen = settings_from("moderated", values, "create_debate")
    brought = read_attachments([Path(each) for each in documents], [])
    return PreparedDebate(checked_question(topic), chosen, brought)


def _laid(participants: Sequence[Participant]) -> dict[str, Any]:
    for each in participants:
        if each.role not in get_args(Role):
            raise BadInput(f"'{each.role}' is no role; there are {', '.join(get_args(Role))}.")
        if each.position and each.role != "position_advocate":
            raise BadInput(f"A {each.role.replace('_', ' ')} holds no position: '{each.position}'.")
    sides = [_side(each) for each in participants if each.role == "position_advocate"]
    values: dict[str, Any] = {"positions": sides} if sides else {}
    for each in participants:
        if each.role != "position_advocate":
            values |= _official(each)
    roles = [each.role for each in participants if each.role != "position_advocate"]
    twice = next((role for role in roles if roles.count(role) > 1), None)
    if twice is not None:
        raise BadInput(f"There is one {twice.replace('_', ' ')} in a debate, not two.")
    return values | {"fact_check": "fact_checker" in roles}


def _side(each: Participant) -> dict[str, Any]:
    return {
        "name": each.name,
        "position": each.position,
        "model": each.model,
        "system_prompt": each.system_prompt,
        "temperature": each.temperature,
        "fallbacks": each.fallbacks,
    }


def _official(each: Participant) -> dict[str, Any]:
    given: dict[str, Any] = {
        "name": each.name if each.role != "judge" else "",
        "model": each.model,
        "system_prompt": each.system_prompt,
        "temperature": each.temperature,
        "fallbacks": each.fallbacks,
    }
    return {
        f"{each.role}_{what}": value for what, value in given.items() if value not in (None, "", ())
    }


def _result(done: StoredDebate) -> DebateResult:
    record = done.as_json()
    folder = record["output_dir"]
    return DebateResult(
        id=done.id,
        end_reason=record["end_reason"] if done.status == "done" else done.status,
        duration_ms=record["duration_ms"] or 0,
        summary=record["summary"],
        scores=record["scores"] or {},
        winner=record["winner"],
        fact_checks=record["fact_checks"],
        output_dir=Path(folder) if folder else None,
        error=done.error,
        record=record,
    )
