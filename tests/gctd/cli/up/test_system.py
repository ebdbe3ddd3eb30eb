"""The whole system as `gctd up` starts it: nats-server, the control plane and a worker, each a real process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.programs import warm
from tests.support.programs.supervised import Supervised, alive, supervised
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real


@contextmanager
def _system(directory: Path, *options: str) -> Iterator[Supervised]:
    common = ["--data-dir", str(directory / "data"), "--ready-file", str(directory / "ready.json"), "--port-base", "0"]
    command = [sys.executable, "-m", "gctd", "up", *common, *options]
    with supervised(command, directory / "console.txt", dict(os.environ)) as running:
        yield running


def _check_it_is_private(data: Path) -> None:
    """Another user of the machine can read nothing below the data directory, and needs a password at the broker."""
    assert data.stat().st_mode & 0o777 == 0o700
    files = [path for path in data.rglob("*") if path.is_file() and not path.is_relative_to(data / "cache")]
    assert {"gctd.db", "pantry.db", "credentials.json", "env", "nats-server.conf"} <= {path.name for path in files}
    assert [path for path in files if path.stat().st_mode & 0o077] == []
    passwords = json.loads((data / "credentials.json").read_text()).values()
    logs = "".join(path.read_text() for path in files if path.suffix == ".log")
    assert not any(password in logs for password in passwords)


def _check_the_first_screen(said: str, ready: Mapping[str, Any]) -> None:
    """It fits a terminal, has the places of everything and the next step, and no warning."""
    lines = said.splitlines()
    assert len(lines) <= 24
    assert lines[0] == "up: loading the programs"
    screen = [line for line in lines if not line.startswith("up: ")]
    assert lines[-len(screen) - 1].startswith("up: all is ready: ")
    assert screen[0].startswith("gctd ")
    shown = dict(line.split(maxsplit=1) for line in screen[1:])
    assert [shown[name] for name in ("dashboard", "pantry", "graphql")] == [ready[n] for n in ("gctd", "pantry", "graphql")]
    assert Path(shown["data"]).is_dir()
    assert shown["next"].endswith("gctd repo add https://github.com/owner/name")
    assert lines[-1].split() == ["Ctrl-C", "stops"]
    assert "warning" not in said


def _check_that_commands_find_it(environment: Mapping[str, str]) -> None:
    """Without an address in the environment, the commands of all programs use the system that runs."""
    for program, *arguments in (
        ("gctd", "worker", "list", "--json"),
        ("gctd", "token", "list"),
        ("pantry", "product", "list", "--json"),
        ("pantry", "token", "list"),
        ("pantry", "migrate", "version"),
        ("projections", "verify"),
        ("projections", "verify", "--model", "pantry"),
        ("projections", "streams", "plan"),
    ):
        done = warm.run(program, *arguments, environment=environment, directory=Path("/"), seconds=60)
        assert done.returncode == 0, done.stderr


def _gctd(ready: Mapping[str, Any], *arguments: str) -> Any:
    environment = {**os.environ, **ready["env"]}
    done = warm.run("gctd", *arguments, "--json", environment=environment, directory=Path("/"), seconds=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_the_ready_file_is_all_that_the_command_line_needs(tmp_path: Path) -> None:
    with _system(tmp_path, "--workers", "2") as running:
        ready = await running.ready()
        assert set(ready) == {"gctd", "pantry", "graphql", "nats", "pids", "env"}
        assert set(ready["pids"]) == {"nats-server", "serve", "pantry", "graphql", "worker-1", "worker-2"}
        assert _get(f"{ready['gctd']}/readyz")["status"] == "ok"
        greeting = {"data": {"hello": "Hello world! from OpenFaaS"}}
        assert _get(f"{ready['graphql']}/function/graphql?query=%7Bhello%7D") == greeting
        assert {worker["id"]: worker["status"] for worker in _gctd(ready, "worker", "list")} == {
            "worker-1": "idle",
            "worker-2": "idle",
        }
        _check_it_is_private(tmp_path / "data")
        _check_the_first_screen(running.said, ready)
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("GCTD_", "NATS_", "PANTRY_"))}
        _check_that_commands_find_it(bare)
        children = list(running.descendants().values())
        assert await running.end(signal.SIGINT) == 130
        assert alive(children) == []
        assert not running.ready_file.exists()
        assert list((Path(os.environ["XDG_STATE_HOME"]) / "terminalkit" / "running").iterdir()) == []


@pytest.mark.long
async def test_kill_9_of_the_supervisor_leaves_nothing_behind_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with _system(tmp_path) as running:
        await running.ready()
        children = list(running.descendants().values())
        assert len(children) >= 3
        await running.end(signal.SIGKILL)
        await wait_until(lambda: not alive(children))
    running.ready_file.unlink()
    with _system(tmp_path) as running:
        ready = await running.ready()
        assert [worker["id"] for worker in _gctd(ready, "worker", "list")] == ["worker-1"]
        assert await running.end(signal.SIGTERM) == 143


@pytest.mark.long
@pytest.mark.parametrize("part", ["gctd serve", "gctd worker", "nats-server"])
async def test_a_killed_process_comes_back_at_the_same_address(tmp_path: Path, part: str) -> None:
    with _system(tmp_path) as running:
        ready = await running.ready()
        running.find(part).kill()
        await wait_until(lambda: "runs again" in running.said, 30)
        listed = await wait_until(lambda: _online(ready), 30)
        assert listed == ["worker-1"]


@pytest.mark.long
async def test_the_tables_may_be_in_a_postgres_that_belongs_to_the_system() -> None:
    """It is restarted after a kill, ends with the system, also after a kill of the system, and serves the next start."""
    directory = Path(tempfile.mkdtemp(prefix="system-"))
    os.chmod(directory, 0o755)  # noqa: PTH101 - Postgres does not run as root: then somebody else has to get there
    try:
        with _system(directory, "--postgres") as running:
            ready = await running.ready()
            assert ready["env"]["GCTD_DATABASE_URL"].startswith("postgresql://")
            assert [worker["id"] for worker in _gctd(ready, "worker", "list")] == ["worker-1"]
            running.find("postgres/cluster").kill()
            await wait_until(lambda: "postgres runs again" in running.said, 30)
            assert await wait_until(lambda: _online(ready), 60) == ["worker-1"]
            children = list(running.descendants().values())
            await running.end(signal.SIGKILL)
            await wait_until(lambda: not alive(children), 30)
        running.ready_file.unlink()
        with _system(directory, "--postgres") as running:
            assert _gctd(await running.ready(), "worker", "list")[0]["id"] == "worker-1"
            assert await running.end(signal.SIGTERM) == 143
    finally:
        shutil.rmtree(directory)


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        _system(tmp_path, "--port-base", str(taken.getsockname()[1])) as running,
    ):
        assert await running.end() == 5
        assert f"port {taken.getsockname()[1]}: Address already in use; choose others with --port-base" in running.said


def _online(ready: Mapping[str, Any]) -> list[str]:
    try:
        return [worker["id"] for worker in _get(f"{ready['gctd']}/api/workers") if worker["status"] in {"idle", "busy"}]
    except OSError:
        return []


def _get(url: str) -> Any:
    with urlopen(url, timeout=30) as response:
        return json.load(response)
