from importlib import import_module
from typing import Any

import sqlalchemy as sa


def insert(dialect: str, table: sa.Table) -> Any:
    """Return an insert that supports `on_conflict`; import only this dialect, to save time."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
