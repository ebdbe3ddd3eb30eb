"""Set-ups with one thing wrong: `gctd doctor` names it with exit code 1, and is content once its advice is followed."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from subprocess import DEVNULL, Popen, run
from typing import Any, NamedTuple

import attrs
import pytest
import pytest_asyncio

from eventlog.embedded.nats import find_binary, free_port
from gctd.cli.doctor import CheckStatus, diagnose, exit_code, host, system
from gctd.client.api import Client
from gctd.scan.errors import NoSandbox
from gctd.settings import Settings
from terminalkit.failure import ExitCode
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

TOKEN = "the token of this server"
NOWHERE = "127.0.0.1:1"


@attrs.frozen
class Setup:
    """The settings that are right, the directory of the test, and the changes that a case makes."""

    right: Settings
    directory: Path
    patch: pytest.MonkeyPatch

    def script(self, name: str, text: str) -> None:
        """Put a program in front of all others on PATH."""
        file = self.directory / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
        self.patch.setenv("PATH", f"{file.parent}:/usr/bin:/bin")


class Wrong(NamedTuple):
    """A case: the failing check, parts of its text and of its advice, and the change to the right set-up."""

    check: str
    detail: str
    fix: str
    make: Callable[[Setup], dict[str, Any] | AbstractContextManager[dict[str, Any]]]


@contextmanager
def broker(directory: Path, *arguments: str) -> Iterator[dict[str, Any]]:
    """A nats-server with these arguments on a free port."""
    port = free_port()
    command = [str(find_binary()), "-a", "127.0.0.1", "-p", str(port), *arguments]
    process = Popen(command, cwd=directory, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield {"nats_url": f"nats://127.0.0.1:{port}"}
    finally:
        process.kill()
        process.wait()


@contextmanager
def taken_port() -> Iterator[dict[str, Any]]:
    """Another program on the port of the server."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        yield {"url": f"http://{NOWHERE}", "port": port, "host": "127.0.0.1"}


def empty_broker(setup: Setup) -> AbstractContextManager[dict[str, Any]]:
    return broker(setup.directory, "-js", "-sd", str(setup.directory))


def full_disk(setup: Setup) -> dict[str, Any]:
    setup.patch.setattr(host, "free_bytes", lambda _: 100 * 1024**2)
    return {}


def no_sandbox(setup: Setup) -> dict[str, Any]:
    async def none(wanted: str, directory: Path) -> Any:
        raise NoSandbox(f"a sandbox is {wanted}d, and this host has none")

    setup.patch.setattr(host, "find_sandbox", none)
    return {"sandbox": "require"}


def no_go(setup: Setup) -> dict[str, Any]:
    setup.script("git", 'exec /usr/bin/git "$@"')
    setup.patch.setenv("PATH", str(setup.directory / "bin"))
    setup.patch.setattr(sys, "executable", str(setup.directory / "python"))
    return {"sandbox": "off", "go_toolchains": "local"}


def late_clock(setup: Setup) -> dict[str, Any]:
    real = system.now
    setup.patch.setattr(system, "now", lambda: real() - timedelta(hours=1))
    return {}


def patched(name: str, value: str) -> Callable[[Setup], dict[str, Any]]:
    def make(setup: Setup) -> dict[str, Any]:
        setup.patch.setenv(name, value)
        return {}

    return make


def settings(**changes: Any) -> Callable[[Setup], dict[str, Any]]:
    return lambda _: changes


def database(setup: Setup, name: str) -> Path:
    """A copy of the tables, to be spoilt."""
    file = setup.directory / name
    ours = setup.right.database_url.removeprefix("sqlite:")
    with closing(sqlite3.connect(ours)) as whole, closing(sqlite3.connect(file)) as copy:
        whole.backup(copy)
    return file


def changed_tables(sql: str) -> Callable[[Setup], dict[str, Any]]:
    def make(setup: Setup) -> dict[str, Any]:
        file = database(setup, "changed.db")
        with closing(sqlite3.connect(file)) as copy, copy:
            copy.execute(sql)
        return {"database_url": f"sqlite:{file}"}

    return make


