"""What a forecasting debate can be told."""

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, PositiveFloat, ValidationError, field_validator

from contend.graph.contract import (
    CRITERIA,
    JUDGE_WEIGHT,
    MAX_ARGUMENT_LENGTH,
    MOST_ROUNDS,
    ROLES,
    ROUNDS,
    Criterion,
    DebateRequest,
    Phase,
    Role,
    check_criteria,
    check_roles,
)
from contend.graph.errors import BadInput
from contend.graph.phases import PhaseName
from contend.graph.settings.base import DebateSettings, WhenASeatFails, fallbacks_of, temperature_of
from contend.graph.state import DebateState, Seat

# Fitted by `python -m contend.evals.extremising` on market prices of resolved questions, for want
# of enough resolved debates. The fit is loose (bootstrap: 0.95-1.21) and gains 0.0002 of log loss;
# `contend scoreboard` fits it to the user's own forecasts.
EXTREMISING_FACTOR = 1.1
# What the verdict has at the least, when the rounds have used up all other time.
_VERDICT_SHARE = 0.2
_AS_SETTING = {"rounds": "max_rounds"}
# A round's time against the one before: without a first round there is no forecast at all.
_NEXT_ROUND = 0.6
RoundPart = Literal["before_judge", "arguments", "second_versions", "scores"]
# How much of a round's time is over when its parts are due, so that nobody who hangs takes the time
# of the others. Arguments that the judge waits for are due before its own.
_DUE: dict[RoundPart, float] = {
    "before_judge": 0.4,
    "arguments": 0.7,
    "second_versions": 0.9,
    "scores": 1.0,
}


