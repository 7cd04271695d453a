from pathlib import Path
from typing import Any

import yaml

from contend.graph.errors import BadInput
from contend.models.files import parse_yaml


def read_mapping(path: Path) -> dict[Any, Any]:
    try:
        loaded = parse_yaml(path.expanduser().read_text("utf-8"))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(f"The config file {path} cannot be read: {why}.") from error
    except UnicodeError as error:
        raise BadInput(f"The config file {path} is not UTF-8 text.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"The config file {path} is not valid YAML{_where(error)}.") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise BadInput(f"The config file {path} must hold NAME: VALUE lines, one per setting.")
    return loaded


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
