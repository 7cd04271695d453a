"""Run `contend` with short leases and a clock set by a file, to test takeovers."""

import os
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from contend.debates import leases

leases.LEASE = timedelta(seconds=3)  # before any module takes it over

_real_clock = leases._clock


def _stepped(connection: sa.Connection) -> datetime:
    return _real_clock(connection) + timedelta(seconds=float(CLOCK.read_text("ascii")))


CLOCK = Path(os.environ["TEST_CLOCK"])
leases._clock = _stepped

if __name__ == "__main__":
    from contend.cli.main import main
    from contend.service import runs

    runs._SECONDS_BETWEEN_CHECKS = 0.3
    main()
