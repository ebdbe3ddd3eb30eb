"""Final verdicts about the ends of a log need two looks at a log that does not move.

A leader that was elected just now may not know its own end yet, a log that is restored or purged moves, and so does one whose
server reads its files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from eventlog.errors import LogTruncated, Unavailable

_STILL, _STILL_ON_CLUSTER = 1.0, 3.0
"""Seconds without a move; a new leader may need the longer time to apply what the old one had."""


@attrs.define
class StillLog:
    """The ends of a log at the last look, and the time since which they have not moved. `clock`: by default the loop's clock."""

    _clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()
    _ends: tuple[int, int] | None = None
    _since: float = 0.0

    def check(self, info: Mapping[str, Any], problem: str | None) -> None:
        """Take a look (STREAM.INFO) into account, which found a problem of the ends or none.

        Raises LogTruncated if the log has not moved for a while, Unavailable before.
        """
        if problem is None:
            self._ends = None
            return
        ends = info["state"]["first_seq"], info["state"]["last_seq"]
        if ends != self._ends:
            self._ends, self._since = ends, self._clock()
        if self._clock() - self._since < (_STILL_ON_CLUSTER if info["config"]["num_replicas"] > 1 else _STILL):
            raise Unavailable(f"{problem}; this is looked at again, since the log may move")
        raise LogTruncated(problem)
