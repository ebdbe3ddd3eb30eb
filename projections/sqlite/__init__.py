"""Read models in one SQLite file: the embedded default."""

from projections.sqlite.reader import SQLiteReader
from projections.sqlite.store import SQLiteStore

__all__ = ["SQLiteReader", "SQLiteStore"]
