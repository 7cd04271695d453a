import logging
import traceback

from contend.models.failures import scrub

_log = logging.getLogger("contend.service")


def show_notes() -> None:
    _log.setLevel(logging.INFO)
    _log.addHandler(logging.StreamHandler())


def log_note(what: str) -> None:
    _log.info("%s", what)


def log_error(what: str, error: BaseException) -> None:
    _log.error("%s\n%s", what, scrub("".join(traceback.format_exception(error))).rstrip())


def log_trouble(what: str) -> None:
    _log.warning("%s", scrub(what))
