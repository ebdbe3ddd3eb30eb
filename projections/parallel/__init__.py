"""Deriving rows in several processes, for a projector that is far behind. The rows are the same, and one process writes them."""

from projections.parallel.ahead import derived_ahead
from projections.parallel.workers import Workers

__all__ = ["Workers", "derived_ahead"]
