"""Bringing the tables of the records up to date, on SQLite and PostgreSQL alike.

A change is a file in `versions/`; what is newest stands here, so that a database that is up to date
costs one query and no import of Alembic.
"""

from pathlib import Path

import sqlalchemy as sa

from contend.graph.errors import BadInput

NEWEST = "0004"
# Not Alembic's own name: a server's database may hold the tables of others.
VERSION_TABLE = "contend_version"

# The revision whose tables the releases before Alembic made.
_BEFORE_ALEMBIC = "0001"
# Any number will do, as long as it stays the same in every release.
_LOCK = 20_261_118


def bring_up_to_date(engine: sa.Engine) -> None:
    """Make or change the tables where needed; a database of a later release is left alone."""
    with engine.connect() as connection:
        found = stored_revision(connection)
    if found != NEWEST:
        _refuse_newer(found)
        _upgrade(engine)


def stored_revision(connection: sa.Connection) -> str | None:
    """The revision a database is at; None when no table says so."""
    try:
        return _read_revision(connection)
    except (sa.exc.ProgrammingError, sa.exc.OperationalError):
        connection.rollback()
        # It may have been made in this very moment, by another that starts.
        return _read_revision(connection) if _has_table(connection, VERSION_TABLE) else None


def _upgrade(engine: sa.Engine) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        _lock(connection)
        if _has_table(connection, VERSION_TABLE):
            _refuse_newer(_read_revision(connection))
        elif _has_table(connection, "debates"):
            command.stamp(config, _BEFORE_ALEMBIC)
        command.upgrade(config, "head")


def _lock(connection: sa.Connection) -> None:
    """Let one process through at a time; the lock ends with the transaction."""
    if connection.dialect.name == "sqlite":
        # The driver begins no transaction for a change of tables, so it is begun by hand.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    encoding = connection.execute(sa.text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise BadInput(f"The database is encoded in {encoding}; Contend needs one in UTF8.")


def _read_revision(connection: sa.Connection) -> str | None:
    query = sa.text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - a constant
    found: str | None = connection.execute(query).scalar_one_or_none()
    return found


def _refuse_newer(found: str | None) -> None:
    if found and found > NEWEST:
        raise BadInput("The database was written by a newer version of Contend; upgrade to use it.")


def _has_table(connection: sa.Connection, name: str) -> bool:
    return sa.inspect(connection).has_table(name)
