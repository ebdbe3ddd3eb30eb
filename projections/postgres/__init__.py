"""Read models in a Postgres database, which several processes may share."""

from projections.postgres.reader import PostgresReader
from projections.postgres.store import PostgresStore

__all__ = ["PostgresReader", "PostgresStore"]
