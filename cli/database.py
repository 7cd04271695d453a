"""Opening the user's database for a command."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.graph.checkpoints.saver import database, is_on_server
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.settings import data_home
from contend.models.failures import first_line


@contextmanager
def records() -> Iterator[Repository]:
    """The repository of debates, made if it is not there yet."""
    try:
        opened = _open()
        try:
            yield opened
        finally:
            opened.close()
    except DatabaseUnavailable as away:
        raise BadInput(f"{away}. See to the server or to DATABASE_URL, then try again.") from away


def _open() -> Repository:
    try:
        return open_repository()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(
            f"The data folder {data_home()} cannot be used: {why}. Set CONTEND_HOME to another."
        ) from error
    except SQLAlchemyError as error:
        where = str(database()) if is_on_server() else f"database in {data_home()}"
        why = first_line(getattr(error, "orig", error))
        raise BadInput(
            f"The {where} cannot be opened: {why}. `contend doctor` says more."
        ) from error


def is_empty() -> bool:
    """Whether no debate was ever kept; asking must not create the database."""
    return not is_on_server() and not (data_home() / "contend.db").exists()


@contextmanager
def existing(reference: str) -> Iterator[tuple[Repository, StoredDebate]]:
    """The repository and the one debate in it that a command is about."""
    if is_empty():
        raise BadInput(
            f"No debate has the id '{reference}': there are none yet. "
            'Begin with `contend ask "..."`.'
        )
    with records() as opened:
        yield opened, opened.find(reference)
