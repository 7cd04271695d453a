"""A real PostgreSQL server for tests; they are skipped if it is not installed."""

import os

import psycopg
import pytest

from deploy import postgres
from deploy.workers import Missing

PASSWORD = "pw-canary-0123456789"
# Set in CI, where the PostgreSQL tests must not be skipped.
_REQUIRED = bool(os.environ.get("REQUIRE_POSTGRES"))


class PostgresServer(postgres.PostgresServer):
    password = PASSWORD

    def __init__(self) -> None:
        try:
            super().__init__()
        except Missing as missing:
            if _REQUIRED:
                pytest.fail(str(missing))
            pytest.skip(str(missing))

    def refuse_writes(self) -> None:
        """Refuse writes, like a server during a failover."""
        self._set_read_only("on")

    def take_writes(self) -> None:
        self._set_read_only("off")

    def _set_read_only(self, value: str) -> None:
        as_if_not = "-c default_transaction_read_only=off"
        with psycopg.connect(self.url(), autocommit=True, options=as_if_not) as connection:
            connection.execute(f"ALTER SYSTEM SET default_transaction_read_only={value}".encode())
            connection.execute("SELECT pg_reload_conf()")
