"""Implements the public API. Import its names from `contend`."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

from langgraph.runtime import RunControl

from contend.debates import prepare
from contend.debates.events import Event
from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.forecasts import parse_outcomes, plain_request
from contend.debates.presets import DEFAULT_PROTOCOL, find_preset
from contend.debates.record import StoredDebate
from contend.debates.run import open_repository, run_debate
from contend.debates.settings_sources import Given, settings_from
from contend.debates.spending import with_budget
from contend.graph.errors import BadInput, ModelFailed
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.record import DebateRecord
from contend.graph.settings import SETTINGS, DebateSettings
from contend.graph.settings.forecast import settings_of
from contend.graph.state import Remark

ParticipantRole = Literal["position_advocate", "moderator", "fact_checker", "judge"]


@dataclass(frozen=True)
class Participant:
    """A participant in a moderated debate; empty fields use the protocol's defaults."""

    role: ParticipantRole
    name: str = ""
    position: str = ""
    model: str | None = None
    system_prompt: str = ""
    temperature: float | None = None
    fallbacks: tuple[str, ...] = ()


def advocate(name: str, position: str, model: str | None = None, **more: Any) -> Participant:
    return Participant("position_advocate", name, position, model, **more)


def moderator(name: str = "Moderator", model: str | None = None, **more: Any) -> Participant:
    return Participant("moderator", name, model=model, **more)


def fact_checker(name: str = "Fact checker", model: str | None = None, **more: Any) -> Participant:
    """Return a fact checker. Claims are checked only in debates that include a fact checker."""
    return Participant("fact_checker", name, model=model, **more)


def judge(model: str | None = None, **more: Any) -> Participant:
    return Participant("judge", "Judge", model=model, **more)


class Debate:
    """A debate that starts on the first call of `result()` or the first iteration.

    `async for event in debate` yields events until the debate is done, pauses or fails.
    """

    def __init__(self, draft: prepare.DebateDraft, request: DebateRequest | None = None) -> None:
        self.question, self.settings = draft.question, draft.settings
        self._draft, self._request = draft, request
        self._stored: StoredDebate | None = None
        self._task: asyncio.Task[DebateRecord] | None = None
        self._control, self._remark = RunControl(), Remark()
        self._changes: dict[str, Given] = {}
        self._events: list[Event] = []
        self._changed = asyncio.Event()

    @property
    def id(self) -> str | None:
        """Return the id that `contend show` takes, or None if the debate has not started."""
        return self._stored.id if self._stored else None

    async def result(self) -> DebateRecord:
        """Run until the debate is done, pauses or fails; `status` in the record shows which."""
        return await self._started()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield the events since the start, or since the last `resume()`."""
        running, position = self._started(), 0
        while True:
            for event in self._events[position:]:
                position += 1
                yield event
            if running.done() and position == len(self._events):
                await running
                return
            self._changed.clear()
            await self._changed.wait()

    def pause(self) -> None:
        """Stop after the current turn; `result()` then returns a record with status `paused`."""
        self._control.request_drain("paused by the program")

    def resume(
        self,
        say: str = "",
        *,
        finish: bool = False,
        budget: int | None = None,
        max_cost: float | None = None,
    ) -> "Debate":
        """Prepare a paused or failed debate to continue on the next `result()` or iteration.

        `say` adds a comment for the next speakers. `finish` ends the rounds if the debate is
        waiting for a person. `budget` and `max_cost` replace the debate's own limits.
        """
        if self._task is None or not self._task.done():
            raise RuntimeError("The debate is not stopped. Call pause() and await result() first.")
        self._task, self._events = None, []
        self._control, self._remark = RunControl(), Remark(say=say, finish=finish)
        given = {"budget": budget, "max_cost": max_cost}
        self._changes = {
            name: Given(value, "resume") for name, value in given.items() if value is not None
        }
        return self

    def _started(self) -> "asyncio.Task[DebateRecord]":
        if self._task is None:
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(lambda _: self._changed.set())
        return self._task

    async def _run(self) -> DebateRecord:
        if self._stored is None:
            prepared = await prepare.prepare_debate(self._draft)
        else:
            await prepare.prepare_resume(self._stored)
        records, changed = await asyncio.to_thread(open_repository), None
        try:
            if self._stored is None:
                self._stored = await asyncio.to_thread(
                    prepare.write_debate, records, prepared, self._request
                )
            elif self._changes:
                given = records, self._stored, self._changes
                changed = await asyncio.to_thread(with_budget, *given)
            self._stored = await run_debate(
                records, self._stored, self._watch, self._control, self._remark, settings=changed
            )
            return self._stored.as_record()
        finally:
            await asyncio.to_thread(records.close)

    def _watch(self, event: Event) -> None:
        self._events.append(event)
        self._changed.set()

    def _failure(self, error: str) -> ModelFailed:
        about = self._events[-1]["metadata"]  # the last event is `error`
        seat, model = str(about["seat"]), str(about["model"])
        return ModelFailed(
            seat, model, str(about["kind"]), error.removeprefix(f"{seat} ({model}): ")
        )


def create_debate(  # noqa: PLR0913 - each of them is one part of a debate
    question: str,
    participants: Sequence[Participant] = (),
    settings: Mapping[str, Any] | DebateSettings | None = None,
    documents: Sequence[Path | str] = (),
    images: Sequence[Path | str] = (),
    *,
    protocol: str | None = None,
    preset: str | None = None,
    model: str | None = None,
    outcomes: Sequence[str] = (),
    due: date | None = None,
    request: DebateRequest | Mapping[str, Any] | None = None,
    **more: Any,
) -> Debate:
    """Create a debate; raise BadInput if settings, participants or files are invalid.

    `protocol` defaults to moderated if there are participants, otherwise to the preset's or
    adversarial. `model` is the default for all roles. Settings can be given in `settings` and as
    keyword arguments, in snake_case or camelCase. A forecast needs `outcomes`, such as "yes: It
    opens", or a whole `request`.
    """
    if isinstance(settings, DebateSettings):
        protocol = protocol or settings.protocol
        settings = settings.model_dump(exclude_unset=True)
    named = find_preset(preset) if preset else None
    default = named.protocol if named else DEFAULT_PROTOCOL
    protocol = protocol or ("moderated" if participants else default)
    if participants and protocol != "moderated":
        raise BadInput("participants work only with protocol='moderated'.")
    forecast = _forecast_request(protocol, question, outcomes, due, request)
    values = {
        **(SETTINGS[protocol].settings_for_model(model) if model and protocol in SETTINGS else {}),
        **(settings_of(forecast) if request and forecast else {}),
        **(_participant_settings(participants) if participants else {}),
        **(settings or {}),
        **more,
    }
    chosen = settings_from(protocol, values, "create_debate", named)
    paths = [[Path(each) for each in files] for files in (documents, images)]
    return Debate(prepare.draft_debate(question, chosen, *paths), forecast)


async def aask(question: str, protocol: str | None = None, **settings: Any) -> DebateRecord:
    """Run a debate until it ends or pauses, and return its record.

    Takes the same arguments as `create_debate`. Raises ModelFailed if the debate fails.
    """
    debate = create_debate(question, protocol=protocol, **settings)
    record = await debate.result()
    if record.status == "failed":
        raise debate._failure(record.error or "")
    return record


def ask(question: str, protocol: str | None = None, **settings: Any) -> DebateRecord:
    """Run a debate like `aask`, but from synchronous code."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise BadInput("ask() blocks the running event loop. Use: await contend.aask(...)")
    return asyncio.run(aask(question, protocol, **settings))


