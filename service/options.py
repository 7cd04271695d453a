"""Options of the service, and the settings of its debates."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from contend.debates.forecasts import PROTOCOL
from contend.debates.settings_sources import configure
from contend.graph.errors import BadInput
from contend.graph.settings import SETTINGS, DebateSettings, snake_case
from contend.graph.settings.forecast import ForecastSettings


@dataclass(frozen=True)
class ServiceOptions:
    """Models and settings of the service's debates, as on the command line."""

    model: str | None = None
    assignments: Mapping[str, str] = field(default_factory=dict)
    config: Path | None = None
    max_running: int = 32
    """How many debates may run at the same time."""
    max_running_per_client: int = 32
    """How many of them one client may have started."""
    max_streams_per_client: int = 64
    """How many streams of events one client may have open."""
    open_to_network: bool = False
    """Whether other machines can connect, so that every request needs the token."""
    allowed_models: tuple[str, ...] = ("*",)
    """Patterns of the models that callers may choose."""

    def settings(self, wanted: Mapping[str, object] = MappingProxyType({})) -> ForecastSettings:
        loaded = self.settings_of(PROTOCOL, wanted)
        if loaded.pause != "never":
            raise BadInput("pause must be 'never' in a service, because nobody can answer.")
        return cast("ForecastSettings", loaded)

    def settings_of(
        self, protocol: str, wanted: Mapping[str, object], model: str | None = None
    ) -> DebateSettings:
        """Combine the caller's settings with those of the service that the protocol has."""
        others = {name for each in SETTINGS.values() for name in each.model_fields}
        if protocol in SETTINGS:
            others -= SETTINGS[protocol].model_fields.keys()
        given = self.assignments.items()
        ours = {name: value for name, value in given if snake_case(name) not in others}
        flags: dict[str, Any] = {**ours, **wanted}
        model = model or self.model
        return configure(protocol, flags, model, self.config, dict(os.environ)).settings