def damaged_tables(setup: Setup) -> dict[str, Any]:
    file = database(setup, "damaged.db")
    content = bytearray(file.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    file.write_bytes(content)
    return {"database_url": f"sqlite:{file}"}


def file_as_directory(setup: Setup) -> dict[str, Any]:
    (setup.directory / "file").touch()
    return {"cache_directory": setup.directory / "file" / "cache"}


def old_git(setup: Setup) -> dict[str, Any]:
    setup.script("git", "echo git version 2.34.1")
    return {}


CASES = {
    "old git": Wrong("git", "git version 2.34.1 is too old", "install git 2.37 or newer", old_git),
    "no git": Wrong("git", "no git on PATH", "install git 2.37", patched("PATH", "/nowhere")),
    "no Go": Wrong("go", "this machine has no go", "install Go", no_go),
    "wrong GCTD_GO": Wrong("go", "GCTD_GO names /nowhere/go", "install Go", patched("GCTD_GO", "/nowhere/go")),
    "disk full": Wrong("disk: cache", "100 MiB free", "make room", full_disk),
    "cache in a file": Wrong("disk: cache", "is not a writable directory", "make it writable", file_as_directory),
    "no sandbox": Wrong("sandbox", "this host has none", "install bubblewrap", no_sandbox),
    "no such key": Wrong("files", "ssh_key: /nowhere/key", "correct the path", settings(ssh_key=Path("/nowhere/key"))),
    "port in use": Wrong("port", "Address already in use", "--port or GCTD_PORT", lambda _: taken_port()),
    "wrong token": Wrong("server", "does not accept the token", "GCTD_AUTH_TOKEN", settings(auth_token="another token")),
    "no token": Wrong("server", "asks for a token, and none is set", "GCTD_AUTH_TOKEN", settings(auth_token=None)),
    "wrong URL": Wrong("server", "Connection refused", "set its address with --url", settings(url=f"http://{NOWHERE}")),
    "broker away": Wrong("broker", "cannot connect", "--nats-url", settings(nats_url=f"nats://{NOWHERE}")),
    "broker without JetStream": Wrong("broker", "without JetStream", "--jetstream", lambda setup: broker(setup.directory)),
    "broker wants a password": Wrong(
        "broker", "uthorization", "user:password@", lambda setup: broker(setup.directory, "--user", "a", "--pass", "b")
    ),
    "another broker": Wrong(
        "server",
        "no event stream for it",
        "of one system",
        empty_broker,
    ),
    "no streams": Wrong("streams", "GCTD", "projections streams apply", empty_broker),
    "clock off": Wrong("clock", "3600 s behind the broker's", "NTP", late_clock),
    "no database": Wrong("database", "none.db", "GCTD_DATABASE_URL", settings(database_url="sqlite:/nowhere/none.db")),
    "tables of another service": Wrong(
        "database",
        "the tables belong to another service",
        "GCTD_DATABASE_URL",
        changed_tables("UPDATE projection_checkpoints SET projection = 'x_' || projection"),
    ),
    "damaged tables": Wrong("database", "", "the tables are rebuilt from the events", damaged_tables),
    "tables of another stream": Wrong(
        "read model",
        "made from another event stream",
        "move the file away",
        changed_tables("UPDATE projection_checkpoints SET incarnation = 'x'"),
    ),
    "tables ahead": Wrong(
        "read model",
        "events ahead",
        "restore the broker's data",
        changed_tables("UPDATE projection_checkpoints SET sequence = 1000000"),
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    """A running system with events."""
    async with tracker_system(tmp_path_factory.mktemp("doctor"), GCTD_AUTH_TOKEN=TOKEN) as system:
        async with Client(system.url, token=TOKEN) as client:
            await client.add_repo(f"file://{system.directory}")
        yield system


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def right(running: TrackerSystem) -> dict[str, Any]:
    """The settings of the running system, with which the doctor finds nothing."""
    given: dict[str, Any] = {
        "url": running.url,
        "nats_url": running.nats.url,
        "monitoring_url": running.nats.monitoring_url,
        "database_url": f"sqlite:{running.database}",
        "cache_directory": running.directory / "cache",
        "presence_ttl": 3.0,
        "auth_token": TOKEN,
    }
    found = dict(await diagnose(Settings(**given)))
    checks = {wrong.check for wrong in CASES.values()} & found.keys()
    assert {name: found[name] for name in checks if found[name].verdict is not CheckStatus.OK} == {}
    assert exit_code(list(found.items())) is ExitCode.OK
    return given


@pytest.mark.parametrize("case", CASES)
async def test_a_problem_is_named_with_its_remedy(
    right: dict[str, Any], case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each remedy leads back to the settings, the files and the environment of `right`, with which no check fails."""
    wrong = CASES[case]
    made = wrong.make(Setup(Settings(**right), tmp_path, monkeypatch))
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as changes:
        broken = Settings(**(right | changes))
        if broken.nats_url not in (right["nats_url"], f"nats://{NOWHERE}"):
            await wait_until(lambda: _listens(broken.nats_url))
        found = dict(await diagnose(broken))
    assert found[wrong.check].verdict is CheckStatus.FAIL, found[wrong.check]
    assert wrong.detail in found[wrong.check].detail
    assert wrong.fix in found[wrong.check].fix
    assert exit_code(list(found.items())) is ExitCode.FAILURE


@pytest.mark.parametrize("version", ["go1.26.8", "go1.27.0"])
async def test_go_1_27_is_as_right_as_1_26(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Engines read methods with type parameters, and the profiles of Go 1.27."""
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\necho {version}\necho {tmp_path}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("GCTD_GO", str(program))
    found = await host.host_checks(Settings())["go"]()
    assert found is not None
    assert (found.verdict, found.detail) == (CheckStatus.OK, f"{version} at {program}")


async def test_streams_are_made_by_the_command_of_the_advice(right: dict[str, Any], tmp_path: Path) -> None:
    with broker(tmp_path, "-js", "-sd", str(tmp_path)) as changes:
        settings = Settings(**(right | changes | {"presence_ttl": Settings().presence_ttl}))
        await wait_until(lambda: _listens(settings.nats_url))
        advised, _ = dict(await diagnose(settings))["streams"].fix.split(";")
        program, *arguments = advised.split()
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        environment = {**os.environ, "GCTD_NATS_URL": settings.nats_url}
        done = await asyncio.to_thread(run, command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert dict(await diagnose(settings))["streams"].verdict is CheckStatus.OK


@pytest.mark.parametrize("spoil", [damaged_tables, changed_tables("UPDATE projection_checkpoints SET incarnation = 'x'")])
async def test_tables_that_were_moved_away_are_rebuilt_by_the_server(
    running: TrackerSystem,
    right: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Setup], dict[str, Any]],
) -> None:
    changes = spoil(Setup(Settings(**right), tmp_path, monkeypatch))
    assert exit_code(await diagnose(Settings(**(right | changes)))) is ExitCode.FAILURE
    file, port = Path(changes["database_url"].removeprefix("sqlite:")), free_port()
    shutil.move(file, tmp_path / "away.db")
    server = await running.start("serve-2", "gctd", "serve", GCTD_DATABASE_URL=changes["database_url"], GCTD_PORT=str(port))
    settings = Settings(**(right | changes | {"url": f"http://127.0.0.1:{port}"}))

    async def is_whole() -> bool:
        found = dict(await diagnose(settings))
        return {found[name].verdict for name in ("server", "database", "read model")} == {CheckStatus.OK}

    await wait_until(is_whole, timeout=60, every=0.1)
    await server.kill()


def _listens(url: str) -> bool:
    """Whether a server has opened the port of its address."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0
