"""One run of the simulator: processes, clients and faults by a seed, then all is healed, and judged."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import attrs
import structlog

from eventlog.commands import commands
from eventlog.jetstream import append, connection, log, reading
from eventlog.support import timers
from projections.projector import status
from projections.stores.postgres import connection as pool
from projections.stores.postgres import election, store
from tests.simulator.accounts import MODEL, STREAM
from tests.simulator.broker import Broker
from tests.simulator.clients import Clients
from tests.simulator.database import Database
from tests.simulator.faults import DAMAGING, PASSING
from tests.simulator.judging import final_violations
from tests.simulator.oracle import Oracle
from tests.simulator.process import Process
from tests.simulator.stream import Stream
from tests.support.log.virtual_time import OUTSIDE, Deadlock, VirtualTimeLoop, current_process

PROCESSES = 3
_ROWS = 0.8
"""Share of the rows that are to be stored in one batch. On virtual time no append is faster than another."""
_MOST_VIOLATIONS = 5


@attrs.frozen(kw_only=True)
class Report:
    """The result of a run. `digest` is of everything that happened: the same for the same seed.

    `steps` counts callbacks of processes, broker, database and clients, `requests` those requests that clients sent, `done` the
    acknowledged bookings. `faults` are the injected ones, and `damaged` is the one that lost records.
    """

    seed: int
    violations: Sequence[str]
    digest: str
    steps: int
    requests: int
    done: int
    faults: Sequence[str]
    virtual_seconds: float
    damaged: str | None
    lines: Sequence[str] = ()


class Simulation:
    """A run. Everything random is drawn by the seed: the faults, the requests, the delays, and the order of the processes."""

    def __init__(self, seed: int, *, verbose: bool = False) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.loop = VirtualTimeLoop(self.random.getrandbits(64))
        self.stream = Stream(STREAM, replicas=self.random.choice((1, 1, 3)))
        self.broker = Broker(self.loop, self.stream)
        self.database = Database(self.loop, MODEL)
        self.broker.trace = self.database.trace = self.trace
        self.oracle = Oracle(self.stream, self.database, self.violated)
        self.processes: list[Process] = []
        self.violations: list[str] = []
        self.injected: list[str] = []
        self.damaged: str | None = None
        self.lines: list[str] = []
        self.clients = Clients(self)
        self._verbose = verbose
        self._digest = sha256()
        self._outside = self.loop.context_of(OUTSIDE)
        self._pending: list[tuple[float, Callable[[], None]]] = []

    # For faults and clients

    def trace(self, text: str) -> None:
        """Note that something happened."""
        line = f"{self.loop.time():.6f} {text}"
        self._digest.update(line.encode())
        if self._verbose:
            self.lines.append(line)

    def violated(self, text: str) -> None:
        """Note a broken promise."""
        self.trace(f"VIOLATION {text}")
        if len(self.violations) < _MOST_VIOLATIONS:
            self.violations.append(f"{self.loop.time():.3f} s: {text}")

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, at the latest when all is healed."""
        entry = (self.loop.time() + seconds, action)
        self._pending.append(entry)

        def act() -> None:
            if entry in self._pending:
                self._pending.remove(entry)
                action()

        self.loop.call_later(seconds, act, context=self._outside)

    def running(self) -> list[Process]:
        """The processes that are alive."""
        return [process for process in self.processes if process.alive]

    def leader_or_other(self) -> Process:
        """Most often the process that leads, else any."""
        running, lease = self.running(), self.database.lease
        session = None if lease is None else self.database.sessions.get(lease.pid)
        leading = [process for process in running if session is not None and process.name == session.process]
        return leading[0] if leading and self.random.random() < 0.7 else self.random.choice(running)

    def excused(self, sequence: int) -> bool:
        """Whether the log has lost what once was at a sequence."""
        return any(lineage.shared < sequence for lineage in self.stream.lineages[1:])

    def knew_before(self, process: str, moment: float) -> bool:
        """Whether a process had looked at the stream before a moment."""
        return any(one.name == process and one.served_since < moment for one in self.processes)

    def go_on(self, process: Process) -> None:
        """Continue a process that hangs, unless it was killed."""
        if process.alive:
            self.trace(f"{process.name} goes on")
            self.loop.release(process.name)

    def start(self) -> None:
        """Start a process."""
        process = Process(self.loop, self.broker, f"p{len(self.processes) + 1}")
        self.processes.append(process)
        self.trace(f"{process.name} starts")
        process.start()

    def kill(self, process: Process) -> None:
        """A process ends at once, like at kill -9."""
        self.trace(f"{process.name} is killed")
        process.alive = process.serving = False
        process.link.dead = True
        self.loop.hold(process.name)
        for session in [session for session in self.database.sessions.values() if session.process == process.name]:
            self.database.end(session)

    # The run

    async def main(self) -> None:
        """All of it."""
        for _ in range(PROCESSES):
            self.start()
        await asyncio.sleep(0.2)
        work = self.clients.start()
        await self._faults()
        await asyncio.gather(*work)
        await self._heal()
        for violation in await final_violations(self):
            self.violated(violation)

    async def _faults(self) -> None:
        faults = self.random.choices(PASSING, k=self.random.randint(0, 5))
        damaging = self.random.random() < 0.4
        if damaging:
            faults.insert(self.random.randint(0, len(faults)), self.random.choice(DAMAGING))
        for fault in faults:
            await asyncio.sleep(self.random.expovariate(0.5))
            if not self.running():
                continue
            self.trace(f"fault {fault.__name__}")
            self.injected.append(fault.__name__)
            if fault in DAMAGING:
                self.damaged = fault.__name__
            fault(self)

    async def _heal(self) -> None:
        """End every fault."""
        for entry in list(self._pending):
            self._pending.remove(entry)
            entry[1]()
        broker = self.broker
        broker.loss = broker.busy = broker.lost_deliveries = self.database.slow = 0.0
        broker.lag = 0
        self.stream.limited = False
        while len(self.running()) < PROCESSES:
            self.start()
        self.trace("healed")

    async def bury(self) -> None:
        """Let go of all tasks, so that none is left over."""
        for process in self.processes:
            self.loop.release(process.name)
            process.link.dead = True
            process.link.is_connected = False
        for session in list(self.database.sessions.values()):
            session.terminate()
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=1)


