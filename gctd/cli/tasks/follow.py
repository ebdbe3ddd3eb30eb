"""Following tasks and a repository to their end: states are read once, then kept current by the event stream.

If the stream is interrupted, or not available, states are read at each attempt to reconnect: the shown state is never older than
the back-off of `terminalkit.client.service.follow`. The command waits for a server that restarts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import attrs
import msgspec

from gctd.client.resources import Progress, Repo, Task
from terminalkit.client import (
    RESET,
    ClientError,
    NotFound,
    Opened,
    Position,
    ReceivedFrame,
    Signal,
    StreamLost,
    TimedOut,
    Unavailable,
    parse,
)

if TYPE_CHECKING:
    from gctd.client.api import Client

PATIENCE = 60.0
"""Seconds without an answer of the server after which the command gives up."""

_AT_ONCE = 8
_REMEMBERED = 100_000
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 5.0

T = TypeVar("T")


async def follow_tasks(client: Client, tasks: Sequence[Task], *, patience: float = PATIENCE) -> AsyncGenerator[Task, None]:
    """These tasks, then each change of one of them, until all have ended: a task that is deleted has.

    Raises ClientError; Unavailable when the server has been away for `patience` seconds.
    """
    known = _Known(tasks)
    for task in tasks:
        yield task
    if known.waiting:
        async with aclosing(_follow(client, known, lambda: _read(client, known.waiting), patience)) as changes:
            async for task in changes:
                yield task
                if not known.waiting:
                    return


async def follow_all_tasks(client: Client, *, patience: float = PATIENCE) -> AsyncGenerator[Task, None]:
    """The tasks that have not ended, then each change of any task, without an end. Raises as `follow_tasks`."""
    known = _Known(None)

    async def read() -> Sequence[Task]:
        return [*await _read(client, known.waiting), *await under_way(client)]

    async with aclosing(_follow(client, known, read, patience)) as changes:
        async for task in changes:
            yield task


async def under_way(client: Client) -> Sequence[Task]:
    """The tasks that have not ended, also hidden ones. Raises ClientError."""
    # One list: a task that changes from one state to another between two lists could be in neither.
    return await client.tasks(under_way=True)


async def follow_repo(client: Client, repo: Repo, *, patience: float = PATIENCE) -> AsyncGenerator[Repo, None]:
    """A repository, then each change of it, until its projects are found or cannot be. Raises as `follow_tasks`."""
    yield repo
    contact, last = _Contact(patience), repo
    if not last.registering:
        return
    async with aclosing(client.feed()) as feed:
        async for signal in feed:
            contact.note(signal)
            found: Repo | None = None
            if isinstance(signal, Opened) or _about(signal, repo):
                found = await contact.read(lambda: client.repo(repo.url))
            elif contact.without_feed:
                found = await contact.try_to_read(lambda: client.repo(repo.url))
            if found is not None and found.document != last.document:
                last = found
                yield found
            if not last.registering:
                return


async def _follow(
    client: Client, known: _Known, read: Callable[[], Awaitable[Sequence[Task]]], patience: float
) -> AsyncGenerator[Task, None]:
    contact = _Contact(patience)
    async with aclosing(client.feed()) as feed:
        async for signal in feed:
            contact.note(signal)
            states: Sequence[_TaskState] = ()
            match signal:
                case ReceivedFrame(event="task"):
                    states = [_TaskState(parse(Task, decoded(signal, object)), signal.position)]
                case ReceivedFrame(event="stage"):
                    states = known.at_stage(decoded(signal, _Stage), signal.position)
                case Opened(resumed=False) | ReceivedFrame(event="reset"):
                    if isinstance(signal, ReceivedFrame):
                        known.forget_positions()  # it may be another log
                    states = [_TaskState.read(task) for task in await contact.read(read)]
                case StreamLost() if contact.without_feed:
                    states = [_TaskState.read(task) for task in await contact.try_to_read(read) or ()]
                case _:  # other events, short cuts, and connections that resume
                    pass
            for state in states:
                if known.takes(state):
                    yield state.task


async def _read(client: Client, tasks: Sequence[Task]) -> Sequence[Task]:
    """Return the current states of these tasks."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(task: Task) -> Task:
        async with places:
            try:
                return await client.task(task.id)
            except NotFound:
                return msgspec.structs.replace(task, deleted=True, document={**task.document, "deleted": True}, known_at=None)

    return await asyncio.gather(*map(one, tasks))


