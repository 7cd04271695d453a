"""Defines the ways to refuse, stop or fail a debate; any other exception is a bug."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # raising an error must not import langgraph
    from datetime import datetime

    from contend.graph.values import Degradation, Usage


class BadInput(ValueError):
    """Raised for a request that cannot be run as given, before any paid call."""

    # A ValueError, because `langgraph dev` hides the message of any other type from its clients.


class QuestionTooLong(BadInput):
    """Raised for an overlong question; clients that cannot choose models see only `what`."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        super().__init__(f"{what} {remedy}")


class ModelFailed(RuntimeError):
    """Raised if none of a seat's models returns a usable answer."""

    def __init__(self, seat: str, model: str, kind: str, why: str) -> None:
        self.seat, self.model, self.kind, self.why = seat, model, kind, why
        self.degraded: list[Degradation] = []
        self.spent: Usage | None = None
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        super().__init__(f"{seat} ({model}): {why}")

    @property
    def before(self) -> "list[Degradation]":
        """Return the problems that preceded the final failure."""
        return [entry for entry in self.degraded if entry.what != "failed"]


# The kind of failure if the budget did not allow a call.
BUDGET = "budget"
# The beginning of the error message of a debate that ran out of budget.
OUT_OF_BUDGET = "the next call does not fit into the budget"


class OverBudget(Exception):
    """Raised if the next call exceeds the remaining budget of the debate."""


class NotRecorded(RuntimeError):
    def __init__(self, asked: str) -> None:
        self.asked = asked
        super().__init__(f"The recording has no answer for this call: {asked}")


class Paused(Exception):
    """Raised after a pause request, between calls or before a retry."""


class DamagedDebate(RuntimeError):
    def __init__(self, debate_id: str, message: str = "") -> None:
        self.debate_id = debate_id
        super().__init__(
            message
            or f"The record of debate {debate_id} is damaged. Restore a backup of the database, or "
            "delete damaged debates with: contend prune --damaged"
        )


class DatabaseUnavailable(RuntimeError):
    """Raised if the database does not respond; a running debate pauses and keeps all results."""
