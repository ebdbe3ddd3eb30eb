"""The background work of a process that serves: each part has a task, and is started again if an error ends it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog
from prometheus_client.core import CounterMetricFamily, Metric

_log = structlog.get_logger(__name__)

STEADY = 10.0
"""Seconds that a part runs after an error until the error counts as over."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0

Start = Callable[[], Coroutine[Any, Any, None]]
"""Starts a part."""


class BackgroundWork:
    """The parts that run, and the errors that ended them.

    A part that returns has done its work.
    """

    def __init__(self) -> None:
        self._failing: dict[str, str] = {}
        """The last error of each part that has not run steadily since then."""
        self._ended: Counter[str] = Counter()

    @asynccontextmanager
    async def running(self, work: Mapping[str, Start], *, once: Mapping[str, Start] | None = None) -> AsyncIterator[None]:
        """Run the parts during the block. An error of a part of `once` is logged, and the part is not started again."""
        self._ended.update(dict.fromkeys(work, 0))
        tasks = [asyncio.create_task(self._again_and_again(name, start), name=name) for name, start in work.items()]
        tasks += [asyncio.create_task(_once(name, start), name=name) for name, start in (once or {}).items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def note(self) -> str | None:
        """Return the parts that an error has ended, for readiness; None if all parts run."""
        if not self._failing:
            return None
        return "; ".join(f"part {name!r} ended and is started again: {error}" for name, error in sorted(self._failing.items()))

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        text = "Parts of this process that an error ended. Each was started again."
        ended = CounterMetricFamily("parts_failed", text, labels=["part"])
        for name, count in self._ended.items():
            ended.add_metric([name], count)
        yield ended

    async def _again_and_again(self, name: str, start: Start) -> None:
        pause = _FIRST_PAUSE
        while (error := await self._error_of(name, start)) is not None:
            pause = min(2 * pause, _LONGEST_PAUSE) if name in self._failing else _FIRST_PAUSE
            self._failing[name] = f"{type(error).__name__}: {error}"
            self._ended[name] += 1
            _log.error("part ended", part=name, starts_again_in=pause, exc_info=error)
            await asyncio.sleep(pause)
        self._failing.pop(name, None)

    async def _error_of(self, name: str, start: Start) -> Exception | None:
        """Run a part. Return the error that ended it, or None if it has done its work."""
        steady = asyncio.get_running_loop().call_later(STEADY, self._failing.pop, name, None)
        try:
            await start()
        except Exception as error:  # noqa: BLE001 - whatever ended it, it is logged, and readiness names it
            return error
        finally:
            steady.cancel()
        return None


async def _once(name: str, start: Start) -> None:
    try:
        await start()
    except Exception as error:  # noqa: BLE001 - as above
        _log.error("part ended", part=name, exc_info=error)
