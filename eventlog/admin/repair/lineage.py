"""Incarnations of repaired streams: a stream that lost commits to tombstones gets a new one, which names the one before it.

Positions and tables of the old incarnation are not valid in the new one. A rebuild may take the place of such tables.
"""

from __future__ import annotations

_MARK = "~"


def after_repair(incarnation: str) -> str:
    """The incarnation of a stream after one more repair with tombstones: `x`, `x~1`, `x~2`."""
    origin, _, number = incarnation.partition(_MARK)
    return f"{origin}{_MARK}{int(number or 0) + 1}"


def is_repaired(incarnation: str, before: str) -> bool:
    """Whether a stream of this incarnation is a repaired stream of the incarnation `before`."""
    origin, _, number = incarnation.partition(_MARK)
    earlier, _, earlier_number = before.partition(_MARK)
    return origin == earlier and int(number or 0) > int(earlier_number or 0)
