"""Runs a thread's nodes with the settings that the thread was started with."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from langgraph.runtime import Runtime
from pydantic import ValidationError

from contend.graph import runners
from contend.graph.errors import BadInput
from contend.graph.events import event_writer, node_event
from contend.graph.settings import DebateSettings, read_stored
from contend.graph.state import DebateState
from contend.graph.values import Seat
from contend.models.recording import is_recording
from contend.models.seats import preflight, write_specs_in_full
from contend.nodes.budget import check_budget
from contend.nodes.calls.stream import debate_id

Node = Callable[[DebateState, Runtime[Any]], Awaitable[dict[str, Any]]]


def with_thread_settings(node: Node, model: type[DebateSettings]) -> Node:
    """Make a node run with its thread's settings, unless the context overrides them."""

    @wraps(node)
    async def run(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
        given: DebateSettings = runtime.context or model()
        settings, update = given, _missing_settings(state, debate_id(runtime))
        state = {**state, **update}
        if state.get("settings"):
            settings = _settings_in_use(state, given)
        if state.get("settings") and "round" in state:
            changed = await _changed_state(state, runtime, settings)
            state, update = {**state, **changed}, {**update, **changed}
        await runners.save_state(model.protocol, debate_id(runtime), state)
        writer = event_writer(runtime.stream_writer)
        own = runtime.override(context=settings, stream_writer=writer)
        return {**update, **await node(state, own)}

    return run


def _missing_settings(state: DebateState, thread: str) -> DebateState:
    # A fork from before the first node, and a debate of release 0.1 or 0.2, has none in its state.
    return {} if state.get("settings") else runners.recorded_settings(thread)


def stored_settings(state: DebateState, model: type[DebateSettings]) -> DebateSettings:
    """Return a thread's stored settings, even if this release cannot run with them."""
    return read_stored(model, state["settings"])


def _settings_in_use(state: DebateState, given: DebateSettings) -> DebateSettings:
    begun = state.get("protocol", given.protocol)
    if begun != given.protocol:
        raise BadInput(f"This thread holds a debate of the protocol {begun}. Run that graph.")
    kept, known = state["settings"], type(given).model_fields
    if kept == given.model_dump(mode="json"):
        return given
    stored = stored_settings(state, type(given)).model_dump(mode="json")
    stored |= {name: kept[name] for name in known if name in kept}
    named = given.model_dump(mode="json", include=given.model_fields_set)
    try:
        return type(given).model_validate({**stored, **named})
    except ValidationError as error:
        if is_recording():  # an edit reruns a step with the settings of its time
            return read_stored(type(given), {**stored, **named})
        raise BadInput(_why_refused(error, named)) from error


def _why_refused(error: ValidationError, named: Mapping[str, Any]) -> str:
    first = error.errors()[0]
    why = first["msg"].removeprefix("Value error, ")
    if first["loc"] and first["loc"][0] not in named:
        name = first["loc"][0]
        return (
            f"This release cannot use the thread's setting {name} ({first['input']!r:.60}): {why}. "
            "Give it another value in the context."
        )
    return f"The changed settings do not fit the thread's settings: {why}."


async def _changed_state(
    state: DebateState, runtime: Runtime[Any], settings: DebateSettings
) -> DebateState:
    before = stored_settings(state, type(settings))
    old, new = before.model_dump(mode="json"), settings.model_dump(mode="json")
    changes = {name: [old[name], new[name]] for name in new if new[name] != old[name]}
    if not changes:
        return {}
    seats = _changed_seats(state["seats"], before, settings)
    if not is_recording():  # our own runner has checked its settings
        await _check(state, seats, settings)
    _report(runtime, state, changes)
    return {"settings": new, "seats": seats}


async def _check(state: DebateState, seats: list[Seat], settings: DebateSettings) -> None:
    check_budget({**state, "seats": seats}, settings)
    if seats != state["seats"]:
        documents, images = state.get("documents", []), state.get("images", [])
        await preflight(seats, settings, state["question"], documents=documents, images=images)


def _changed_seats(
    seats: list[Seat], before: DebateSettings, settings: DebateSettings
) -> list[Seat]:
    """Apply changed settings to the seats, keeping what the debate decided, such as positions."""
    old, new = (_seats_of(each) for each in (before, settings))
    if old.keys() != new.keys():
        raise BadInput(
            "A thread cannot add or remove seats: start a new thread with these settings."
        )
    return [_changed_seat(seat, old.get(seat.id), new.get(seat.id)) for seat in seats]


def _seats_of(settings: DebateSettings) -> dict[str, Seat]:
    return {seat.id: write_specs_in_full(seat) for seat in settings.build_seats()}


def _changed_seat(seat: Seat, old: Seat | None, new: Seat | None) -> Seat:
    if old is None or new is None:
        return seat
    was, now = old.model_dump(), new.model_dump()
    return seat.model_copy(update={name: now[name] for name in now if now[name] != was[name]})


def _report(runtime: Runtime[Any], state: DebateState, changes: dict[str, list[Any]]) -> None:
    words = "; ".join(f"{name}: {new} instead of {old}" for name, (old, new) in changes.items())
    runtime.stream_writer(
        node_event("settings_changed", state.get("round"), words, changes=changes)
    )
