"""Attempts and leases: the right of a worker to run a task or a discovery, and to report on it.

A worker holds a lease from the start of its attempt until the attempt ends. Reports are refused after the end of the
attempt. This fence makes duplicate deliveries and lost workers harmless (docs/explanation/tracker.md).
"""

from __future__ import annotations

from datetime import datetime

import attrs

from gctd.domain.errors import Refused


@attrs.frozen(kw_only=True)
class Lease:
    """Held by one process of a worker: `session` is new at each of its starts."""

    worker: str
    session: str
    since: datetime


def fence(what: str, lease: Lease | None, attempt: int, *, by_attempt: int, by_session: str) -> None:
    """Raise Refused unless the attempt that a report is about is the one under way, and the reporter holds its lease."""
    if lease is None or attempt != by_attempt or lease.session != by_session:
        raise Refused(f"{what}: attempt {by_attempt} is over")
