"""The ways in which a debate can be refused, stop or fail; any other error is a bug."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # raising an error must not import langgraph
    from datetime import datetime

    from contend.graph.values import Degradation, Usage


class BadInput(ValueError):
    """A request that cannot be run as given; raised before any paid call."""

    # A ValueError, because `langgraph dev` hides the message of any other type from its clients.


class QuestionTooLong(BadInput):
    """A question too long to debate; clients that cannot choose models are shown only `what`."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        super().__init__(f"{what} {remedy}")


class ModelFailed(RuntimeError):
    """A failure to get a usable answer from any of a seat's models."""

    def __init__(self, seat: str, model: str, kind: str, why: str) -> None:
        self.seat, self.model, self.kind, self.why = seat, model, kind, why
        self.degraded: list[Degradation] = []
        self.spent: Usage | None = None
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        super().__init__(f"{seat} ({model}): {why}")

    @property
    def before(self) -> "list[Degradation]":
        """The problems before the final failure, for callers that report the failure themselves."""
        return [entry for entry in self.degraded if entry.what != "failed"]


# The kind of a failure for want of budget: no model was called.
BUDGET = "budget"
# How the reason of a pause for want of budget begins.
OUT_OF_BUDGET = "the next call does not fit into the budget"


class OverBudget(Exception):
    """The next call does not fit into what is left of the debate's budget."""


class NotRecorded(RuntimeError):
    """A call that the recording has no answer for."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        super().__init__(f"The recording has no answer for this call: {asked}")


class Paused(Exception):
    """A pause that was requested between calls or while a call waited for its retry."""


class DamagedDebate(RuntimeError):
    """A stored debate that cannot be read."""

    def __init__(self, debate_id: str, message: str = "") -> None:
        self.debate_id = debate_id
        super().__init__(
            message
            or f"The record of debate {debate_id} is damaged. Restore a backup of the database, or "
            "delete damaged debates with: contend prune --damaged"
        )


class DatabaseUnavailable(RuntimeError):
    """A database that does not respond; a running debate pauses, and its results are kept."""