@attrs.frozen
class _Stage:
    """A `stage` event: an attempt at a task entered a stage, or its tests progressed."""

    id: str
    attempt: int
    stage: str
    at: datetime
    progress: Progress | None = None


def decoded(frame: ReceivedFrame, type_: type[T]) -> T:
    """Return the data of an event. Raises ClientError if it is not JSON of this type."""
    try:
        return msgspec.json.decode(frame.data, type=type_)
    except msgspec.DecodeError as error:
        raise ClientError(f"event {frame.id} cannot be read: {error}") from error


def _about(signal: Signal, repo: Repo) -> bool:
    """Whether a frame is about this repository, or may be."""
    match signal:
        case ReceivedFrame(event="repo"):
            document = decoded(signal, object)
            return not isinstance(document, dict) or document.get("ID", repo.id) == repo.id
        case ReceivedFrame(event=event):
            return event == RESET
        case _:
            return False


@attrs.frozen
class _TaskState:
    """A state of a task, and the place in the log of its last known event; None: not known.

    Times cannot order two states: the clocks of server and workers differ.
    """

    task: Task
    at: Position | None

    @classmethod
    def read(cls, task: Task) -> _TaskState:
        """The state in an answer of the server."""
        return cls(task, None if task.known_at is None else Position.after(task.known_at))

    def follows(self, before: _TaskState) -> bool:
        """Whether it is another state than that one, and not an older one."""
        is_older = self.at is not None and before.at is not None and self.at < before.at
        return not is_older and self.task.document != before.task.document


class _Known:
    """The known states of the followed tasks: some, each to its first end, or (None) all that appear."""

    def __init__(self, tasks: Sequence[Task] | None) -> None:
        self._open = tasks is None
        self._states = {task.id: _TaskState.read(task) for task in tasks or ()}

    @property
    def waiting(self) -> Sequence[Task]:
        """The tasks that have not ended."""
        return [state.task for state in self._states.values() if not state.task.ended]

    def at_stage(self, reached: _Stage, at: Position | None) -> Sequence[_TaskState]:
        """Return the task that reached a stage, in its state at that place; empty for another task or attempt."""
        known = self._states.get(reached.id)
        if known is None or known.task.attempt != reached.attempt:
            return ()
        changes = {"stage": reached.stage, "progress": reached.progress, "updated_at": reached.at}
        document = {**known.task.document, **msgspec.to_builtins(changes)}
        return [_TaskState(msgspec.structs.replace(known.task, **changes, document=document), at)]

    def takes(self, state: _TaskState) -> bool:
        """Whether this is news: a later state of a task followed. It is known from now on."""
        id_ = state.task.id
        before = self._states.get(id_)
        news = self._open if before is None else (self._open or not before.task.ended) and state.follows(before)
        if news:
            self._states.pop(id_, None)
            self._states[id_] = state  # behind the others: the first is the one longest without a change
            if self._open and len(self._states) > _REMEMBERED:
                del self._states[next(iter(self._states))]
        return news

    def forget_positions(self) -> None:
        """Take any other state of a task for a later one."""
        self._states = {id_: attrs.evolve(state, at=None) for id_, state in self._states.items()}


class _Contact:
    """The time of the last answer of the server, and the limit of its absence."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._last = time.monotonic()
        self._losses = 0

    def note(self, signal: Signal) -> None:
        """Note a signal. Every signal except a loss shows that the server is available."""
        if isinstance(signal, StreamLost):
            self._losses += 1
        else:
            self._losses = 0
            self._last = time.monotonic()

    @property
    def without_feed(self) -> bool:
        """Whether the event stream is unavailable after a retry. After a short interruption it resumes, and no state is read."""
        return self._losses > 1

    async def read(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the answer of `call`, repeated until it gives one. Raises Unavailable or TimedOut when patience is over."""
        pause = _FIRST_PAUSE
        while (answer := await self.try_to_read(call)) is None:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return answer

    async def try_to_read(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Return the answer of `call`, None if the server is away. Raises Unavailable or TimedOut when patience is over."""
        try:
            answer = await call()
        except (Unavailable, TimedOut):
            if time.monotonic() - self._last > self._patience:
                raise
            return None
        self._last = time.monotonic()
        return answer
