"""The command line against a running system: `--json` of every command that reads, and `gctd doctor`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gctd.cli.root import PROGRAM
from gctd.wiring.broker import JOBS
from tests.support.log.nats import plain_client
from tests.support.programs.cli import Result, gctd
from tests.support.programs.commands import leaves
from tests.support.tracker import go_repo as gorepo
from tests.support.tracker.go_repo import GoRepo
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITES = {
    *("repo add", "repo analyze", "repo rescore", "repo config set", "repo config rm"),
    *("task cancel", "task retry", "task delete", "task hide-all", "worker pause", "worker unpause"),
}
"""Commands that change something; all others read."""

NO_DOCUMENT = {"serve", "completion"}
"""A program that serves, and a script for a shell."""


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
    """Also of commands that come to be: what is not among those that write is taken to read."""
    result = await scanned.run(*command.split(), *arguments_of(command, scanned), "--json")
    assert (result.code, result.err) == (0, "")
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
    """What the doctor says, by check."""
    result = await scanned.run("doctor", "--json", **environment)
    assert (result.code, result.err) == (code, "")
    return {one.pop("check"): one for one in result.json}


async def test_the_doctor_finds_a_system_that_works(scanned: Scanned) -> None:
    found = await findings(scanned, 0)
    well = {"server", "broker", "streams", "queue", "workers", "database", "read model", "git", "go", "engines"}
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


async def test_the_doctor_says_what_is_broken(scanned: Scanned, tmp_path: Path) -> None:
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
    began = asyncio.get_running_loop().time()
    found = await findings(scanned, 1, GCTD_DATABASE_URL=f"sqlite:{tmp_path / 'none.db'}", **nowhere)
    assert asyncio.get_running_loop().time() - began < 20
    assert {name for name, one in found.items() if one["status"] == "fail"} == {"server", "broker", "database"}
    assert "streams" not in found
    assert found["git"]["status"] == "ok"
