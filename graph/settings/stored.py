"""Reads any release's stored settings, even if this release would refuse them."""

import types
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def read_stored(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Read stored settings without checking limits, so that old debates stay readable."""
    known = {name: values[name] for name in model.model_fields if name in values}
    try:
        return model.model_validate(known)
    except ValidationError:
        return _construct(model, known)


def _construct(model: type[Model], known: Mapping[str, Any]) -> Model:
    read: dict[str, Any] = {}
    for name, value in known.items():
        try:
            read[name] = _read(model.model_fields[name].annotation, value)
        except (ValidationError, _UnknownForm):
            if model.model_fields[name].is_required():
                raise
    if any(field.is_required() and name not in read for name, field in model.model_fields.items()):
        raise _UnknownForm
    return model.model_construct(read.keys() & known.keys(), **read)


class _UnknownForm(ValueError):
    """Raised for a value in an unknown format. The default is used instead."""


def _read(kind: Any, value: Any) -> Any:
    """Read a value as `kind`, ignoring limits such as a maximum."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        inner, origin = get_args(kind), get_origin(kind)
        if origin is Annotated:
            return _read(inner[0], value)
        if origin in (Union, types.UnionType):
            return _read_first([each for each in inner if each is not types.NoneType], value)
        if origin is tuple and isinstance(value, list | tuple):
            return tuple(_read(inner[0], each) for each in value)
        if origin is dict and isinstance(value, Mapping):
            return {name: _read(inner[1], each) for name, each in value.items()}
        if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, Mapping):
            return _construct(
                kind, {name: value[name] for name in kind.model_fields if name in value}
            )
        raise


def _read_first(kinds: list[Any], value: Any) -> Any:
    for kind in kinds[:-1]:
        try:
            return _read(kind, value)
        except (ValidationError, _UnknownForm):
            continue
    return _read(kinds[-1], value)
