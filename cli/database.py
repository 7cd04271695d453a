import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from contend.cli.view.console import print_message
from contend.debates.past import PastDebate
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.checkpoints.location import database, is_on_server
from contend.graph.errors import BadInput, DamagedDebate, DatabaseUnavailable
from contend.graph.settings import data_home
from contend.models.failures import first_line


@contextmanager
def records() -> Iterator[Repository]:
    try:
        opened = _open()
        try:
            yield opened
        finally:
            opened.close()
    except SQLAlchemyError as error:
        raise BadInput(_cannot("read", error)) from error
    except DatabaseUnavailable as outage:
        remedy = "Check the server and DATABASE_URL, then try" if is_on_server() else "Try"
        raise BadInput(f"{outage}. {remedy} again.") from outage


def _open() -> Repository:
    try:
        return Repository(database())
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise BadInput(
            f"Cannot use the data folder {data_home()}: {why}. Set CONTEND_HOME to another folder."
        ) from error
    except SQLAlchemyError as error:
        raise BadInput(_cannot("open", error)) from error


def _cannot(do: str, error: SQLAlchemyError) -> str:
    where = str(database()) if is_on_server() else f"database in {data_home()}"
    why = first_line(getattr(error, "orig", error))
    return f"Cannot {do} the {where}: {why}. Run `contend doctor` for details."


def print_skipped(damaged: DamagedDebate) -> None:
    print_message(f"Skipped: {damaged}", style="warning")


def is_empty() -> bool:
    return not is_on_server() and not (data_home() / "contend.db").exists()


def past(protocol: str) -> list[PastDebate]:
    """Return past debates, without creating a database if there is none."""
    if is_empty():
        return []
    with records() as opened:
        return opened.past(protocol)


@contextmanager
def existing(reference: str) -> Iterator[tuple[Repository, StoredDebate]]:
    if is_empty():
        raise BadInput(
            f"No debate has the id '{reference}': there are no debates yet. "
            'Start one with: contend ask "..."'
        )
    with records() as opened:
        adopt_if_any(opened)
        yield opened, opened.find(reference)


def adopt_if_any(opened: Repository) -> None:
    threads = opened.threads.unread()
    if threads:
        from contend.debates.adoption import adopt_threads  # slow to import, and rarely needed

        asyncio.run(adopt_threads(opened, threads))