class ForecastSettings(DebateSettings):
    """Five roles argue over outcomes for three rounds; numbers give a distribution."""

    max_rounds: int = Field(
        ROUNDS, ge=1, le=MOST_ROUNDS, description="Rounds of argument; all are held."
    )
    roles: tuple[Role, ...] = Field(
        ROLES, description="Who debates: the judge and at least one other."
    )
    max_argument_length: int = Field(
        MAX_ARGUMENT_LENGTH, ge=100, le=4000, description="Tokens of an argument at the most."
    )
    argument_input_tokens: int = Field(
        600, ge=300, le=32_000, description="Tokens the prompt of an argument should take."
    )
    scoring_criteria: tuple[Criterion, ...] = Field(
        CRITERIA, description="What arguments are scored on."
    )
    judge_weight: float = Field(
        JUDGE_WEIGHT, ge=0, le=1, description="Weight of the judge against the role consensus."
    )
    extremising_factor: PositiveFloat = Field(
        EXTREMISING_FACTOR, le=10, description="Power of the odds in the extremised pool."
    )
    overall_timeout: PositiveFloat = Field(
        120, description="Seconds for the whole debate; what is missing then is named."
    )
    templates: bool = Field(False, description="Give reasoning templates to the first speakers.")
    optimist_model: str = Field("ollama:qwen3:32b", description="Model of the Optimist.")
    pessimist_model: str = Field("ollama:llama3.3:70b", description="Model of the Pessimist.")
    contrarian_model: str = Field("ollama:qwen3:32b", description="Model of the Contrarian.")
    historian_model: str = Field("ollama:llama3.3:70b", description="Model of the Historian.")
    judge_model: str = Field(
        "ollama:gemma3:27b", description="Model that judges, and scores every argument."
    )
    optimist_temperature: float = temperature_of(0.7, "Optimist")
    pessimist_temperature: float = temperature_of(0.7, "Pessimist")
    contrarian_temperature: float = temperature_of(0.9, "Contrarian")
    historian_temperature: float = temperature_of(0.5, "Historian")
    optimist_fallbacks: tuple[str, ...] = fallbacks_of("Optimist")
    pessimist_fallbacks: tuple[str, ...] = fallbacks_of("Pessimist")
    contrarian_fallbacks: tuple[str, ...] = fallbacks_of("Contrarian")
    historian_fallbacks: tuple[str, ...] = fallbacks_of("Historian")

    @field_validator("roles")
    @classmethod
    def _roles_that_can_debate(cls, roles: tuple[Role, ...]) -> tuple[Role, ...]:
        check_roles(roles)
        return roles

    @field_validator("scoring_criteria")
    @classmethod
    def _criteria_to_score_on(cls, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        check_criteria(criteria)
        return criteria

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return "forecast"

    @property
    def opening_seats(self) -> tuple[str, ...]:
        """All roles."""
        return self.roles

    @property
    def rounds(self) -> tuple[int, int]:
        """No rule ends them early."""
        return self.max_rounds, self.max_rounds

    @property
    def answering_role(self) -> str:
        """The first at the table; all roles argue."""
        return self.roles[0]

    @property
    def critic_role(self) -> str:
        """The judge scores."""
        return "judge"

    @property
    def writer_role(self) -> str:
        """The judge gives the verdict."""
        return "judge"

    @property
    def when_a_seat_fails(self) -> WhenASeatFails:
        """A role that cannot speak leaves a gap, which the result names."""
        return "sit_out"

    @property
    def max_steps(self) -> int:
        """Five steps a round at the most, three around them, and room for resumed ones."""
        return 5 * self.max_rounds + 10

    @property
    def rounds_timeout(self) -> float:
        """Seconds for the rounds; the rest is the verdict's."""
        return self.overall_timeout * (1 - _VERDICT_SHARE)

    def due(self, round_number: int, part: RoundPart) -> float:
        """Seconds into the debate at which a part of a round is due; time not used is kept."""
        shares = [_NEXT_ROUND**number for number in range(self.max_rounds)]
        done = sum(shares[: round_number - 1]) + shares[round_number - 1] * _DUE[part]
        return self.rounds_timeout * done / sum(shares)

    def token_limit(self, phase: PhaseName) -> int | None:
        """Arguments have one."""
        return self.max_argument_length if phase == "propose" else None

    def answers(self, seat: Seat) -> bool:
        """All roles speak in every round, the judge too."""
        return seat.role in self.roles

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:
        """All at once; in the last round the judge comes after all others."""
        others = tuple(seat for seat in waiting if seat != "judge")
        return others if round_number == self.max_rounds and others else tuple(waiting)

    def phase(self, round_number: int) -> Phase:
        """What a round is for."""
        if round_number == 1:
            return "opening"
        return "closing" if round_number == self.max_rounds else "rebuttal"

    def check_given(self, given: DebateState) -> None:
        """A forecast needs outcomes."""
        if not given.get("request"):
            raise BadInput(
                "A forecast needs the outcomes it is about: give each with --outcome ID: LABEL, or "
                "a request with --request FILE."
            )
        request = request_of(given)
        seats = given.get("seats")
        if not (seats and all(isinstance(seat, Seat) for seat in seats)):
            self._check_alike(request, given.get("question"))

    def _check_alike(self, request: DebateRequest, question: str | None) -> None:
        """Where no front end has merged the two, whatever they say differently would be ignored."""
        asked = request.prediction_context.task.question
        if question != asked:
            raise BadInput("The question is not the one of the request; give the same in both.")
        held = self.model_dump(mode="json")
        for name, wanted in settings_of(request).items():
            if wanted != held[name]:
                raise BadInput(
                    f"The request's config wants {name} {wanted}, the settings say {held[name]}: "
                    "give it as a setting, or leave it out of the request."
                )

    def table(self) -> list[Seat]:
        """The roles in the order given."""
        return [self._seat(role) for role in self.roles]


def request_of(state: DebateState) -> DebateRequest:
    """The request of a forecast; clients of a server may have sent anything as such."""
    try:
        return DebateRequest.model_validate_json(json.dumps(state["request"]))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise BadInput(f"The request is not well-formed: {where}: {first['msg']}.") from error
    except (TypeError, ValueError) as error:
        raise BadInput("The request is not JSON.") from error


def settings_of(request: DebateRequest) -> dict[str, object]:
    """The settings a request's own configuration gives; what it leaves out is for others to say."""
    config = request.config.model_dump(mode="json", exclude_unset=True)
    return {_AS_SETTING.get(name, name): value for name, value in config.items()}
