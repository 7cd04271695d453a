"""Creates LangGraph tasks with fixed names, because checkpoints contain the names."""

from collections.abc import Awaitable, Callable, Generator
from functools import cached_property
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from langgraph.func import task
from pydantic import TypeAdapter, ValidationError

from contend.graph.errors import BadInput

Given = ParamSpec("Given")
Result = TypeVar("Result")


class StoredTask(Generic[Given, Result]):
    """A task that validates its result, which may be plain JSON in a checkpoint."""

    def __init__(
        self, name: str, function: Callable[Given, Awaitable[Result]], earlier_form: Any = None
    ) -> None:
        # Never change a name: checkpoints contain it, so paused debates would lose finished calls.
        function.__name__ = name
        self._name, self._function, self._earlier_form = name, function, earlier_form
        self._task = task(function)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Awaitable[Result]:
        # Start the task now instead of when it is awaited: the order of starts identifies tasks.
        return _Checked(self._task(*args, **kwargs), self._check)

    @cached_property
    def _form(self) -> TypeAdapter[Any]:
        form = get_type_hints(self._function)["return"]
        return TypeAdapter(form | self._earlier_form if self._earlier_form else form)

    def _check(self, result: Any) -> Any:
        try:
            return self._form.validate_python(result)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            why = f"{place} is not well-formed: {first['msg']}."
            raise BadInput(
                f"The stored result of the task {self._name} is damaged: {why}"
            ) from error


class _Checked(Awaitable[Result]):
    def __init__(self, result: Awaitable[Result], check: Callable[[Result], Result]) -> None:
        self._result, self._check = result, check

    def __await__(self) -> Generator[Any, Any, Result]:
        result = yield from self._result.__await__()
        return self._check(result)


def stored_task(
    name: str, function: Callable[Given, Awaitable[Result]], earlier_form: Any = None
) -> StoredTask[Given, Result]:
    """Make a task whose finished calls are not repeated or paid for again after a crash."""
    return StoredTask(name, function, earlier_form)
