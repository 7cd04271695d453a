"""Exceptions for refused, stopped and failed debates. Any other exception is a bug."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # raising an error must not import langgraph
    from datetime import datetime

    from contend.graph.values import Degradation, Usage


class BadInput(ValueError):
    """An invalid request, or one that cannot be run in the current environment."""

    # A ValueError, because `langgraph dev` hides the message of any other type from its clients.


class QuestionTooLong(BadInput):
    def __init__(self, what: str, remedy: str) -> None:
        self.what = what  # clients that cannot choose models see only this
        super().__init__(f"{what} {remedy}")


class ModelFailed(RuntimeError):
    """A call that got no usable answer from any of the seat's models."""

    def __init__(self, seat: str, model: str, kind: str, why: str) -> None:
        self.seat, self.model, self.kind, self.why = seat, model, kind, why
        self.degraded: list[Degradation] = []
        self.spent: Usage | None = None
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        super().__init__(f"{seat} ({model}): {why}")

    @property
    def before(self) -> "list[Degradation]":
        return [entry for entry in self.degraded if entry.what != "failed"]


# The kind of failure if the budget did not allow a call.
BUDGET = "budget"
# The beginning of the error message of a debate that ran out of budget.
OUT_OF_BUDGET = "the next call does not fit into the budget"


class OverBudget(Exception):
    """Raised when a call might cost more than the remaining budget."""


class NotRecorded(RuntimeError):
    def __init__(self, asked: str) -> None:
        self.asked = asked
        super().__init__(f"The recording has no answer for this call: {asked}")


class Paused(Exception):
    """A requested pause."""


class DamagedDebate(RuntimeError):
    def __init__(self, debate_id: str, message: str = "") -> None:
        self.debate_id = debate_id
        super().__init__(
            message
            or f"The record of debate {debate_id} is damaged. Restore a backup of the database, or "
            "delete damaged debates with: contend prune --damaged"
        )


class DatabaseUnavailable(RuntimeError):
    """A database outage. A running debate pauses and keeps its results."""
