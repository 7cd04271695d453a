"""Builds inserts that SQLite and PostgreSQL write in their own ways."""

from importlib import import_module
from typing import Any

import sqlalchemy as sa


def insert(dialect: str, table: sa.Table) -> Any:
    """Return an insert with `on_conflict`; the other dialect is never imported, as it is slow."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
