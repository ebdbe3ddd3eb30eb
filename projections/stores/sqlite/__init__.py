"""Read models in one SQLite file: the embedded default."""

from projections.stores.sqlite.reader import SQLiteReader
from projections.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteReader", "SQLiteStore"]
