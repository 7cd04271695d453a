"""Tasks under the names that checkpoints know them by."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from langgraph.func import _TaskFunction, task

Given = ParamSpec("Given")
Result = TypeVar("Result")


def stored_task(
    name: str, function: Callable[Given, Awaitable[Result]]
) -> _TaskFunction[Given, Result]:
    """Make a task: a call of it that has finished is never paid again after a crash."""
    # The stored id holds the name, so a new name would strand what paused debates have paid for.
    function.__name__ = name
    return task(function)
