"""Preload the command's packages, so that a fork of this process starts immediately."""

import gc
import os
import sys
from pathlib import Path

import contend.debates.run
import contend.graph.checkpoints.postgres_saver
import contend.graph.checkpoints.sqlite_saver
import contend.models.providers.openai  # noqa: F401 - all of them are here to be loaded
from contend.cli.main import main

gc.freeze()


def run(arguments: list[str], env: dict[str, str], log: Path) -> None:
    """Run `contend` in this forked process and exit."""
    os.environ.clear()
    os.environ.update(env)
    # Not sys.stdout alone: what a library writes by itself belongs in the log too.
    with log.open("wb") as opened:
        os.dup2(opened.fileno(), 1)
        os.dup2(opened.fileno(), 2)
    sys.argv = ["contend", *arguments]
    main()