def _forecast_request(
    protocol: str,
    question: str,
    outcomes: Sequence[str],
    due: date | None,
    request: DebateRequest | Mapping[str, Any] | None,
) -> DebateRequest | None:
    if protocol != FORECAST:
        if outcomes or due or request:
            raise BadInput("outcomes, due and request work only with protocol='forecast'.")
        return None
    if request:
        return DebateRequest.model_validate(request)
    if not outcomes:
        raise BadInput('A forecast needs outcomes, such as outcomes=["yes: It opens", "no: ..."].')
    return plain_request(question, parse_outcomes(outcomes), due)


def _participant_settings(participants: Sequence[Participant]) -> dict[str, Any]:
    for each in participants:
        if each.role not in get_args(ParticipantRole):
            roles = ", ".join(get_args(ParticipantRole))
            raise BadInput(f"There is no role '{each.role}'; the roles are {roles}.")
        if each.position and each.role != "position_advocate":
            raise BadInput(f"A {_spaced(each.role)} cannot have a position: '{each.position}'.")
    names = ("name", "position", "model", "system_prompt", "temperature", "fallbacks")
    sides = [
        {name: getattr(each, name) for name in names}
        for each in participants
        if each.role == "position_advocate"
    ]
    values: dict[str, Any] = {"positions": sides} if sides else {}
    others = [each for each in participants if each.role != "position_advocate"]
    roles_given = [each.role for each in others]
    for each in others:
        if roles_given.count(each.role) > 1:
            raise BadInput(f"A debate has only one {_spaced(each.role)}.")
        values |= {
            f"{each.role}_{name}": value
            for name in names
            if (value := getattr(each, name)) not in (None, "", ())
            and (each.role, name) != ("judge", "name")
        }
    return values | {"fact_check": "fact_checker" in roles_given}


def _spaced(role: str) -> str:
    return role.replace("_", " ")
