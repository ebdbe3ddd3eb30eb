"""The processes that derive, from the side of the process that started them: requests, restarts after a death, their end."""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

import structlog

from eventlog import Commit
from eventlog.embedded.die_with_parent import attached
from projections.errors import WorkerLost
from projections.model import ReadModel
from projections.models import at, place_of
from projections.parallel.parts import PartInputs, Request, derived_from, request_of
from projections.projector.derive import ChangeSet

log = structlog.get_logger(__name__)

_TRIES = 3


class Workers:
    """Processes that derive for one read model: `async with Workers(model, 2) as workers`. They start with the first request.

    `place` is the place of the model (`package.module:NAME`), if `projections.models` has not loaded it. Raises ModelUnknown
    without one, and ValueError if another model is at that place.
    """

    def __init__(self, model: ReadModel, count: int, *, place: str | None = None) -> None:
        place = place or (place_of(model) if count else "")
        if place and at(place) is not model:
            raise ValueError(f"{place} is not the read model {model.name!r} that is to be derived")
        self._workers = [_Worker(place) for _ in range(count)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self._workers:
            await worker.close()

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def pids(self) -> Sequence[int]:
        """The ids of the processes that have begun."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def derive(self, number: int, commits: Sequence[Commit], given: PartInputs, now: datetime) -> ChangeSet:
        """Have a part derived by one of them.

        A process that dies is replaced, and the new one gets the part. Raises WorkerLost if that does not help.
        """
        request = await asyncio.to_thread(request_of, commits, given, now)
        try:
            answer = await self._workers[number].ask(request)
        except _Died as error:
            raise WorkerLost(
                f"a process that derives rows died {_TRIES} times over commits between sequence {commits[0].sequence} and "
                f"{commits[-1].sequence}, {error}: with `--workers 0` the same is done in the process itself, with less memory"
            ) from error
        return await asyncio.to_thread(derived_from, answer)


class _Died(Exception):
    """A process ended instead of answering; the text has its exit."""


class _Worker:
    """One process, and the thread that waits for it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="worker")
        self._running: _Running | None = None

    @property
    def pid(self) -> int | None:
        return None if self._running is None else self._running.process.pid

    async def ask(self, request: Request) -> bytes:
        """Return its answer. Raises _Died."""
        tries = 0
        while True:
            if self._running is None:
                self._running = _Running(self._place)
            running = self._running
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, running.ask, request)
            except (OSError, EOFError) as error:
                how = await asyncio.to_thread(running.end)
                if self._running is running:
                    self._running = None
                tries += 1
                log.warning("a process that derives rows died", pid=running.process.pid, how=how)
                if tries == _TRIES:
                    raise _Died(how) from error

    async def close(self) -> None:
        """End it; an open request gets no answer."""
        if self._running is not None:
            await asyncio.to_thread(self._running.end)
            self._running = None
        await asyncio.to_thread(self._thread.shutdown)


class _Running:
    """A process, from its beginning to its end. Make it in a thread that stays: it ends with that."""

    def __init__(self, place: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = attached([sys.executable, "-P", "-m", "projections.parallel.worker"], end=signal.SIGKILL)
            self.process = subprocess.Popen(  # in a separate group: Ctrl-C is for the process that has started it
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, process_group=0
            )
        self._asked = Connection(ours.detach())
        self._hello: bytes | None = pickle.dumps((sys.path, place))

    def ask(self, request: Request) -> bytes:
        """Wait for its answer and return it. Raises OSError, EOFError if it dies."""
        if self._hello is not None:
            self._asked.send_bytes(self._hello)
            self._hello = None
        for message in request:
            self._asked.send_bytes(message)
        return self._asked.recv_bytes()

    def end(self) -> str:
        """End it at once: it holds no data, and waiting callers get an error. Return how it ended."""
        self.process.kill()
        code = self.process.wait()
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
