from importlib import import_module
from typing import Any

import sqlalchemy as sa


def insert(dialect: str, table: sa.Table) -> Any:
    """Return the dialect's INSERT statement, which supports `on_conflict`."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
