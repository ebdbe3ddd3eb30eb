"""The fencing token of a database file: incremented by each process that opens it to write, compared in each transaction.

The lock on the file keeps others away while it is there. The token protects also if the lock file was removed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping

from projections.errors import NotLeading
from projections.store import Checkpoint
from projections.stores.names import LEASE
from projections.stores.sqlite.writing import read_checkpoints

_MAKE = f"""
CREATE TABLE IF NOT EXISTS {LEASE} (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER NOT NULL, pid INTEGER NOT NULL) STRICT
"""
_TAKE = f"""
INSERT INTO {LEASE} VALUES (1, 1, ?) ON CONFLICT (one) DO UPDATE SET token = token + 1, pid = excluded.pid RETURNING token
"""  # noqa: S608 - a constant
_LOOK = f"SELECT token, pid FROM {LEASE}"  # noqa: S608 - a constant


class WriteFence:
    """The fencing token of a writer, and the checkpoints as its last batch left them.

    SQLite's `data_version` changes if another connection commits (https://www.sqlite.org/pragma.html#pragma_data_version). While
    it is the same, neither the token nor a checkpoint has changed, and a batch reads neither of them.
    """

    def __init__(self, token: int) -> None:
        self._token = token
        self._version: int | None = None
        """The `data_version` at which the checkpoints are known; None while a transaction may change them."""
        self._seen = 0
        self._checkpoints: Mapping[str, Checkpoint] = {}

    @classmethod
    def take(cls, connection: sqlite3.Connection) -> WriteFence:
        """Become the newest writer, within a transaction."""
        connection.execute(_MAKE)
        (token,) = connection.execute(_TAKE, (os.getpid(),)).fetchone()
        return cls(int(token))

    def check(self, connection: sqlite3.Connection) -> None:
        """See, within a transaction that may write, that the token is the newest. Raises NotLeading."""
        self._version = None  # the transaction may change checkpoints
        newest, pid = connection.execute(_LOOK).fetchone()
        if newest != self._token:
            raise NotLeading(f"process {pid} writes to the database by now: this process wrote no row")

    def checkpoints(self, connection: sqlite3.Connection) -> Mapping[str, Checkpoint]:
        """The checkpoints, by projection, within a transaction of a batch. Raises NotLeading, StoreDamaged."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.check(connection)
            self._checkpoints = read_checkpoints(connection)
        self._version, self._seen = None, version
        return self._checkpoints

    def committed(self, checkpoints: Iterable[Checkpoint]) -> None:
        """The batch is committed, and has moved these checkpoints."""
        self._checkpoints = {**self._checkpoints, **{one.projection: one for one in checkpoints}}
        self._version = self._seen
