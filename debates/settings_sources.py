"""Reads settings from flags, a preset, a YAML file, environment variables and defaults."""

import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from contend.debates.presets import Preset
from contend.debates.settings_files import read_mapping
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.terms import OwnCriterion, OwnRole
from contend.graph.settings import (
    SETTINGS,
    DebateSettings,
    PositionChoice,
    SeatChoice,
    data_home,
    snake_case,
)
from contend.graph.values import ToolName
from contend.models.files import parse_yaml
from contend.models.text import clean, clean_data, shorten

PREFIX = "CONTEND_"
CONFIG_NAME = "config.yaml"
# Variables that are not settings for a debate.
NOT_SETTINGS = frozenset({"CONTEND_HOME", "CONTEND_DEBUG", "CONTEND_SERVICE_TOKEN"})

_DEFAULT = "default"
_STORED = "stored with the debate"
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
}

# Settings with an option of their own, and how an entry is written in a file.
_OPTIONS = {"seats": "--seat", "positions": "--position"}
_WRITTEN = {
    "seats": "{name: NAME, model: PROVIDER:NAME}",
    "positions": "{name: NAME, position: POSITION}",
    "own_roles": "{name: NAME, description: TEXT}",
    "own_criteria": "{name: NAME, description: TEXT, weight: NUMBER}",
}
_SEAT_MODELS: dict[str, type[BaseModel]] = {
    "seats": SeatChoice,
    "positions": PositionChoice,
    "own_roles": OwnRole,
    "own_criteria": OwnCriterion,
}
_SEAT_WORDS = {
    "missing": "is missing",
    "string_type": "must be text",
    "string_too_short": "is empty",
    "string_pattern_mismatch": "must have 3 to 32 small letters and underscores",
    "greater_than_equal": "must be between 0 and 2",
    "less_than_equal": "must be between 0 and 2",
}


@dataclass(frozen=True)
class Given:
    value: Any
    source: str


@dataclass(frozen=True)
class Configured:
    settings: DebateSettings
    sources: dict[str, str]
    notices: list[str]

    def described(self) -> dict[str, dict[str, Any]]:
        values = self.settings.model_dump(mode="json")
        return {
            name: {"value": value, "source": self.sources.get(name, _DEFAULT)}
            for name, value in values.items()
        }


def configure(
    protocol: str,
    flags: Mapping[str, Any],
    model: str | None,
    config: Path | None,
    environ: Mapping[str, str],
    preset: Preset | None = None,
) -> Configured:
    schema = _schema(protocol)
    given, notices = _from_environment(schema, environ)
    given |= _from_file(schema, config)
    if preset:
        given |= _from_preset(schema, preset)
    given |= _from_flags(schema, flags)
    if model is not None:
        if preset:
            raise BadInput("A preset chooses the models. Give either a preset or a model.")
        seats = schema.settings_for_model(model)
        given = {name: Given(value, "--model") for name, value in seats.items()} | given
    settings = _validated(schema, given)
    sources = {name: each.source for name, each in given.items()}
    return Configured(settings, sources, notices)


def settings_from(
    protocol: str, values: Mapping[str, Any], source: str, preset: Preset | None = None
) -> DebateSettings:
    """Return settings from the given values alone, ignoring the environment and config file."""
    schema = _schema(protocol)
    given = _from_preset(schema, preset) if preset else {}
    given |= {_known(schema, name, source): Given(value, source) for name, value in values.items()}
    return _validated(schema, given)


def settings_of_preset(preset: Preset) -> dict[str, Any]:
    chosen = settings_from(preset.protocol, {}, "", preset)
    return chosen.model_dump(mode="json", exclude_unset=True)


def stored_settings_from(
    protocol: str, stored: Mapping[str, Any], changes: Mapping[str, Any]
) -> DebateSettings:
    """Return stored settings with changes applied, dropping settings unknown to this release."""
    schema = _schema(protocol)
    known = {name: Given(stored[name], _STORED) for name in schema.model_fields if name in stored}
    given = known | {
        _known(schema, name, "--set"): Given(each, "--set")
        for name, each in changes.items()
        if not isinstance(each, Given)
    }
    typed = {name: each for name, each in changes.items() if isinstance(each, Given)}
    return _validated(schema, given | _from_flags(schema, typed))


