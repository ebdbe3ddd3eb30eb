"""Databases of read models: SQLite and Postgres."""

from __future__ import annotations

from eventlog.facade import facade

TYPE_CHECKING = False  # without `typing`, which takes time to import: see `terminalkit.entry`
if TYPE_CHECKING:
    from projections.stores.databases import PATIENCE, leader_at, path_of, reader_at, store_at
    from projections.stores.postgres.connection import DatabaseAddress, connect_postgres, translated
    from projections.stores.postgres.server import PostgresFailed, PostgresServer
else:
    __getattr__ = facade(
        __name__,
        {
            "projections.stores.databases": "PATIENCE leader_at path_of reader_at store_at",
            "projections.stores.postgres.connection": "DatabaseAddress connect_postgres translated",
            "projections.stores.postgres.server": "PostgresFailed PostgresServer",
        },
    )

__all__ = [
    "PATIENCE", "DatabaseAddress", "PostgresFailed", "PostgresServer", "connect_postgres", "leader_at", "path_of", "reader_at",
    "store_at", "translated",
]  # fmt: skip
