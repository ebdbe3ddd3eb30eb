"""An event loop on a virtual clock, for simulations of several processes in one thread.

Time passes only if no callback is left to run, and then at once: a simulated day without events costs nothing. A seed draws the
process that runs next, and replays exactly. Within a process callbacks run in the order of asyncio, so every schedule is one that
real processes can have.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from asyncio import events
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

OUTSIDE = ""
"""The name of callbacks that belong to no process: clients, the broker, the database."""
_PROCESS: ContextVar[str] = ContextVar("process", default=OUTSIDE)


def current_process() -> str:
    """The process that the caller belongs to."""
    return _PROCESS.get()


class Deadlock(Exception):
    """No callback is left that could ever run, and the simulation has not ended."""


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """The loop. `seed` draws the next process; `time()` begins at 0 and counts virtual seconds.

    A process is a name in the context of callbacks and tasks: see `context_of`. It can be held, as by SIGSTOP.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.steps = 0
        """Callbacks that have run."""
        self.errors: list[dict[str, Any]] = []
        """Contexts of the exception handler: errors that no task waits for."""
        self._now = 0.0
        self._queues: dict[str, deque[asyncio.Handle]] = {}
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = 0
        self._held: set[str] = set()
        self._under_way = self._over = False
        super().__init__()

    # Processes

    def context_of(self, process: str) -> Context:
        """The context for tasks and callbacks of a process; tasks that they begin belong to it as well."""
        context = copy_context()
        context.run(_PROCESS.set, process)
        return context

    def hold(self, process: str) -> None:
        """Run no callback of a process until `release`. Its time passes."""
        self._held.add(process)

    def release(self, process: str) -> None:
        """Continue a process that was held."""
        self._held.discard(process)

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Run until a coroutine or a future is done; its result. Raises Deadlock."""
        task = asyncio.ensure_future(future, loop=self)
        self._under_way = True
        events._set_running_loop(self)
        try:
            while not task.done():
                self._step()
        finally:
            events._set_running_loop(None)
            self._under_way = False
        return task.result()

    def _step(self) -> None:
        waiting = [name for name, queue in self._queues.items() if queue and name not in self._held]
        if not waiting:
            self._advance()
            return
        queue = self._queues[waiting[0] if len(waiting) == 1 else waiting[int(self.random.random() * len(waiting))]]
        for _ in range(len(queue)):  # one turn of the loop of that process
            handle = queue.popleft()
            if not handle.cancelled():
                self.steps += 1
                handle._run()
            if self._held:
                break

    def _advance(self) -> None:
        """Go to the next timer that can do something."""
        if not self._timers:
            raise Deadlock(
                f"no callback is left to run at {self._now:g} s. Held processes: {', '.join(sorted(self._held)) or 'none'}"
            )
        self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            handle = heapq.heappop(self._timers)[2]
            if not handle.cancelled():
                self._enqueue(handle)

    def _enqueue(self, handle: asyncio.Handle) -> None:
        process = handle._context.get(_PROCESS, OUTSIDE)  # type: ignore[attr-defined]
        self._queues.setdefault(process, deque()).append(handle)

    # The loop as asyncio uses it

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now

    def call_soon(self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        """Run a callback in the next turn of its process."""
        handle = asyncio.Handle(callback, args, self, context)
        self._enqueue(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As `call_soon`: there are no threads in a simulation."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback after `delay` virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a moment of `time()`."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        heapq.heappush(self._timers, (when, self._numbers, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:
        """A task of the process of `context`, else of the one that asks."""
        return asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Call a function at once: there are no threads in a simulation."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits gets it
            future.set_exception(error)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note an error that no task waits for."""
        self.errors.append(context)

    def get_debug(self) -> bool:
        """Never in debug mode."""
        return False

    def is_running(self) -> bool:
        """Whether `run_until_complete` is under way."""
        return self._under_way

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._over

    def close(self) -> None:
        """Forget all that has not run."""
        self._over = True
        self._queues.clear()
        self._timers.clear()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A timer stays in the queue until its moment, and is passed over then."""

    async def shutdown_asyncgens(self) -> None:
        """There is nothing to shut down."""
