"""Builds INSERT ... ON CONFLICT statements for SQLite and PostgreSQL."""

from importlib import import_module
from typing import Any

import sqlalchemy as sa


def insert(dialect: str, table: sa.Table) -> Any:
    """Return an insert with `on_conflict`; import only this dialect, because imports are slow."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
