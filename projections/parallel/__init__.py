"""Deriving what commits lead to in several processes, for who is far behind: the same, and written as ever, by one."""

from projections.parallel.ahead import derived_ahead
from projections.parallel.workers import Workers

__all__ = ["Workers", "derived_ahead"]
