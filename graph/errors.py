"""The two ways a debate can be refused or fail; everything else is a bug."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an error must not cost the import of langgraph
    from graph.state import Degradation


class BadInput(ValueError):
    """The request cannot be run as given; said before any model is paid.

    A built-in kind of error, for `langgraph dev` hides the message of any other from its clients.
    """


class ModelFailed(RuntimeError):
    """A seat got no usable answer from any of its models."""

    def __init__(self, seat: str, model: str, kind: str, why: str) -> None:
        self.seat, self.model, self.kind, self.why = seat, model, kind, why
        self.degraded: list[Degradation] = []
        super().__init__(f"{seat} ({model}): {why}")


class Paused(Exception):
    """A pause was asked for while a call waited to be tried again; nothing was being paid."""
