"""Base of the five graphs. Checks input before anything is stored or paid for."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import Any, cast

from langgraph.channels.base import BaseChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import EmptyInputError
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel._write import ChannelWrite, ChannelWriteTupleEntry
from langgraph.types import Command
from pydantic import TypeAdapter

from contend.graph import runners
from contend.graph.channels import CheckedDelta, CheckedList, CheckedValue, GraphState
from contend.graph.contract import DebateOutput, QuestionInput
from contend.graph.edits import checked_edits
from contend.graph.errors import BadInput
from contend.graph.serializer import serializer
from contend.graph.settings import DebateSettings
from contend.graph.settings_form import DEFAULT_MODEL_KEY, settings_form
from contend.graph.state import DebateState, is_begun
from contend.graph.values import storable_types
from contend.models.recording import is_recording
from contend.nodes.own_settings import with_thread_settings
from contend.nodes.retrieve import AFTER_THE_END, SECOND_QUESTION
from contend.nodes.uploads import store_uploads

Writes = Iterable[tuple[str, Any]]

_NOTHING_TO_CONTINUE = "There is no debate to continue here. Give a question as the input."
_CHECKED_CHANNELS = (CheckedValue, CheckedList, CheckedDelta)


class DebateGraph(StateGraph[Any, Any, Any, Any]):
    def __init__(self, settings: type[DebateSettings], input_schema: type[Any] = QuestionInput):
        super().__init__(GraphState, context_schema=settings, input_schema=input_schema)
        self._settings = settings

    def add_node(self, node: Any, action: Any = None, **options: Any) -> Any:
        function = node if action is None else action
        name = function.__name__ if action is None else node
        settled: Any = with_thread_settings(function, self._settings)
        return super().add_node(name, settled, **options)

    def compile(self, *given: Any, **options: Any) -> "CompiledDebate":
        compiled = super().compile(*given, **options)
        debate = CompiledDebate(**vars(compiled))
        for node in debate.nodes.values():
            _check_writes(node, debate.channels)
        return debate


def _check_writes(node: Any, channels: Any) -> None:
    """Make a node check its writes before `update_state` stores them."""
    for writer in node.writers:
        if isinstance(writer, ChannelWrite):
            writer.writes = [_with_check(each, channels) for each in writer.writes]
    for made in ("flat_writers", "node"):
        vars(node).pop(made, None)


def _with_check(entry: Any, channels: Any) -> Any:
    if not isinstance(entry, ChannelWriteTupleEntry):
        return entry
    mapper = entry.mapper
    return entry._replace(mapper=lambda value: _checked_writes(mapper(value), channels))


def _checked_writes(writes: Writes | None, channels: Any) -> list[tuple[str, Any]] | None:
    if writes is None:
        return None
    return [(name, _checked_value(channels.get(name), value)) for name, value in writes]


def _checked_value(channel: BaseChannel[Any, Any, Any] | None, value: Any) -> Any:
    return channel.check(value) if isinstance(channel, _CHECKED_CHANNELS) else value


def _with_every_seat(context: Any, settings: Any) -> Any:
    """Apply the context's `model` to every seat whose model the context does not set."""
    if not isinstance(context, dict) or DEFAULT_MODEL_KEY not in context:
        return context
    named = {name: value for name, value in context.items() if name != DEFAULT_MODEL_KEY}
    model = context[DEFAULT_MODEL_KEY]
    return {**settings.settings_for_model(model), **named} if model else named


def _without_input(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in ("input", "config")}


def _with_our_values(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return a saver that can load our value types."""
    ours = saver.with_allowlist(storable_types())
    if type(ours.serde) is JsonPlusSerializer:
        ours = copy(ours)  # other graphs may use the server's saver
        ours.serde = serializer()
    return ours


class CompiledDebate(CompiledStateGraph[Any, Any, Any, Any]):
    def copy(self, update: dict[str, Any] | None = None) -> "CompiledDebate":
        # Without our types in its allowlist, a server's saver would return plain data.
        saver = (update or {}).get("checkpointer")
        if isinstance(saver, BaseCheckpointSaver):
            update = {**(update or {}), "checkpointer": _with_our_values(saver)}
        return super().copy(update)

    def get_output_jsonschema(self, config: Any = None) -> dict[str, Any]:  # noqa: ARG002 - inherited
        # Describe only what clients see; our own code gets the whole state.
        return TypeAdapter(DebateOutput).json_schema()

    def get_context_jsonschema(self) -> dict[str, Any]:
        return settings_form(cast("type[DebateSettings]", self.context_schema))

    async def astream(self, *given: Any, **options: Any) -> AsyncGenerator[Any]:
        entering, config, *_ = (*given, None, None)
        entering, config = options.get("input", entering), options.get("config", config)
        options["context"] = _with_every_seat(options.get("context"), self.context_schema)
        entering = await self._checked_input(entering, config)
        parts: Any = super().astream(entering, config, *given[2:], **_without_input(options))
        async with runners.hold_lease(self, config), aclosing(parts):
            try:
                async for part in parts:
                    yield part
            except EmptyInputError as error:
                raise BadInput(_NOTHING_TO_CONTINUE) from error

    async def abulk_update_state(self, config: Any, supersteps: Any) -> Any:
        async with runners.hold_lease(self, config):
            if not is_recording():  # our own runner writes what it has read
                edits = (each.values for step in supersteps for each in step)
                checked = iter(await self._checked_edits(edits, config))
                supersteps = [
                    [each._replace(values=next(checked)) for each in step] for step in supersteps
                ]
            return await super().abulk_update_state(config, supersteps)

    async def _checked_edits(self, edits: Iterable[Any], config: Any) -> list[Any]:
        state = await self._state_at(config) if self.checkpointer else {}
        model = cast("type[DebateSettings]", self.context_schema)
        return checked_edits(edits, state.get("settings", {}), model)

    async def _state_at(self, config: Any) -> DebateState:
        """Return the state that a run or an edit starts from."""
        snapshot = await self.aget_state(config)
        named = config.get("configurable", {}).get("checkpoint_id")
        if named and snapshot.created_at is None:
            raise BadInput(f"The thread has no checkpoint {named}.")
        return cast("DebateState", snapshot.values)

    async def _checked_input(self, given: Any, config: Any) -> Any:
        if self.checkpointer and config and "checkpoint_id" in config.get("configurable", {}):
            await self._state_at(config)
        if isinstance(given, Command):
            edits = given._update_as_tuples()
            if edits and not is_recording():
                each = await self._checked_edits(({name: value} for name, value in edits), config)
                edits = [pair for edit in each for pair in edit.items()]
            # As value objects, because langgraph takes a person's turn as JSON for a message.
            update = _checked_writes(edits, self.channels)
            given = replace(given, update=update or None, goto=given.goto or ())
        elif isinstance(given, dict):
            await self._refuse_second_question(config)
            given = await store_uploads(given)
            _checked_writes(given.items(), self.channels)
        elif given is not None:
            raise BadInput('The input must be an object, such as {"question": "..."}.')
        return given

    async def _refuse_second_question(self, config: Any) -> None:
        if not self.checkpointer:
            return
        snapshot = await self.aget_state(config)
        values: Any = snapshot.values
        if is_begun(values) and not runners.is_same_run(snapshot, config):
            raise BadInput(SECOND_QUESTION if snapshot.next else AFTER_THE_END)
