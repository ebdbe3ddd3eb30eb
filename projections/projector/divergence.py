"""The first difference between a log and its tables: by the marks, with a few single reads of the log."""

from __future__ import annotations

from eventlog import EventLog, EventLogError, LogDiverged
from projections.errors import ProjectionError
from projections.store import Reader


async def first_difference(event_log: EventLog, store: Reader, stream: str, diverged: LogDiverged) -> str:
    """The sequences between which the first commit lies that differs, in words; an empty text if that cannot be found.

    A log that was cut and has grown again has other commits at all marks above the cut, so the marks are halved.
    """
    try:
        marks = [mark for mark in await store.marks(stream) if mark.sequence < diverged.sequence]
        low, high = 0, len(marks)
        while low < high:
            middle = (low + high) // 2
            commit = await event_log.at(marks[middle].sequence)
            if commit is not None and commit.digest == marks[middle].record:
                low = middle + 1
            else:
                high = middle
    except (EventLogError, ProjectionError):
        return ""
    begin = marks[low - 1].sequence + 1 if low else 1
    end = marks[high].sequence if high < len(marks) else diverged.sequence
    return f"the first difference is between sequence {begin} and {end}"
