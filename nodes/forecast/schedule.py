import asyncio
from dataclasses import dataclass
from typing import Literal

from contend.graph.forecast_contract.terms import Phase
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState
from contend.nodes.timing import worked_ms

# The share of time reserved for the verdict, even if the rounds use up all the rest.
_VERDICT_SHARE = 0.2
# Each round's time relative to the round before; the first gets most because it is indispensable.
_NEXT_ROUND = 0.6
RoundPart = Literal["before_judge", "arguments", "second_versions", "scores"]
# The share of a round's time after which a part is due, so that a call that hangs does not use up
# the time of the others. The arguments that the judge waits for are due before the judge's own.
_DUE: dict[RoundPart, float] = {
    "before_judge": 0.4,
    "arguments": 0.7,
    "second_versions": 0.9,
    "scores": 1.0,
}


def round_phase(settings: ForecastSettings, round_number: int) -> Phase:
    if round_number == 1:
        return "opening"
    return "closing" if round_number == settings.max_rounds else "rebuttal"


def rounds_timeout(settings: ForecastSettings) -> float:
    return settings.overall_timeout * (1 - _VERDICT_SHARE)


def seconds_until_due(settings: ForecastSettings, round_number: int, part: RoundPart) -> float:
    """Return when a round's part is due, in seconds from the start of the debate."""
    shares = [_NEXT_ROUND**number for number in range(settings.max_rounds)]
    done = sum(shares[: round_number - 1]) + shares[round_number - 1] * _DUE[part]
    return rounds_timeout(settings) * done / sum(shares)


@dataclass(frozen=True)
class Deadline:
    at: float  # on the event loop's clock
    due: float  # seconds into the debate, excluding pauses
    in_all: float

    @property
    def left(self) -> float:
        return self.at - asyncio.get_running_loop().time()

    @property
    def why(self) -> str:
        when = f"it was due {round(self.due, 1):g} s into the debate"
        return f"{when}; overall_timeout is {self.in_all:g} s"


class Clock:
    def __init__(self, state: DebateState, settings: ForecastSettings) -> None:
        self._settings, self._round = settings, state["round"]
        self._began = asyncio.get_running_loop().time() - worked_ms(state) / 1000

    def end_of(self, part: RoundPart) -> Deadline:
        return self._deadline(seconds_until_due(self._settings, self._round, part))

    def end_of_debate(self) -> Deadline:
        return self._deadline(self._settings.overall_timeout)

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(self._began + seconds, seconds, self._settings.overall_timeout)
