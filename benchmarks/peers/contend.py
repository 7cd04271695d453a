"""Contend: whole debates, with records, events and SQLite checkpoints."""

import sys
from typing import TYPE_CHECKING

from benchmarks.harness import debate_in
from benchmarks.parallel import debaters
from benchmarks.peers.driver import ROUNDS, SPEAKERS, on_event_loop, serve

if TYPE_CHECKING:
    from contend.graph.settings import DebateSettings


def main() -> None:
    from contend.debates.run import open_repository

    records, chosen = open_repository(), _forum() if "--forum" in sys.argv else _refine()
    serve(on_event_loop(lambda: debate_in(records, chosen)), "contend", "langgraph")


def _refine() -> "DebateSettings":
    """Return settings for answers and two refinements, each with feedback before, and a merge."""
    from contend.graph.settings import RefineSettings

    given = {"max_debate_rounds": ROUNDS - 1}
    return RefineSettings.model_validate(debaters(len(SPEAKERS)) | given)


def _forum() -> "DebateSettings":
    """Return settings for three rounds, in which only the first is spoken at once."""
    from contend.graph.settings import ForumSettings

    given = {"max_rounds": ROUNDS, "judge_mode": "external_judge"}
    return ForumSettings.model_validate(debaters(len(SPEAKERS)) | given)
