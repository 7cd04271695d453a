from pathlib import Path

import sqlalchemy as sa

from contend.graph.errors import BadInput

# Repeated here, so that an up-to-date database needs one query and no import of Alembic.
NEWEST = "0010"
# Not Alembic's default: the database may also hold tables of other programs.
VERSION_TABLE = "contend_version"

# The revision that matches the tables of releases that did not use Alembic.
_BEFORE_ALEMBIC = "0001"
# An arbitrary number, which must never change.
_LOCK = 20_261_118


class NewerDatabase(BadInput):
    def __init__(self) -> None:
        super().__init__(
            "The database was written by a newer version of Contend; upgrade to use it."
        )


def bring_up_to_date(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        found = stored_revision(connection)
    if found != NEWEST:
        refuse_newer(found)
        _upgrade(engine)


def stored_revision(connection: sa.Connection) -> str | None:
    try:
        return _read_revision(connection)
    except (sa.exc.ProgrammingError, sa.exc.OperationalError):
        connection.rollback()
        # Another process may have just created the table.
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
            refuse_newer(_read_revision(connection))
        elif _has_table(connection, "debates"):
            command.stamp(config, _BEFORE_ALEMBIC)
        command.upgrade(config, "head")


def _lock(connection: sa.Connection) -> None:
    if connection.dialect.name == "sqlite":
        # The driver does not start a transaction for DDL.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    encoding = connection.execute(sa.text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise BadInput(f"The database uses the encoding {encoding}; Contend needs UTF8.")


def _read_revision(connection: sa.Connection) -> str | None:
    query = sa.text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - a constant
    found: str | None = connection.execute(query).scalar_one_or_none()
    return found


def refuse_newer(found: str | None) -> None:
    if found and found > NEWEST:
        raise NewerDatabase


def _has_table(connection: sa.Connection, name: str) -> bool:
    return sa.inspect(connection).has_table(name)
