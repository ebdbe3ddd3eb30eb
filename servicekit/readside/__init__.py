"""The read side of a process that serves: projector, event stream, commands that read their own writes, readiness, figures."""

from servicekit.readside.read_side import ReadSide, migrated

__all__ = ["ReadSide", "migrated"]
