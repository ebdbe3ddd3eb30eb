"""The parts of a process that serves: each one says in one place how it runs, and how it is checked, noted and measured."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import structlog
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from eventlog import Commit
from eventlog.support.timers import Backoff
from httpkit.monitoring import Check, Concern, Health

_log = structlog.get_logger(__name__)

STEADY = 10.0
"""Seconds that a part runs after an error until the error counts as over."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0

Start = Callable[[], Coroutine[Any, Any, None]]
"""Starts a part."""


@attrs.frozen
class Part:
    """A part of a process, under the name that the log, readiness and the figures have for it.

    `run` is started again if an error ends it; a part that returns has done its work. `check` has to pass before the process is
    ready, for reads or for writes alone if it has a `concern`. `note` returns a problem that does not stop the process, or None.
    `collect` gives figures for `/metrics`. `applied` is called with the commits of each transaction, once they are visible.
    """

    name: str
    run: Start | None = None
    check: Check | None = attrs.field(default=None, kw_only=True)
    concern: Concern | None = attrs.field(default=None, kw_only=True)
    note: Callable[[], str | None] = attrs.field(default=lambda: None, kw_only=True)
    collect: Callable[[], Iterable[Metric]] = attrs.field(default=tuple, kw_only=True)
    applied: Callable[[Sequence[Commit]], None] = attrs.field(default=lambda _: None, kw_only=True)


class ProcessParts(Collector):
    """All parts of a process, and the errors that ended them."""

    def __init__(self, *parts: Part) -> None:
        self._parts = list(parts)
        self._failing: dict[str, str] = {}
        """The last error of each part that has not run steadily since then."""
        self._ended: Counter[str] = Counter()

    def add(self, *parts: Part) -> None:
        """Add parts. Call it before `running`."""
        self._parts += parts

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the parts during the block."""
        starts = {part.name: part.run for part in self._parts if part.run is not None}
        self._ended.update(dict.fromkeys(starts, 0))
        tasks = [asyncio.create_task(self._again_and_again(name, start), name=name) for name, start in starts.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def health(self) -> Health:
        """Return the probes: ready if all checks pass. Reads and writes are apart if a part has a concern."""
        checks = {part.name: part.check for part in self._parts if part.check is not None}
        concerns = {part.name: part.concern for part in self._parts if part.concern is not None}
        return Health(checks, note=self.note, concerns=concerns or None)

    def note(self) -> str | None:
        """Return the problems that do not stop the process, with the parts that an error has ended; None without one."""
        ended = (f"part {name!r} ended and is started again: {error}" for name, error in sorted(self._failing.items()))
        return "; ".join(note for note in (*(part.note() for part in self._parts), *ended) if note is not None) or None

    def applied(self, commits: Sequence[Commit]) -> None:
        """Tell the parts of commits that have become visible. A tombstone changes nothing."""
        commits = [commit for commit in commits if commit.lost is None]
        if commits:
            for part in self._parts:
                part.applied(commits)

    def collect(self) -> Iterator[Metric]:
        """The figures now."""
        for part in self._parts:
            yield from part.collect()
        text = "Parts of this process that an error ended. Each was started again."
        ended = CounterMetricFamily("parts_failed", text, labels=["part"])
        for name, count in self._ended.items():
            ended.add_metric([name], count)
        yield ended

    async def _again_and_again(self, name: str, start: Start) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while (error := await self._error_of(name, start)) is not None:
            if name not in self._failing:
                backoff.begin()
            self._failing[name] = f"{type(error).__name__}: {error}"
            self._ended[name] += 1
            _log.error("part ended", part=name, starts_again_in=backoff.next, exc_info=error)
            await backoff.pause()
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
