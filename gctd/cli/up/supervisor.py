"""The supervisor of a system on one machine: starts its parts, restarts a part that ends by itself, and ends all in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from eventlog import write_private
from eventlog.admin import NoRoom, apply_declarations
from eventlog.embedded import CredentialsDamaged, DataDirectoryInUse, DiskRoom, EmbeddedServer, ServerFailed
from eventlog.jetstream import Connection
from gctd.cli.up.children import ChildProcess, StartFailed, Supervised
from gctd.cli.up.console import Console
from gctd.cli.up.demo import DemoFailed
from gctd.cli.up.servers import NatsServer, Postgres
from gctd.cli.up.starts import Starts
from gctd.cli.up.system import DATABASES, System
from projections.stores import PostgresFailed
from servicekit import keep_running, mend
from terminalkit import ExitCode, announced_system

EXIT_CODES = {
    StartFailed: ExitCode.FAILURE,
    DemoFailed: ExitCode.FAILURE,
    DataDirectoryInUse: ExitCode.CONFLICT,
    NoRoom: ExitCode.UNAVAILABLE,
    ServerFailed: ExitCode.UNAVAILABLE,
    CredentialsDamaged: ExitCode.UNAVAILABLE,
    PostgresFailed: ExitCode.UNAVAILABLE,
}

_FAILURES = (StartFailed, ServerFailed, PostgresFailed)
"""Failures of a start after which another start is tried."""

_SAME_SIGNAL = 0.3
"""Seconds within which a second signal is the first one again: timeout(1) and others send it to a process and to its group."""

Demo = Callable[[System, Console], Awaitable[None]]


class ReadyFile:
    """Tells scripts that the system is ready and how to reach it: addresses, process ids, `env` for the command line.

    No path: no file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._system: System | None = None

    @contextlib.contextmanager
    def shown(self, system: System, pids: Mapping[str, int]) -> Iterator[None]:
        """It is there in this context: written as a whole, so who sees the file sees all of it."""
        self._system = system
        self.update(pids)
        try:
            yield
        finally:
            self._system = None
            self.remove()

    def update(self, pids: Mapping[str, int]) -> None:
        """Write it with these process ids, by the names of the parts, if it is there."""
        if self._path is None or self._system is None:
            return
        content = {**self._system.addresses, "pids": dict(pids), "env": dict(self._system.environment)}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_private(self._path, json.dumps(content, indent=2) + "\n")

    def remove(self) -> None:
        """Remove it, also one that a killed system left."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class Supervisor:
    """Starts stage after stage, restarts a part that ends by itself, and ends the stages in the reverse order.

    `on_change` is called with the process ids, by the names of the parts, when one has ended by itself or runs again.
    """

    def __init__(self, console: Console, on_change: Callable[[Mapping[str, int]], None]) -> None:
        self._on_change = on_change
        self._stages: list[Sequence[Supervised]] = []
        self._console = console
        self._keepers: list[asyncio.Task[None]] = []
        self._starts = Starts(console, self._why)

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the parts that run."""
        return {each.name: each.pid for stage in self._stages for each in stage if each.pid is not None}

    async def start(self, *stages: Sequence[Supervised]) -> None:
        """Start stages: their processes at once, and each stage counts as ready after the stage before.

        Raises the errors of the start of a part; call `stop` then as well.
        """
        self._stages += stages
        async with self._starts.of([each.name for stage in stages for each in stage]):
            await self._start(stages)

    async def _start(self, stages: Sequence[Sequence[Supervised]]) -> None:
        for stage in stages[1:]:
            await asyncio.gather(*(each.launch() for each in stage if isinstance(each, ChildProcess)))
        for stage in stages:
            for result in await asyncio.gather(*map(self._until_ready, stage), return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
            for each in stage:
                kept = keep_running(each, self._console.say, failures=_FAILURES, changed=lambda: self._on_change(self.pids))
                self._keepers.append(asyncio.create_task(kept))
                if isinstance(each, NatsServer):
                    self._keepers.append(asyncio.create_task(mend(each.server, self._console.say)))

    async def _until_ready(self, part: Supervised) -> None:
        await part.start()
        self._starts.ready(part.name)

    def _why(self, name: str) -> str:
        return next((each.why for stage in self._stages for each in stage if each.name == name), "")

    async def watch(self) -> None:
        """Start again what ends, until cancelled. Raises DataDirectoryInUse where another system took over."""
        await asyncio.gather(*self._keepers)

    async def stop(self) -> None:
        """End everything in good order."""
        self._console.ending = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for stage in reversed(self._stages):
            await asyncio.gather(*(each.stop() for each in stage))

    def kill(self) -> None:
        """End everything at once."""
        self._console.ending = True
        for stage in reversed(self._stages):
            for each in stage:
                each.kill()


async def run(system: System, console: Console, *, ready: ReadyFile, demo: Demo | None = None) -> int:
    """Run a system until a signal ends it; the exit code. Ends all that it started, whatever happens.

    The ready file is there while the system is ready; `demo` is run once it is.
    """
    supervisor = Supervisor(console, ready.update)
    work = asyncio.create_task(_work(supervisor, system, console, ready, demo))
    received: list[tuple[signal.Signals, float]] = []

    def on_signal(number: signal.Signals) -> None:
        received.append((number, time.monotonic()))
        if len(received) == 1:
            work.cancel()
            console.say("ending everything in order (once more: at once)")
        elif received[-1][1] - received[0][1] > _SAME_SIGNAL:
            supervisor.kill()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    try:
        await asyncio.wait([work])
    finally:
        await supervisor.stop()
    if received:
        return 128 + received[0][0]
    error = work.exception()
    if error is None:
        return 0
    if type(error) not in EXIT_CODES:
        raise error
    console.say(f"error: {error}")
    return EXIT_CODES[type(error)]


def _write_environment(system: System) -> None:
    """Write the file `env` in the data directory: the variables of a shell for the system, for `. .data/env`."""
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in system.environment.items())
    write_private(system.places.data / "env", "".join(lines))


def _room(brokers: Sequence[EmbeddedServer]) -> DiskRoom:
    """The room for the streams: the servers of a cluster share one disk, and each has all streams."""
    smallest = min((broker.room for broker in brokers), key=lambda room: room.size)
    return DiskRoom(smallest.size // len(brokers), smallest.directory) if len(brokers) > 1 else smallest


async def _work(supervisor: Supervisor, system: System, console: Console, ready: ReadyFile, demo: Demo | None) -> None:
    began = time.monotonic()
    first: list[Supervised] = [NatsServer(broker.name, broker) for broker in system.brokers]
    if system.postgres is not None:
        first.append(Postgres(system.postgres, DATABASES))
    await supervisor.start(first)
    if system.operator is not None:
        async with Connection.open(system.operator, name="gctd up") as connection:
            console.say(f"declaring {len(system.declared.streams)} streams")
            for drift in await apply_declarations(connection, system.declared, room=_room(system.brokers)):
                console.say(f"a stream differs from its declaration: {drift}")
    _write_environment(system)
    ready.remove()  # not before: until the data directory is ours, it may belong to another system
    await supervisor.start(
        *([ChildProcess(program, system.places.logs, console) for program in stage] for stage in system.stages)
    )
    with ready.shown(system, supervisor.pids), announced_system("gctd up", system.environment):
        console.say(f"all is ready: {time.monotonic() - began:.1f} s")
        console.show(system.screen)
        if demo is not None:
            await demo(system, console)
        console.show(system.next)
        await supervisor.watch()
