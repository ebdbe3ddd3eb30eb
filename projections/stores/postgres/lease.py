"""The lease of the process that leads: a row with a fencing token, which is compared in the transaction of each checkpoint.

The lock alone lives until its session ends, and the session of a process that hangs continues. So the leader renews the row by
the database's clock. A standby ends the session of a leader whose lease has run out, takes the lock, and increments the token.
"""

from __future__ import annotations

import os
import socket
from typing import Any

import attrs

from projections.errors import NotLeading
from projections.stores.names import LEASE
from projections.stores.postgres.connection import QUERY_TIMEOUT

SECONDS = 5.0
"""Seconds for which a lease lasts."""
RENEWED_EVERY = 1.0
"""Seconds between two heartbeats."""

_UNTIL = f"clock_timestamp() + interval '{SECONDS:g} s'"

_TAKE = f"""
INSERT INTO {LEASE} AS lease (one, token, holder, pid, until) VALUES (TRUE, 1, $1, pg_backend_pid(), {_UNTIL})
ON CONFLICT (one) DO UPDATE SET
    token = lease.token + 1, holder = excluded.holder, pid = excluded.pid, until = excluded.until
RETURNING token
"""  # noqa: S608 - constants

_LOOK = f"""
SELECT holder, extract(epoch FROM clock_timestamp() - until)::float8 AS over FROM {LEASE}
WHERE pid IN (
    SELECT pid FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32 | objid::bigint) = {{key}}
)
"""  # noqa: S608 - constants
_END = f"SELECT pg_terminate_backend(pid) FROM {LEASE} WHERE until < clock_timestamp()"  # noqa: S608 - a constant


@attrs.frozen
class Leader:
    """The leader: `holder` names the process, `silent` are the seconds since its last heartbeat."""

    holder: str
    silent: float

    @property
    def hangs(self) -> bool:
        """Whether its lease has run out."""
        return self.silent > SECONDS


def renewal(parameter: str) -> str:
    """Renews the lease of the token in a parameter (`$1`), as SQL; no row: another process leads by now."""
    return f"UPDATE {LEASE} SET until = {_UNTIL} WHERE token = {parameter} RETURNING TRUE"  # noqa: S608 - constants


async def taken(connection: Any) -> int:
    """Take the lease for the session of `connection`, which has the lock: the new fencing token."""
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    return int(await connection.fetchval(_TAKE, holder, timeout=QUERY_TIMEOUT))


async def renew(connection: Any, token: int) -> bool:
    """Renew the lease; False if another process has it by now."""
    return bool(await connection.fetchval(renewal("$1"), token, timeout=QUERY_TIMEOUT))


async def check(connection: Any, token: int) -> None:
    """See, within a transaction and to its end, that the token is the newest. Raises NotLeading.

    It is the last statement of the transaction: heartbeats wait for the row from then on.
    """
    if not await renew(connection, token):
        raise fenced()


def fenced() -> NotLeading:
    """The error of a former leader."""
    return NotLeading("another process leads by now: this process wrote no row")


async def leader(connection: Any, key: str, what: str) -> Leader | None:
    """The leader, if it keeps a lease; None for a process of an older version. `key`, `what`: the lock it holds."""
    row = await connection.fetchrow(_LOOK.format(key=key), what, timeout=QUERY_TIMEOUT)
    return None if row is None else Leader(row["holder"], row["over"] + SECONDS)


async def end(connection: Any) -> None:
    """End the session of the leader whose lease has run out. Raises PostgresError if this user may not."""
    await connection.fetch(_END, timeout=QUERY_TIMEOUT)
