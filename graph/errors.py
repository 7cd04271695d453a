"""The ways a debate can be refused, stop or fail; everything else is a bug."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an error must not cost the import of langgraph
    from datetime import datetime

    from contend.graph.values import Degradation, Usage


class BadInput(ValueError):
    """The request cannot be run as given; said before any model is paid.

    A built-in kind of error, for `langgraph dev` hides the message of any other from its clients.
    """


class QuestionTooLong(BadInput):
    """The question leaves no room for a debate; who cannot choose models is told only `what`."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        super().__init__(f"{what} {remedy}")


class ModelFailed(RuntimeError):
    """A seat got no usable answer from any of its models."""

    def __init__(self, seat: str, model: str, kind: str, why: str) -> None:
        self.seat, self.model, self.kind, self.why = seat, model, kind, why
        self.degraded: list[Degradation] = []
        self.spent: Usage | None = None
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        super().__init__(f"{seat} ({model}): {why}")

    @property
    def before(self) -> "list[Degradation]":
        """What befell the call before it failed for good, for whoever tells that in its own words.

        Told twice, one outage would read as two.
        """
        return [entry for entry in self.degraded if entry.what != "failed"]


class Paused(Exception):
    """A pause was asked for while a call waited to be tried again; nothing was being paid."""


class DatabaseUnavailable(RuntimeError):
    """The database does not answer; a debate that runs pauses, with all it has paid for kept."""
