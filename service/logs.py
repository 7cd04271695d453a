"""What the service writes for its operator: once, and without secrets."""

import logging
import traceback

from contend.models.failures import scrub

_log = logging.getLogger("contend.service")


def show_notes() -> None:
    """Let whoever started the service read on stderr what it does, and not only of trouble."""
    _log.setLevel(logging.INFO)
    _log.addHandler(logging.StreamHandler())


def log_note(what: str) -> None:
    """Tell of something the operator may wonder about."""
    _log.info("%s", what)


def log_error(what: str, error: BaseException) -> None:
    """Tell of an error nobody foresaw, with its traceback."""
    _log.error("%s\n%s", what, scrub("".join(traceback.format_exception(error))).rstrip())


def log_trouble(what: str) -> None:
    """Tell of something that passes."""
    _log.warning("%s", scrub(what))