def parse_assignments(pairs: Iterable[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"'{pair}' is not in the form NAME=VALUE, such as max_rounds=4.")
        flags[name.strip()] = value
    return flags


def parse_options(
    protocol: str, assignments: Sequence[str], seats: Sequence[str], positions: Sequence[str]
) -> dict[str, Any]:
    flags: dict[str, Any] = {**parse_assignments(assignments)}
    if seats:
        if protocol not in (fitting := _protocols_with("seats")):
            raise BadInput(
                f"--seat works only with {' and '.join(fitting)}. For {protocol}, choose models "
                "with --model or --set."
            )
        flags["seats"] = [_seat(pair) for pair in seats]
    if positions:
        if protocol not in (fitting := _protocols_with("positions")):
            raise BadInput(f"--position works only with --protocol {' or '.join(fitting)}.")
        flags["positions"] = [_position(pair) for pair in positions]
    return flags


def _protocols_with(setting: str) -> list[str]:
    return [name for name, schema in SETTINGS.items() if setting in schema.model_fields]


def _seat(pair: str) -> dict[str, str]:
    name, equals, model = pair.partition("=")
    if not equals or not name.strip() or not model.strip():
        raise BadInput(f"'--seat {pair}' is not in the form NAME=MODEL, such as Ann=ollama:qwen3.")
    return {"name": name, "model": model.strip()}


def _position(pair: str) -> dict[str, str]:
    name, colon, position = pair.partition(":")
    if not colon or not name.strip():
        raise BadInput(
            f"'--position {pair}' is not in the form NAME: POSITION, such as 'Ann: We should wait'."
        )
    if not position.strip():
        raise BadInput(f"The position of '{name.strip()}' is empty (--position).")
    return {"name": name.strip(), "position": position.strip()}


def _schema(protocol: str) -> type[DebateSettings]:
    if protocol not in SETTINGS:
        raise BadInput(
            f"There is no protocol '{protocol}'.{_nearest(protocol, SETTINGS)} "
            f"Known: {', '.join(SETTINGS)}."
        )
    return SETTINGS[protocol]


def _from_environment(
    schema: type[DebateSettings], environ: Mapping[str, str]
) -> tuple[dict[str, Given], list[str]]:
    """Return settings from CONTEND_* environment variables, and notices about unknown variables."""
    given: dict[str, Given] = {}
    notices = []
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        if name in schema.model_fields:
            value = _read(schema, name, environ[variable], variable)
            given[name] = Given(value, variable)
        else:
            notices.append(
                f"{variable} is not a setting of {_name(schema)} and was ignored."
                f"{_nearest(name, schema.model_fields)}"
            )
    return given, notices


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    known = {f"{PREFIX}{name}".upper() for each in SETTINGS.values() for name in each.model_fields}
    return {name: environ[name] for name in sorted(environ) if name in known}


def _from_file(schema: type[DebateSettings], config: Path | None) -> dict[str, Given]:
    path = config or data_home() / CONFIG_NAME
    if config is None and not path.is_file():
        return {}
    source, values = str(path), read_mapping(path)
    return {_known(schema, str(key), source): Given(values[key], source) for key in values}


def _from_preset(schema: type[DebateSettings], preset: Preset) -> dict[str, Given]:
    source = f"preset {preset.name}"
    named = leave_out_others(schema, preset.settings)
    values = {_known(schema, str(key), source): value for key, value in named.items()}
    if preset.model:
        values = {**schema.settings_for_model(preset.model), **values}
    return {name: Given(value, source) for name, value in values.items()}


def leave_out_others(schema: type[DebateSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    known = {name for each in SETTINGS.values() for name in each.model_fields}
    others = known - schema.model_fields.keys()
    return {name: value for name, value in values.items() if snake_case(name) not in others}


def _from_flags(schema: type[DebateSettings], flags: Mapping[str, Any]) -> dict[str, Given]:
    given = {}
    for key, flag in flags.items():
        value, source = (flag.value, flag.source) if isinstance(flag, Given) else (flag, "--set")
        name = _known(schema, key, source)
        if isinstance(value, str):
            given[name] = Given(_read(schema, name, value, source), source)
        elif isinstance(flag, Given):
            given[name] = flag
        else:
            given[name] = Given(value, _OPTIONS.get(name, "--request"))
    return given


def _known(schema: type[DebateSettings], key: str, source: str) -> str:
    name = snake_case(key)
    if name in schema.model_fields:
        return name
    hint = _nearest(name, schema.model_fields) or " `contend config` lists them all."
    raise BadInput(f"{_name(schema)} has no setting '{key}' ({source}).{hint}")


def _read(schema: type[DebateSettings], name: str, text: str, source: str) -> Any:
    """Parse a flag or environment variable as YAML, unless the setting is a string."""
    annotation = schema.model_fields[name].annotation
    is_list = any(getattr(kind, "__origin__", None) is tuple for kind in _kinds(annotation))
    if annotation is str:
        return text
    try:
        value = parse_yaml(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{name} ({source}) cannot be read: '{text}'.") from error
    if is_list and isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return [] if is_list and value is None else value


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return (annotation, *(get_args(annotation) if isinstance(annotation, types.UnionType) else ()))


def _validated(schema: type[DebateSettings], given: dict[str, Given]) -> DebateSettings:
    for name, each in given.items():
        _refuse_bool_for_number(schema, name, each)
    try:
        # Databases refuse invalid text, such as bytes from a terminal with another encoding.
        cleaned = {name: clean_data(each.value, clean) for name, each in given.items()}
        return schema.model_validate(cleaned)
    except ValidationError as error:
        raise BadInput(_describe_problem(schema, error.errors()[0], given)) from error


def _refuse_bool_for_number(schema: type[DebateSettings], name: str, given: Given) -> None:
    """Raise BadInput for a boolean where a number is expected; pydantic would accept it."""
    kinds = _kinds(schema.model_fields[name].annotation)
    if isinstance(given.value, bool) and (int in kinds or float in kinds):
        raise BadInput(f"{name} must be a number, not {_shown(given.value)} ({given.source}).")


def _describe_problem(
    schema: type[DebateSettings], problem: ErrorDetails, given: dict[str, Given]
) -> str:
    reason = str(problem.get("ctx", {}).get("error", problem["msg"]))
    if not problem["loc"]:
        are_stored = bool(given) and all(each.source == _STORED for each in given.values())
        return f"{reason}.{' A fork can change it: --set NAME=VALUE.' if are_stored else ''}"
    name = str(problem["loc"][0])
    source = given[name].source if name in given else _DEFAULT
    remedy = f" A fork can change it: --set {name}=VALUE." if source == _STORED else ""
    return f"{_describe_value(schema, problem, reason, name)} ({source}).{remedy}"


def _describe_value(
    schema: type[DebateSettings], problem: ErrorDetails, reason: str, name: str
) -> str:
    if name in _SEAT_MODELS:
        return _describe_seat_problem(name, problem, reason)
    wanted = _limits(schema, name, problem) or _EXPECTED.get(problem["type"])
    if problem["type"] == "literal_error":
        wanted = f"one of {problem.get('ctx', {}).get('expected', '')}".replace("'", "")
    if wanted is None:
        return reason if reason.startswith(name) else f"{name}: {reason}"
    return f"{name} must be {wanted}, not {_shown(problem['input'])}"


def _describe_seat_problem(name: str, problem: ErrorDetails, reason: str) -> str:
    one = name.removesuffix("s")
    known = ", ".join(_SEAT_MODELS[name].model_fields)
    words = _SEAT_WORDS | {
        "extra_forbidden": f"is not a setting of a {one}; known: {known}",
        "model_type": f"must be written as {_WRITTEN[name]}",
        "tuple_type": f"must be a list of {_WRITTEN[name]}",
    }
    if (limit := problem.get("ctx", {}).get("max_length")) is not None:
        words["string_too_long"] = f"must have at most {limit} characters"
        words["too_long"] = f"must have at most {limit} entries"
    said = words.get(problem["type"], reason)
    at, *fields = problem["loc"][1:] or ("",)
    if fields and problem["type"] == "tuple_type":
        said = "must be a list"
    if problem["type"] == "literal_error":
        said = (
            f"'{_shown(problem['input'])}' does not exist; known: {', '.join(get_args(ToolName))}"
        )
    where = f"{one} {at + 1}" if isinstance(at, int) else name
    return f"{where}: {' '.join([*map(str, fields[:1]), said])}"


def _limits(schema: type[DebateSettings], name: str, problem: ErrorDetails) -> str | None:
    if not problem["type"].startswith(("greater_than", "less_than")):
        return None
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    constraints = schema.model_fields[name].metadata
    found = {key: getattr(each, key) for each in constraints for key in words if hasattr(each, key)}
    limits = found or problem.get("ctx", {})
    if "ge" in limits and "le" in limits:
        return f"between {limits['ge']:g} and {limits['le']:g}"
    return " and ".join(f"{words[key]} {limit:g}" for key, limit in limits.items() if key in words)


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return shorten("nothing" if value is None else text, 60)


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{found[0]}'?" if found else ""


def _name(schema: type[DebateSettings]) -> str:
    return next(name for name, each in SETTINGS.items() if each is schema)
