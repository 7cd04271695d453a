"""Kill one of two workers during debates of every protocol."""

import os
import re
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg

from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.checkpoints.postgres import Postgres, read_address
from deploy.workers import Workers
from tests.cli.support import Command
from tests.cluster.debating import IN_CLUSTER, Debaters, command, mark
from tests.support.protocols import PROTOCOLS

pytestmark = IN_CLUSTER

# More than one debate of each protocol makes a measurement, shown with `pytest -s`.
COUNT = int(os.environ.get("DEBATES_TO_KILL", len(PROTOCOLS)))
DEBATES = {f"kill{n}": protocol for n, protocol in zip(range(COUNT), cycle(PROTOCOLS))}
# How many calls of each debate are finished before the kill.
FINISHED = 3
MARK = re.compile(rb"\([0-9a-f]{16}\)")
# A forecast gives its numbers, every other protocol its answer.
RESULTS = {"final_answer", "forecast"}


def until(happened: Callable[[], bool], asked: Iterable[subprocess.Popen[str]]) -> None:
    """Wait for the condition while checking that every debate runs."""
    while not happened():
        for process in asked:
            assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def debates_in(place: Postgres | Path, names: Iterable[str]) -> list[StoredDebate]:
    records = Repository(place)
    try:
        every = [records.find(each) for each in records.ids()]
    finally:
        records.close()
    return [each for each in every if each.question.split()[1].rstrip(":") in names]


def test_the_other_worker_finishes_debates_of_a_killed_one(
    workers: Workers, contend: Command, debaters: Debaters
) -> None:
    names, server = [*DEBATES], ",".join(workers.addresses)

    def are_held() -> bool:
        done = [len(debaters.finished(name)) for name in names]
        return debaters.waiting() >= {*names} and min(done) >= FINISHED

    with debaters.held(FINISHED):
        asked = [
            contend.start(*command(protocol, name), "--server", server, "--json")
            for name, protocol in DEBATES.items()
        ]
        until(are_held, asked)
        finished = Counter(mark(call.request) for name in names for call in debaters.finished(name))
        # What ended a few milliseconds before a kill may be paid again, as anywhere.
        until(lambda: {*finished} <= kept_marks(workers.database_url), asked)
        number, victim = running_worker(workers)
        workers.running[victim].kill()
    try:
        killed_at = time.monotonic()
        ended = [process.communicate() for process in asked]
        seconds = time.monotonic() - killed_at
        assert [process.returncode for process in asked] == [0] * len(asked), ended
        times = debaters.times_made()
        again = sum(times[each] > 1 for name in names for each in debaters.marks_of(name))
        sys.stdout.write(
            f"\n{COUNT} debates: {seconds:.0f} s from the kill to the end of the last one, "
            f"{again} calls in flight made again, of {finished.total()} finished ones "
            f"{sum(times[each] > finished[each] for each in finished)}\n"
        )
        assert {each: times[each] for each in finished} == finished
        for place in (contend.home / "contend.db", read_address(workers.database_url)):
            found = debates_in(place, names)
            assert {each.status for each in found} == {"done"}
            assert sorted(each.protocol for each in found) == sorted(DEBATES.values())
            assert [each.id for each in found if not RESULTS & {*each.state}] == []
            assert [each.id for each in found if lost(each)] == []
        here = {each.id: each.turns for each in debates_in(contend.home / "contend.db", names)}
        there = debates_in(read_address(workers.database_url), names)
        assert here == {each.id: each.turns for each in there}
    finally:
        del workers.running[victim]
        workers.start_worker(number)


def lost(debate: StoredDebate) -> list[Any]:
    """Return degradations, except unreadable verdicts caused by our marks."""
    return [each for each in debate.state["degraded"] if each["what"] != "unreadable"]


def kept_marks(database_url: str) -> set[str]:
    """Return the marks of calls whose results are in a checkpoint."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT type, blob FROM checkpoint_writes").fetchall()
    return {found.decode() for row in rows for found in MARK.findall(content_of(*row))}


def content_of(kind: str, data: bytes) -> bytes:
    return zlib.decompress(data) if kind.endswith("-zlib") else data


def running_worker(workers: Workers) -> tuple[int, str]:
    """Return the number and address of a worker that is running a debate."""
    with psycopg.connect(workers.database_url) as connection:
        query = "SELECT claimed_by FROM runs WHERE status = 'running'"
        claimed = " ".join(row[0] for row in connection.execute(query).fetchall())
    return next(
        (number, address)
        for number, address in enumerate(workers.addresses, 1)
        if f"-{workers.running[address].pid}-" in claimed
    )
