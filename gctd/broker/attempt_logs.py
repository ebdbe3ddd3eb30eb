"""The logs of attempts: names and limits that worker and control plane share."""

from __future__ import annotations

STREAM, PREFIX = "gctd_logs", "gctd.log"
HEAD = TAIL = 256 * 1024
"""Bytes of the beginning and of the end of a log that are kept."""


def name_of(task_id: str, attempt: int) -> str:
    """Return the name of an attempt's log in the stream."""
    return f"{task_id}.{attempt}"


def left_out(count: int) -> str:
    """The line in the place of bytes that were left out."""
    return f"[{count} bytes are left out here]\n"
