"""Runs the whole system on one machine: nats-server, the control plane, workers; starts again what ends, ends all in order.

`scripts/up` and `scripts/cluster` become this program once the checkout is set up: `supervisor.py up` or `supervisor.py cluster`,
then the options.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from launcher.console import Console
from launcher.demo import DemoFailed, demonstrate
from launcher.options import parse
from launcher.service import NatsServer, Postgres, Process, StartFailed, Supervised, describe
from launcher.system import DATABASES, PortInUse, System, plan

from eventlog.admin import reconcile
from eventlog.embedded.access import CredentialsDamaged, write_private
from eventlog.embedded.nats import DataDirectoryInUse, ServerFailed
from eventlog.jetstream.transport.connection import Connection
from projections.stores.postgres.server import PostgresFailed
from servicekit.monitoring import NotSeen
from terminalkit import logs
from terminalkit.config.loading import SettingsError
from terminalkit.runtime.serving import PRIVATE

EXIT_CODES = {
    StartFailed: 1,
    DemoFailed: 1,
    SettingsError: 2,
    PortInUse: 5,
    DataDirectoryInUse: 5,
    ServerFailed: 6,
    CredentialsDamaged: 6,
    PostgresFailed: 6,
}

_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_SETTLED = 60.0
"""Seconds of running after which a service that ends is started again without the delay of earlier ends."""


_LOOK_EVERY, _MEND_AT_MOST_EVERY = 2.0, 60.0
"""Seconds between two looks at the health of a nats-server, and between two restarts for its sake."""

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

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the parts that run."""
        return {each.name: each.pid for stage in self._stages for each in stage if each.pid is not None}

    async def start(self, stage: Sequence[Supervised]) -> None:
        """Start the next stage. Raises the errors of the start of a service; call `stop` then as well."""
        self._stages.append(stage)
        for result in await asyncio.gather(*(each.start() for each in stage), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        self._keepers += [asyncio.create_task(self._keep(each)) for each in stage]
        self._keepers += [asyncio.create_task(self._mend(each)) for each in stage if isinstance(each, NatsServer)]

    async def watch(self) -> None:
        """Start again what ends, until cancelled. Raises DataDirectoryInUse where another system took over."""
        await asyncio.gather(*self._keepers)

    async def stop(self) -> None:
        """End everything in good order."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for stage in reversed(self._stages):
            await asyncio.gather(*(each.stop() for each in stage))

    def kill(self) -> None:
        """End everything at once."""
        for stage in reversed(self._stages):
            for each in stage:
                each.kill()

    async def _keep(self, each: Supervised) -> None:
        delay, since = _FIRST_DELAY, time.monotonic()
        while True:
            status = await each.wait()
            self._on_change(self.pids)
            if time.monotonic() - since > _SETTLED:
                delay = _FIRST_DELAY
            self._console.say(f"{each.name} ended {describe(status)}, starting it again in {delay:g} s")
            await asyncio.sleep(delay)
            delay, since = min(delay * 2, _LONGEST_DELAY), time.monotonic()
            try:
                await each.start()
            except (StartFailed, ServerFailed, PostgresFailed) as error:
                self._console.say(str(error))
            else:
                self._on_change(self.pids)
                self._console.say(f"{each.name} runs again")

    async def _mend(self, server: NatsServer) -> None:
        """End a nats-server that only stores again after a restart, at most once a minute; it is started again as ever."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                reason = await server.see()
            except (NotSeen, ServerFailed, OSError):
                continue  # it is about to end or to begin
            if reason is not None:
                self._console.say(f"{server.name} {reason}: restarting it")
                server.end()
                await asyncio.sleep(_MEND_AT_MOST_EVERY)


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


def close_to_others(directory: Path, *, passable: bool) -> None:
    """Make a directory that others cannot look into; with `passable`, Postgres can be in it, which does not run as root."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o711 if passable and os.geteuid() == 0 else 0o700)


def _write_environment(system: System) -> None:
    """Write the file `env` in the data directory: the variables of a shell for the system, for `. .data/env`."""
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in system.environment.items())
    write_private(system.directory / "env", "".join(lines))


async def _work(supervisor: Supervisor, system: System, console: Console, ready: ReadyFile, demo: Demo | None) -> None:
    first: list[Supervised] = [NatsServer(broker) for broker in system.brokers]
    if system.postgres is not None:
        first.append(Postgres(system.postgres, DATABASES))
    await supervisor.start(first)
    if system.operator is not None:
        async with Connection.open(system.operator, name="scripts/up") as connection:
            for declared in system.declarations:
                for drift in await reconcile.apply(connection, declared):
                    console.say(f"a stream differs from its declaration: {drift}")
    _write_environment(system)
    ready.remove()  # not before: until the data directory is ours, it may belong to another system
    for stage in system.stages:
        await supervisor.start([Process(service, system.directory / "logs", console) for service in stage])
    with ready.shown(system, supervisor.pids):
        if demo is not None:
            await demo(system, console)
        for name, where in system.addresses.items():
            print(f"{name}: {where if isinstance(where, str) else ' '.join(where)}", flush=True)
        console.say(system.welcome)
        await supervisor.watch()


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for; the exit code."""
    program, *rest = arguments
    options = parse(program, rest)
    console = Console(verbose=options.verbose)
    logs.configure(level="info" if options.verbose else "warning", style="text")
    os.umask(PRIVATE)
    try:
        close_to_others(options.data_dir, passable=options.postgres)
        system = plan(options)
    except (PortInUse, SettingsError, CredentialsDamaged) as error:
        console.say(f"error: {error}")
        return EXIT_CODES[type(error)]
    return asyncio.run(run(system, console, ready=ReadyFile(options.ready_file), demo=demonstrate if options.demo else None))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
