"""Registers the presets as assistants on a LangGraph server."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from httpx import HTTPStatusError
from langgraph_sdk.client import LangGraphClient

from contend.debates.presets import find_preset, preset_names
from contend.debates.settings_sources import settings_of_preset
from contend.graph.errors import BadInput
from contend.service.logs import log_trouble


async def register_presets(client: LangGraphClient) -> None:
    for name in await asyncio.to_thread(preset_names):
        try:
            preset = await asyncio.to_thread(find_preset, name)
            settings = settings_of_preset(preset)
        except BadInput as unusable:
            log_trouble(f"Preset {name} is not an assistant: {unusable}")
            continue
        assistant_id = str(uuid5(NAMESPACE_URL, f"contend/presets/{name}"))
        about: dict[str, Any] = {
            "context": settings,
            "name": name,
            "description": preset.description,
        }
        try:
            await _register(client, preset.protocol, assistant_id, about)
        except HTTPStatusError as refused:  # another worker registers it at the same time
            log_trouble(f"Preset {name} is not registered as an assistant: {refused}")


async def _register(
    client: LangGraphClient, graph_id: str, assistant_id: str, about: dict[str, Any]
) -> None:
    found: Mapping[str, Any] = await client.assistants.create(
        graph_id, assistant_id=assistant_id, if_exists="do_nothing", **about
    )
    if any(found.get(key) != value for key, value in about.items()):
        await client.assistants.update(assistant_id, graph_id=graph_id, **about)
