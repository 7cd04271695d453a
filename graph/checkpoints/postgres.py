import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.models.failures import first_line

Connection = psycopg.AsyncConnection[dict[str, Any]]
Pool = AsyncConnectionPool[Connection]

_SCHEMES = ("postgresql://", "postgres://")
# Defaults that the user's address may override; keepalives detect a server that vanished.
_DEFAULTS: dict[str, str | int] = {
    "application_name": "contend",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,
}
# A saver holds a connection for milliseconds, so a few connections serve many debates.
_MOST_CONNECTIONS = 16
_SECONDS_FOR_A_CONNECTION = 3.0
# After this time, the next request for a connection tries to connect again.
_SECONDS_TO_RECONNECT = 5.0


@dataclass(frozen=True)
class Postgres:
    conninfo: str = field(repr=False)  # never shown, because it may contain a password
    host: str
    name: str

    def __str__(self) -> str:
        return f"PostgreSQL database '{self.name}' on {self.host}"

    def parts(self) -> dict[str, Any]:
        return dict(conninfo_to_dict(self.conninfo))

    @contextmanager
    def outages_reported(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            if outage := self.as_outage(error):
                raise outage from error
            raise

    def as_outage(self, error: BaseException) -> DatabaseUnavailable | None:
        # During a failover, a server is read-only for a while.
        outages = (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.errors.ReadOnlySqlTransaction,
        )
        # PipelineAborted is not an outage: it follows from an earlier statement that failed.
        if not isinstance(error, outages) or isinstance(error, psycopg.errors.PipelineAborted):
            return None
        # The server's message, without the address before it.
        why = first_line(error).rpartition(" failed: ")[2] or type(error).__name__
        why = "it does not answer" if isinstance(error, PoolTimeout) else why
        return DatabaseUnavailable(f"The {self} cannot be used: {why}")


def read_address(url: str) -> Postgres:
    """Parse a DATABASE_URL. Errors do not repeat it, because it may contain a password."""
    if not url.startswith(_SCHEMES):
        raise BadInput(
            "DATABASE_URL must begin with postgresql://. Without it, debates are stored in a "
            "file in the data folder."
        )
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise BadInput(_UNREADABLE) from None
    host = str(parts.get("host") or os.environ.get("PGHOST") or "this machine")
    name = parts.get("dbname") or os.environ.get("PGDATABASE") or parts.get("user") or "default"
    ports = str(parts.get("port") or "")
    # Refuse a password with an unencoded @ or /, because part of it would be shown as a name.
    if "@" in f"{host}{ports}{name}":
        raise BadInput(_UNREADABLE)
    pairs = zip_longest(host.split(","), ports.split(","), fillvalue="")
    place = ",".join(f"{each}:{port}" if port else each for each, port in pairs)
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in parts}
    return Postgres(make_conninfo(url, **defaults), place, str(name))


_UNREADABLE = (
    "DATABASE_URL cannot be read. Its form is postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and "
    "in a password @ is written %40, / is %2F, : is %3A and % is %25."
)


@dataclass
class _Shared:
    pool: Pool
    users: int = 0


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Postgres, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def shared_pool(database: Postgres) -> AsyncIterator[Pool]:
    """Yield the event loop's connection pool for the database. The last user closes it."""
    pools = _pools.setdefault(asyncio.get_running_loop(), {})
    if database not in pools:
        pools[database] = _Shared(_new_pool(database))
    shared = pools[database]
    shared.users += 1
    try:
        await shared.pool.open()
        yield shared.pool
    finally:
        shared.users -= 1
        if not shared.users:
            # Remove it before closing it, so that a debate that starts meanwhile opens a new pool.
            del pools[database]
            await shared.pool.close()


def _new_pool(database: Postgres) -> Pool:
    # We report outages ourselves.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    return AsyncConnectionPool(
        database.conninfo,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        min_size=1,
        max_size=_MOST_CONNECTIONS,
        timeout=_SECONDS_FOR_A_CONNECTION,
        reconnect_timeout=_SECONDS_TO_RECONNECT,
        # Replaces idle connections that broke.
        check=AsyncConnectionPool.check_connection,
        open=False,
        name="contend",
    )
