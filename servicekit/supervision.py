"""Programs that a command runs on this machine: each is started again if it ends by itself.

A nats-server is also restarted if only a restart lets it store again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

from eventlog.embedded.nats import EmbeddedServer, ServerFailed
from eventlog.support.timers import until_tick
from servicekit.broker_watch import NotSeen, look_at

_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_SETTLED = 60.0
"""Seconds of running after which a program that ends is started again without the delay of earlier ends."""

_LOOK_EVERY, _MEND_AT_MOST_EVERY = 4.0, 60.0
"""Seconds between two looks at the health of a nats-server, and between two restarts for its sake."""

_ROOM_TO_RESTART, _PART_TO_RESTART = 64 * 1024**2, 20
"""Bytes, or the part of a small disk, that have to be free for nats-server to be restarted after a write error."""


class Startable(Protocol):
    """A program that can be started again when it has ended."""

    @property
    def name(self) -> str:
        """Its name for the user."""

    async def start(self) -> None:
        """Start it and wait until it is ready. Raises an error with a text for the user, and leaves no process."""

    async def wait(self) -> int:
        """Wait until it has ended, for any reason: its exit status, or minus the signal that ended it."""


async def keep_running(
    program: Startable,
    say: Callable[[str], None],
    *,
    failures: tuple[type[Exception], ...],
    changed: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Start a program again each time that it ends, until cancelled: after 0.5 s at first, later after 30 s at most.

    `say` gets a text for the user, also the text of each of `failures` that a start raises. `changed` is called if the
    program has ended, and if it runs again. Other errors of a start are raised.
    """
    delay, since = _FIRST_DELAY, time.monotonic()
    while True:
        status = await program.wait()
        changed()
        if time.monotonic() - since > _SETTLED:
            delay = _FIRST_DELAY
        say(f"{program.name} ended {describe_exit(status)}, starting it again in {delay:g} s")
        await asyncio.sleep(delay)
        delay, since = min(delay * 2, _LONGEST_DELAY), time.monotonic()
        try:
            await program.start()
        except failures as error:
            say(str(error))
        else:
            changed()
            say(f"{program.name} runs again")


async def mend(server: EmbeddedServer, say: Callable[[str], None]) -> NoReturn:
    """End a nats-server that only stores again after a restart, at most once a minute, until cancelled.

    `keep_running` starts it again. `say` gets the reason.
    """
    while True:
        await asyncio.sleep(until_tick(_LOOK_EVERY))
        try:
            reason = await _reason_to_restart(server)
        except (NotSeen, ServerFailed, OSError):
            continue  # it is about to end or to begin
        if reason is not None:
            say(f"{server.name} {reason}: restarting it")
            with contextlib.suppress(ServerFailed):
                os.kill(server.pid, signal.SIGTERM)
            await asyncio.sleep(_MEND_AT_MOST_EVERY)


def describe_exit(status: int) -> str:
    """Return in words how a process ended: `with status 1`, `by SIGKILL`."""
    return f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"


async def _reason_to_restart(server: EmbeddedServer) -> str | None:
    """Return why only a restart lets a server store again, if that is so and there is room again; else None. Raises NotSeen."""
    seen = await look_at(server.monitoring_url)
    free = shutil.disk_usage(server.data_dir)
    if free.free < min(_ROOM_TO_RESTART, free.total // _PART_TO_RESTART):
        return None
    if seen.closed:
        return "has closed a stream after a write error, and there is room on its disk again"
    if seen.used >= seen.limit and server.storage_limit() > seen.limit + _ROOM_TO_RESTART:
        return "had little room on its disk when it was started, and has more now"
    return None
