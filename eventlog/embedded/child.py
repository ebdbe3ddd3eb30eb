"""A server as a child process on a data directory: its start, its end, and the last lines of its log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import psutil
import structlog

from eventlog.embedded import die_with_parent as launch
from eventlog.errors import EventLogError
from eventlog.support.files import locked

_PATIENCE = 10.0
"""Seconds for the server of an owner that was killed to end."""
_POLL = 0.01


class DataDirectoryInUse(EventLogError):
    """Another process runs a server on the same data directory."""

    status = HTTPStatus.CONFLICT

    def __init__(self, directory: Path, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{directory} is in use by {owner}: stop it, or choose another data directory")
        self.pid = pid


class DataLock:
    """The lock on a data directory. The server inherits it, so that it holds until both have ended."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    async def take(cls, directory: Path) -> DataLock:
        """Take the lock of a directory. Raises DataDirectoryInUse."""
        end = time.monotonic() + _PATIENCE
        with contextlib.ExitStack() as undo:
            fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            undo.callback(os.close, fd)
            while not locked(fd):
                pids = [int(pid) for pid in os.pread(fd, 64, 0).split()]
                if any(map(_alive, pids[:1])) or time.monotonic() > end:
                    raise DataDirectoryInUse(directory, next(filter(_alive, pids), None))
                await asyncio.sleep(_POLL)  # the owner was killed, its server is about to follow; or it begins just now
            undo.pop_all()
            return cls(fd)

    def name(self, server: int) -> None:
        """Write down the owner, and the pid of the server."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{os.getpid()} {server}\n".encode(), 0)

    def release(self) -> None:
        """Give it up, as far as this process has it."""
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


log = structlog.get_logger(__name__)

_LOG_TAIL = 20


class ChildServer(ABC):
    """A server that this process starts, and that ends with it: `async with` runs it while a block runs.

    Subclasses start it (`_prepare`, `_begin`), and give back at its end (`_release`). `title` names it in
    errors and log lines, `failed` is the class of these errors. `end_signal` ends it in order, within `stop_timeout` seconds;
    then it is killed.
    """

    title: ClassVar[str]
    failed: ClassVar[type[Exception]]
    end_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_timeout: ClassVar[float] = 10.0

    def __init__(self, data_dir: Path, *, start_timeout: float) -> None:
        self.data_dir = data_dir
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    @property
    @abstractmethod
    def log_file(self) -> Path:
        """The file that the server logs to."""

    @abstractmethod
    async def _prepare(self) -> None:
        """Make ready what the server needs before its time to start runs."""

    @abstractmethod
    async def _begin(self) -> None:
        """Run the server (`_spawn`) until it answers. Raises `failed`."""

    def _ended(self) -> None:  # noqa: B027 - most have nothing to do
        """Do what is to be done after an end in order, which a kill is not."""

    def _release(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what `_prepare` has taken."""

    @property
    def pid(self) -> int:
        """The process id of the running server. Raises `failed` if it does not run."""
        if self._process is None or not self._running():
            raise self.failed(f"{self.title} does not run")
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it answers, at most `start_timeout` seconds; nothing happens if it runs already.

        Raises `failed`. Call it in a thread that stays: the server ends with the thread that started it.
        """
        if self._running():
            return
        try:
            await self._prepare()
            async with asyncio.timeout(self._start_timeout):
                await self._begin()
        except BaseException as error:
            await self.kill()
            self._release()
            if isinstance(error, TimeoutError):
                raise self._failure(f"did not answer within {self._start_timeout:g} s") from error
            if isinstance(error, OSError):
                raise self.failed(f"cannot run {self.title} on {self.data_dir}: {error}") from error
            raise
        log.info("server started", server=self.title, pid=self.pid, data_dir=str(self.data_dir))

    async def stop(self) -> None:
        """End it in order, or kill it after `stop_timeout` seconds, and release the data directory."""
        await self._end()
        self._release()

    async def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL). Nothing happens if it does not run."""
        if self._process is not None:
            self._process.kill()
            await self.wait()

    async def restart(self) -> None:
        """Stop it if it still runs, and start it again."""
        await self._end()
        await self.start()

    async def wait(self) -> int:
        """Wait until it has ended, for any reason. Gives the exit status (negative: the signal that ended it)."""
        if (process := self._process) is None:
            raise self.failed(f"{self.title} has not been started")
        if process.poll() is None:
            await _until_ended(process.pid)
        return process.wait()

    def _running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def _end(self) -> None:
        if self._process is not None and self._running():
            self._process.send_signal(self.end_signal)
            try:
                async with asyncio.timeout(self.stop_timeout):
                    await self.wait()
                self._ended()
            except TimeoutError:
                log.warning("server did not stop, killing it", server=self.title, pid=self._process.pid)
        await self.kill()

    def _spawn(
        self, command: Sequence[str], output: Path, mode: str, *, account: int | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Run its program, which the kernel ends with this process; `mode` opens the file for its `output`."""
        with output.open(mode) as file:
            self._process = subprocess.Popen(
                launch.attached_command(command, end=self.end_signal, account=account),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # or Ctrl-C in a terminal ends it before its clients
                **options,
            )
        return self._process

    def _failure(self, what: str, *more: Path) -> Exception:
        """The error with the end of its log, and of `more` files."""
        lines: list[str] = []
        for file in (self.log_file, *more):
            with contextlib.suppress(FileNotFoundError):
                lines += file.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL:]
        return self.failed("\n".join([f"{self.title} {what}; the end of its log ({self.log_file}):", *lines]))


async def _until_ended(pid: int) -> None:
    """Wait until a child process has ended: then its descriptor can be read (pidfd_open(2))."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
