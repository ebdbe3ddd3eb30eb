"""Read models in a Postgres database, which several processes may share."""

from projections.stores.postgres.reader import PostgresReader
from projections.stores.postgres.store import PostgresCopies, PostgresStore

__all__ = ["PostgresCopies", "PostgresReader", "PostgresStore"]
