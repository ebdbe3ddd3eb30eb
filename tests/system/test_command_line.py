"""The command line against a running system: `--json` of every command that reads, and `gctd doctor`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from gctd.broker.broker import JOBS
from gctd.cli.root import PROGRAM
from tests.support.log.nats import plain_client
from tests.support.pace import within
from tests.support.pantry.system import pantry_system
from tests.support.programs.cli import Result, gctd
from tests.support.programs.commands import leaves
from tests.support.programs.documents import misfits
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.go_repo import GoRepo
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

WRITES = {
    *("repo add", "repo analyze", "repo rm", "repo rescore", "repo config set", "repo config rm", "coverage upload"),
    *("token create", "token revoke"),
    *("task cancel", "task retry", "task delete", "task hide-all", "worker pause", "worker unpause"),
}
"""Commands that change something; all others read."""

NO_DOCUMENT = {"serve", "up", "completion", "check"}
"""Programs that serve, a script for a shell, and the check of a working copy, which has its own tests."""


class Scanned:
    """A system with a repository that was analysed twice."""

    def __init__(self, system: TrackerSystem, repo: GoRepo) -> None:
        self.system = system
        self.repo = repo
        self.task = ""

    async def analyse(self, ref: str, **functions: float) -> None:
        """Let the worker report these functions with these values for a branch."""
        named = {f"a.go:{name}": value for name, value in functions.items()}
        MadeUp(commit_sha=self.repo.head(), functions=named).write(self.system.directory / "analyses", ref)
        (task,) = await self.system.post("/api/repos/analyze", {"repo_url": self.repo.url, "ref": ref})
        self.task = task["id"]
        await self.system.until_task(self.task, "completed")

    async def run(self, *arguments: str, **environment: str) -> Result:
        """How the program ends with these arguments."""
        wanted = {name: value for name, value in self.system.environment.items() if name.startswith("GCTD_")}
        wanted |= {"PATH": os.environ["PATH"]}
        return await gctd(*arguments, url=self.system.url, home=self.system.directory, env=wanted | environment)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scanned(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scanned]:
    directory = tmp_path_factory.mktemp("line")
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"), FAKE_LINES="2")
        found = Scanned(system, gorepo.make(directory / "repo", kind="single"))
        for branch in ("one", "two"):
            found.repo.git("branch", branch)
        await system.register(found.repo.url)
        await found.analyse("one", Parse=42.0)
        await found.analyse("two", Parse=12.0)
        yield found


def arguments_of(command: str, scanned: Scanned) -> list[str]:
    """Arguments with which a command that reads finds something."""
    url, task = scanned.repo.url, scanned.task
    if command.startswith("task ") and command != "task list":
        return [task]
    return [url] if command == "gate" or (command.startswith("repo ") and command != "repo list") else []


READS = sorted(leaves(PROGRAM.group) - WRITES - NO_DOCUMENT)


@pytest.mark.parametrize("command", READS)
async def test_json_of_a_command_that_reads_is_a_document(scanned: Scanned, command: str) -> None:
    """This includes future commands: a command outside the list of writing commands is taken to read."""
    result = await scanned.run(*command.split(), *arguments_of(command, scanned), "--json")
    if command == "gate":  # one commit was analysed: there is nothing to compare with, which is never green
        assert result.code == 8
        assert "error" in json.loads(result.err)
        return
    if command == "repo diff":
        assert result.code == 3
        assert "error" in json.loads(result.err)
        return
    assert (result.code, result.err) == (0, "")
    if command not in {"repo export", "task export"}:  # without --output the export itself is written
        assert misfits("gctd", (*command.split(), "--json"), result.out) == []
    if command == "token list":  # no token was created
        assert result.json == []
        return
    if command == "task watch":
        assert [json.loads(line)["id"] for line in result.out.splitlines()] == [scanned.task]
    else:
        assert result.json


async def test_every_command_that_writes_is_one(scanned: Scanned) -> None:
    del scanned
    assert leaves(PROGRAM.group) >= WRITES | NO_DOCUMENT
    assert len(READS) >= 10


# Doctor


async def findings(scanned: Scanned, code: int, **environment: str) -> dict[str, Any]:
    """Return the findings of the doctor, by check."""
    result = await scanned.run("doctor", "--json", **environment)
    assert (result.code, result.err) == (code, "")
    return {one.pop("check"): one for one in result.json}


async def test_the_doctor_finds_a_system_that_works(scanned: Scanned) -> None:
    found = await findings(scanned, 0)
    well = {"server", "reads", "writes", "broker", "broker health", "limits", "sync interval", "leader", "streams", "queue"}
    well |= {"workers", "database", "read model", "git", "go", "engines"}
    assert {name for name, one in found.items() if one["status"] == "ok"} >= well
    assert all(one["detail"] and (one["fix"] or one["status"] == "ok") for one in found.values())
    table = await scanned.run("doctor")
    assert table.rows[0] == ["CHECK", "STATUS", "DETAIL", "FIX"]
    assert [row[0] for row in table.rows[1:]] == list(found)


async def test_the_doctor_warns_where_nobody_works_and_where_a_stream_was_changed(scanned: Scanned) -> None:
    async with plain_client(scanned.system.nats.url) as client:
        info = await client.jetstream().stream_info(JOBS)
        await client.jetstream().update_stream(info.config.evolve(description="changed by hand"))
    await scanned.system.post("/api/workers/worker-1/pause")

    async def is_paused() -> bool:
        beat = (await scanned.system.get("/api/workers"))[0]
        return bool(beat["status"] == "paused")

    await wait_until(is_paused)
    found = await wait_until(lambda: _warned(scanned), timeout=20)
    assert found["workers"]["fix"] == "gctd worker unpause ID"
    assert found["streams"]["status"] == "warn"
    assert "changed by hand" in found["streams"]["detail"]
    assert "projections streams apply" in found["streams"]["fix"]
    await scanned.system.post("/api/workers/worker-1/unpause")


async def _warned(scanned: Scanned) -> dict[str, Any] | None:
    found = await findings(scanned, 0)  # a warning is no failure
    return found if found["workers"]["status"] == "warn" else None


async def test_the_doctor_names_broken_parts(scanned: Scanned, tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    content = bytearray(scanned.system.database.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    broken.write_bytes(content)
    here = scanned.system.environment["GCTD_NATS_URL"]
    found = await findings(
        scanned, 1, GCTD_DATABASE_URL=f"sqlite:{broken}", GCTD_GO="/nowhere/go", GCTD_URL="http://127.0.0.1:1", GCTD_NATS_URL=here
    )
    failed = {name for name, one in found.items() if one["status"] == "fail"}
    assert failed >= {"server", "database", "go"}
    assert found["server"]["fix"].startswith("start it with: gctd serve")
    assert found["broker"]["status"] == "ok"


async def test_the_doctor_works_where_nothing_runs(scanned: Scanned, tmp_path: Path) -> None:
    nowhere = {"GCTD_URL": "http://127.0.0.1:1", "GCTD_NATS_URL": "nats://127.0.0.1:1"}
    with within(20):
        found = await findings(scanned, 1, GCTD_DATABASE_URL=f"sqlite:{tmp_path / 'none.db'}", **nowhere)
    assert {name for name, one in found.items() if one["status"] == "fail"} == {"server", "broker", "database"}
    unknown = {name for name, one in found.items() if one["status"] == "unknown"}
    assert unknown == {"reads", "writes", "log", "limits", "leader", "streams", "queue", "workers", "capabilities", "read model"}
    assert found["git"]["status"] == "ok"


async def test_the_doctor_names_parts_that_it_cannot_see(scanned: Scanned) -> None:
    found = await findings(scanned, 0, GCTD_MONITORING_URL="http://127.0.0.1:1")
    unknown = {name for name, one in found.items() if one["status"] == "unknown"}
    unknown -= {"log"}  # until the first pass over it
    assert unknown == {"broker health", "limits", "sync interval"}
    assert all("monitoring_url" in found[name]["fix"] for name in unknown)


async def test_the_doctor_fails_where_the_server_is_not_ready_or_hangs(scanned: Scanned) -> None:
    """The broker stores nothing any more, then the server hangs."""
    broker = psutil.Process(scanned.system.nats.pid)
    broker.rlimit(psutil.RLIMIT_FSIZE, (4096, psutil.RLIM_INFINITY))
    await scanned.system.status("/api/workers/worker-1/pause", "POST")
    found = await wait_until(lambda: _failed(scanned, "writes"), timeout=30)
    assert found["writes"]["status"] == found["broker health"]["status"] == "fail"
    assert "write error" in found["writes"]["detail"]
    assert found["reads"]["status"] == "ok"
    broker.rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
    await scanned.system.nats.restart()
    await wait_until(lambda: _ready(scanned), timeout=30)
    assert scanned.system.serve is not None
    pid = scanned.system.serve.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        found = await wait_until(lambda: _failed(scanned, "leader"), timeout=60)
        assert f"process {pid} applies events, and was not heard of" in found["leader"]["detail"]
        assert found["server"]["status"] == "fail"
    finally:
        os.kill(pid, signal.SIGCONT)


async def _failed(scanned: Scanned, check: str) -> dict[str, Any] | None:
    result = await scanned.run("doctor", "--json")
    found = {one.pop("check"): one for one in result.json}
    return found if found[check]["status"] == "fail" and result.code == 1 else None


async def _ready(scanned: Scanned) -> bool:
    return bool((await scanned.system.status("/readyz"))[0] == 200)


async def test_the_doctor_looks_at_the_system_that_it_is_pointed_at(scanned: Scanned, tmp_path: Path) -> None:
    """A wrong token, the address of another service, a server on another log: each is said."""
    async with pantry_system(tmp_path / "pantry") as other:
        found = await findings(scanned, 1, GCTD_URL=other.one.url)
        assert found["server"]["status"] == "fail"
        assert "is no tracker" in found["server"]["detail"]
    async with tracker_system(tmp_path / "tracker", GCTD_AUTH_TOKEN="the right token") as other_tracker:
        found = await findings(scanned, 1, GCTD_URL=other_tracker.url, GCTD_AUTH_TOKEN="the wrong token")
        assert "token" in found["server"]["detail"]
        assert "GCTD_AUTH_TOKEN" in found["server"]["fix"]
        found = await findings(scanned, 1, GCTD_URL=other_tracker.url, GCTD_AUTH_TOKEN="the right token")
        assert "works on another event stream" in found["server"]["detail"]
