"""Creates LangGraph tasks with fixed names, because checkpoints contain the names."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from langgraph.func import _TaskFunction, task

Given = ParamSpec("Given")
Result = TypeVar("Result")


def stored_task(
    name: str, function: Callable[Given, Awaitable[Result]]
) -> _TaskFunction[Given, Result]:
    """Make a task, so that a finished call is not repeated or paid for again after a crash."""
    # Never change a name: checkpoints contain it, so paused debates would lose finished calls.
    function.__name__ = name
    return task(function)
