"""Makes langgraph tasks with stable names, which checkpoints refer to."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from langgraph.func import _TaskFunction, task

Given = ParamSpec("Given")
Result = TypeVar("Result")


def stored_task(
    name: str, function: Callable[Given, Awaitable[Result]]
) -> _TaskFunction[Given, Result]:
    """Make a task, so that a finished call is not made and paid again after a crash."""
    # Never change a name: checkpoints contain it, so paused debates would lose paid results.
    function.__name__ = name
    return task(function)
