"""The pantry on a machine whose clock is two days ahead: python -m tests.support.pantry.ahead serve."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from pantry.__main__ import main
from servicekit import broker_watch

AHEAD = timedelta(days=2)


def wrong_time() -> datetime:
    """The time of its clock."""
    return datetime.now(UTC) + AHEAD


if __name__ == "__main__":
    broker_watch.wall_time = wrong_time
    sys.exit(main())
