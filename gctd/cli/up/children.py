"""One supervised process: its start, its end, and the place of its output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Protocol

import aiohttp
import attrs

from eventlog.embedded import attached_command
from gctd.cli.up.console import Console
from servicekit import Startable, describe_exit

START_TIMEOUT = 60.0
"""Seconds within which a service has to be ready, or to say something new about why it is not: it may have much to make first."""
_POLL = 0.05
_TAIL = 20
_CHUNK = 64 * 1024
_LONGEST_LINE = 1024**2
_LOG_BYTES, _LOG_FILES = 16 * 1024**2, 2


@attrs.frozen(kw_only=True)
class Ready:
    """When a service is ready: `url`, asked with `headers`, answers 200 with a body that is right for its process id."""

    url: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    is_right: Callable[[bytes, int], bool] = lambda _body, _pid: True


@attrs.frozen(kw_only=True)
class ChildProgram:
    """The parameters of one program of the system.

    `command` is a full path and arguments, `environment` its variables in addition to the supervisor's own. After a request to
    end, it has `patience` seconds, then it is killed.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = attrs.field(factory=dict)
    ready: Ready
    patience: float = 10.0


class StartFailed(Exception):
    """A service ended, was not ready in time, or cannot be seen, when it was started; the text has the reason."""


class Unseen(Exception):
    """`gctd up` cannot see whether a service is ready; the text has the reason and the remedy."""


class Supervised(Startable, Protocol):
    """Something that the supervisor starts, starts again when it has ended by itself, and ends."""

    @property
    def pid(self) -> int | None:
        """Its process id, None if it does not run."""

    @property
    def why(self) -> str:
        """The reason why it is not ready, in its own words; empty: unknown."""

    async def stop(self) -> None:
        """End it in good order, in a bounded time. Nothing happens if it does not run."""

    def kill(self) -> None:
        """End it at once. Nothing happens if it does not run."""


class ChildProcess:
    """A program as a child process, killed by the kernel when the supervisor is gone."""

    def __init__(self, service: ChildProgram, logs: Path, console: Console) -> None:
        self.service = service
        self.log_file = logs / f"{service.name}.log"
        self._console = console
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self.why = ""
        self._process: asyncio.subprocess.Process | None = None
        self._ended: asyncio.Task[int] | None = None

    @property
    def name(self) -> str:
        """The service's name."""
        return self.service.name

    @property
    def pid(self) -> int | None:
        """Its process id, None if it does not run."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def launch(self) -> None:
        """Start the process, without waiting until it is ready. Raises StartFailed."""
        self._tail.clear()
        try:
            process = await asyncio.create_subprocess_exec(
                *attached_command(self.service.command, end=signal.SIGKILL),
                env={**os.environ, **self.service.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal is the supervisor's to handle
            )
        except OSError as error:  # for example too many processes at this moment
            raise StartFailed(f"{self.name} cannot be started: {error}") from error
        self._process = process
        self._ended = asyncio.create_task(self._see_it_through(process))

    async def start(self) -> None:
        """Wait until it is ready, and start it before if it does not run. Raises StartFailed, and leaves no process."""
        if self._process is None or self._ended is None or self._ended.done():
            await self.launch()
        assert self._process is not None
        assert self._ended is not None
        try:
            async with asyncio.timeout(START_TIMEOUT) as bound:
                await self._until_ready(self._process, self._ended, bound)
        except (TimeoutError, Unseen) as error:
            self.kill()
            await self.wait()
            if isinstance(error, Unseen):
                raise StartFailed(f"{self.name} cannot be seen: {error}") from None
            raise self._failure(f"was not ready, and said nothing new of it for {START_TIMEOUT:g} s") from None

    async def wait(self) -> int:
        """Wait until it has ended and its output is written."""
        assert self._ended is not None
        return await asyncio.shield(self._ended)

    async def stop(self) -> None:
        """Tell it to end (SIGTERM); kill it when it has not done so within its `patience`."""
        if self._ended is None or self._ended.done():
            return
        self._signal(signal.SIGTERM)
        if not (await asyncio.wait([self._ended], timeout=self.service.patience))[0]:
            self._console.say(f"{self.name} did not end within {self.service.patience:g} s, killing it")
            self.kill()
            await self.wait()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _until_ready(self, process: asyncio.subprocess.Process, ended: asyncio.Task[int], bound: asyncio.Timeout) -> None:
        said = b""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while not ended.done():
                says = await _why_not(session, self.service.ready, process.pid)
                if says is None:
                    return
                if says and says != said:
                    said, self.why = says, _reason(says)
                    bound.reschedule(asyncio.get_running_loop().time() + START_TIMEOUT)
                await asyncio.wait([ended], timeout=_POLL)
        raise self._failure(f"ended {describe_exit(ended.result())}")

    def _failure(self, what: str) -> StartFailed:
        return StartFailed("\n".join([f"{self.name} {what}; the end of its log ({self.log_file}):", *self._tail]))

    async def _see_it_through(self, process: asyncio.subprocess.Process) -> int:
        output = asyncio.create_task(self._copy_output(process))
        status = await process.wait()
        await asyncio.wait([output], timeout=1)  # a descendant that lives on may hold the pipe open
        output.cancel()
        return status

    async def _copy_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_log(self.log_file)) as log:
            rest = b""
            while chunk := await process.stdout.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    self._keep(line.decode(errors="replace").rstrip("\r"), log)
            if rest:
                self._keep(rest.decode(errors="replace"), log)

    def _keep(self, line: str, log: logging.Handler) -> None:
        log.emit(logging.makeLogRecord({"msg": line}))
        self._tail.append(line)
        self._console.relay(self.name, line)


def _log(file: Path) -> logging.Handler:
    return RotatingFileHandler(file, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES, encoding="utf-8", errors="backslashreplace")


async def _why_not(session: aiohttp.ClientSession, ready: Ready, pid: int) -> bytes | None:
    """None if the service is ready; else the reason, if it gives one. Raises Unseen."""
    try:
        async with session.get(ready.url, headers=ready.headers) as response:
            body = await response.read()
            if response.status in {401, 403}:
                raise Unseen(f"{ready.url} is answered with {response.status}: set GCTD_AUTH_TOKEN to a valid token")
            if response.status == 200:
                return None if ready.is_right(body, pid) else b""
            return body if response.status == 503 else b""
    except (aiohttp.ClientConnectorError, TimeoutError):
        return b""
    except aiohttp.ClientError:
        if await _answers_https(session, ready.url):
            why = "it answers https only, and gctd up serves this machine by http: unset its tls_certificate and tls_key"
            raise Unseen(f"{ready.url}: {why}") from None
        return b""


def _reason(body: bytes) -> str:
    """Return the reason in the answer of a probe, empty if there is none."""
    try:
        document = json.loads(body)
    except ValueError:
        return ""
    return str(document.get("reason") or "") if isinstance(document, dict) else ""


async def _answers_https(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether a server answers https at an http address, with any certificate."""
    try:
        async with session.get(url.replace("http:", "https:", 1), ssl=False):
            return True
    except (aiohttp.ClientError, TimeoutError):
        return False
