"""What viewers are told of a finished round besides its points, by the protocol's own account."""

from functools import singledispatch
from typing import Any

from contend.graph.settings import DebateSettings, ForecastSettings
from contend.graph.state import DebateState
from contend.nodes.forecast.result import round_facts


@singledispatch
def round_facts_for(settings: DebateSettings, state: DebateState) -> dict[str, Any]:  # noqa: ARG001
    """Nothing, unless the protocol registers something."""
    return {}


@round_facts_for.register
def _of_a_forecast(settings: ForecastSettings, state: DebateState) -> dict[str, Any]:
    """The round's summary and scores."""
    return round_facts(state, settings, state["round"])
