import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from contend.debates.forecasts import PROTOCOL
from contend.debates.presets import Preset
from contend.debates.servers import ServerAddress
from contend.debates.settings_sources import configure, leave_out_others
from contend.graph.errors import BadInput
from contend.graph.settings import SETTINGS, DebateSettings
from contend.graph.settings.forecast import ForecastSettings


@dataclass(frozen=True)
class ServiceOptions:
    model: str | None = None
    assignments: Mapping[str, str] = field(default_factory=dict)
    config: Path | None = None
    max_running: int = 32
    max_running_per_client: int = 32
    max_streams_per_client: int = 64
    open_to_network: bool = False
    """Whether other machines can connect; if so, every request needs the token."""
    resumes_debates: bool = True
    """Whether to resume debates that a stopped service left unfinished."""
    server: ServerAddress | None = None
    """The LangGraph server that runs the debates; if None, the service runs them."""
    allowed_models: tuple[str, ...] = ("*",)
    """Patterns for the models that clients may choose."""

    def settings(self, wanted: Mapping[str, object] = MappingProxyType({})) -> ForecastSettings:
        loaded = self.settings_of(PROTOCOL, wanted)
        if loaded.pause != "never":
            raise BadInput("pause must be 'never' in a service, because nobody can answer.")
        return cast("ForecastSettings", loaded)

    def settings_of(
        self,
        protocol: str,
        wanted: Mapping[str, object],
        model: str | None = None,
        preset: Preset | None = None,
    ) -> DebateSettings:
        """Return the service's settings for a protocol, overridden by the caller's settings."""
        schema = SETTINGS.get(protocol)
        ours = leave_out_others(schema, self.assignments) if schema else {}
        flags: dict[str, Any] = {**ours, **wanted}
        model = model or (None if preset else self.model)
        return configure(protocol, flags, model, self.config, dict(os.environ), preset).settings
