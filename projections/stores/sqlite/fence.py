"""The fencing token of a database file: incremented by each process that opens it to write, compared in each transaction.

The lock on the file keeps others away while it is there. The token protects also if the lock file was removed.
"""

from __future__ import annotations

import os
import sqlite3

from projections.errors import NotLeading

LEASE = "projection_lease"

_MAKE = f"""
CREATE TABLE IF NOT EXISTS {LEASE} (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER NOT NULL, pid INTEGER NOT NULL) STRICT
"""
_TAKE = f"""
INSERT INTO {LEASE} VALUES (1, 1, ?) ON CONFLICT (one) DO UPDATE SET token = token + 1, pid = excluded.pid RETURNING token
"""  # noqa: S608 - a constant
_LOOK = f"SELECT token, pid FROM {LEASE}"  # noqa: S608 - a constant


def take(connection: sqlite3.Connection) -> int:
    """The new token, within a transaction."""
    connection.execute(_MAKE)
    (token,) = connection.execute(_TAKE, (os.getpid(),)).fetchone()
    return int(token)


def check(connection: sqlite3.Connection, token: int) -> None:
    """See, within a transaction that may write, that the token is the newest. Raises NotLeading."""
    newest, pid = connection.execute(_LOOK).fetchone()
    if newest != token:
        raise NotLeading(f"process {pid} writes to the database by now: this process wrote no row")
