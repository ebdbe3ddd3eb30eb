"""Read models in a Postgres database, which several processes may share."""

from projections.postgres.copies import PostgresCopies
from projections.postgres.reader import PostgresReader
from projections.postgres.store import PostgresStore

__all__ = ["PostgresCopies", "PostgresReader", "PostgresStore"]