def run(seed: int, *, verbose: bool = False) -> Report:
    """Run a seed. `verbose` keeps the lines of everything that happened."""
    simulation = Simulation(seed, verbose=verbose)
    loop = simulation.loop
    with _on_virtual_time(simulation):
        try:
            loop.run_until_complete(simulation.main())
        except Deadlock as error:
            simulation.violated(str(error))
        finally:
            steps = loop.steps
            loop.run_until_complete(simulation.bury())
        for context in loop.errors:
            simulation.violated(f"an error that no task waits for: {context.get('message')}: {context.get('exception')!r}")
    loop.close()
    return Report(
        seed=seed,
        violations=simulation.violations,
        digest=simulation._digest.hexdigest(),
        steps=steps,
        requests=simulation.clients.requests,
        done=len(simulation.clients.acknowledged),
        faults=simulation.injected,
        virtual_seconds=loop.time(),
        damaged=simulation.damaged,
        lines=simulation.lines,
    )


@contextmanager
def _on_virtual_time(simulation: Simulation) -> Iterator[None]:
    """Clocks, chance and connections are the simulation's; log lines are not written."""
    loop, database = simulation.loop, simulation.database
    clock = SimpleNamespace(monotonic=loop.time)
    chance = random.Random(simulation.random.getrandbits(64))
    numbers = iter(range(10**9))

    async def connect(_: Any, **__: Any) -> Any:
        return await database.connect(current_process())

    async def connect_pool(_: Any, **__: Any) -> Any:
        return await database.pool(current_process())

    before = structlog.get_config()
    collecting = gc.isenabled()
    with ExitStack() as stack:
        place: Callable[[Any, str, Any], Any] = lambda *of: stack.enter_context(patch.object(*of))  # noqa: E731
        for module in (connection, status):
            place(module, "time", clock)
        for module in (timers, commands):
            place(module, "random", chance)
        for module in (append, log):
            place(module, "perf_counter", loop.time)
        place(append.CostEstimate, "row_pays", lambda _, count: count > 1 and chance.random() < _ROWS)
        place(reading, "uuid4", lambda: SimpleNamespace(hex=f"{next(numbers):x}"))
        place(append, "secrets", SimpleNamespace(token_urlsafe=lambda _: f"b{next(numbers):x}-"))
        for module in (election, store):
            place(module, "connect_postgres", connect)
        place(pool, "connect_pool", connect_pool)
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        gc.disable()  # it would end forgotten generators at moments that no seed draws
        try:
            yield
        finally:
            structlog.configure(**before)
            if collecting:
                gc.enable()


def first_failing(seeds: Iterable[int]) -> Report | None:
    """Run seeds until one breaks a promise: its report, or None."""
    return next((report for report in map(run, seeds) if report.violations), None)


__all__ = ["PROCESSES", "Report", "Simulation", "first_failing", "run"]
