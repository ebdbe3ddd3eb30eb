"""From the projector to the event stream: what has become visible in the read model is shown to clients, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

import structlog

from eventlog import Commit, EventLogError
from gctd.http.frames import Frames
from httpkit.sse import Hub

_log = structlog.get_logger(__name__)

MOST_WAITING = 20_000
"""Commits that may wait to be shown; beyond that (an import, a read model that catches up) clients read them from the log."""
AT_A_TIME = 500
BACK_OFF = 1.0


class Feed:
    """Publishes frames of applied commits for as long as `run` runs."""

    def __init__(self, frames: Frames, hub: Hub) -> None:
        self._frames = frames
        self._hub = hub
        self._waiting: deque[Commit] = deque()
        self._news = asyncio.Event()
        self._last = 0

    def applied(self, commits: Sequence[Commit]) -> None:
        """These commits can be read now. Called by the projector, after each of its transactions."""
        self._waiting.extend(commits)
        self._last = commits[-1].sequence
        self._news.set()

    async def run(self) -> None:
        """Publish until cancelled. `hub` has been started."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                if len(self._waiting) > MOST_WAITING:
                    _log.info("event stream goes on from the log", skipped=len(self._waiting), sequence=self._last)
                    self._waiting.clear()
                    self._hub.skip_to(self._last)
                    break
                some = [self._waiting.popleft() for _ in range(min(AT_A_TIME, len(self._waiting)))]
                await self._publish([commit for commit in some if commit.sequence > self._hub.sequence])
                await asyncio.sleep(0)

    async def _publish(self, commits: Sequence[Commit]) -> None:
        while commits:
            try:
                self._hub.publish(await self._frames.of(commits), commits[-1].sequence)
            except EventLogError as error:
                # Only a commit of several events needs the log; what is shown waits for it, so that nothing is left out.
                _log.warning("event stream waits", error=str(error))
                await asyncio.sleep(BACK_OFF)
            else:
                return
