"""A whole tracker for tests: a real nats-server, `gctd serve` and workers as processes that may be killed and paused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs

from eventlog.commit import AggregateId
from eventlog.embedded.nats import EmbeddedServer, free_port
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.domain.registry import REGISTRY
from gctd.readmodel import MODEL
from projections.projector.projector import Projector
from projections.rebuild.verify import compare, replayed_copy
from projections.stores.sqlite import SQLiteStore
from tests.support import ROOT
from tests.support.pace import slowness
from tests.support.programs import warm
from tests.support.tracker import go_library
from tests.support.waiting import wait_until

REAL_WORKER = ("gctd", "worker")
FAKE_WORKER = ("tests.support.tracker.fake_work",)


@attrs.define(eq=False)
class Program:
    """A process of the system, and the file that its output goes to."""

    process: warm.AnyProcess
    log: Path

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def stop(self, timeout: float = 15.0) -> int:  # noqa: ASYNC109 - the bound of a promise
        """SIGTERM; gives the exit code."""
        if self.process.returncode is None:
            self.process.terminate()
        async with asyncio.timeout(timeout * slowness()):
            return await self.process.wait()


class TrackerSystem:
    """The system. Every file is in `directory`; settings of all programs can be added in `environment`."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.nats = EmbeddedServer(directory / "nats")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = directory / "gctd.db"
        self._added = environment
        self.programs: list[Program] = []
        self.serve: Program | None = None
        self.http: aiohttp.ClientSession

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the programs and of their command line."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("GCTD_")},
            "GCTD_URL": self.url,
            "GCTD_NATS_URL": self.nats.url,
            "GCTD_MONITORING_URL": self.nats.monitoring_url,
            "GCTD_DATABASE_URL": f"sqlite:{self.database}",
            "GCTD_HOST": "127.0.0.1",
            "GCTD_PORT": str(self.port),
            "GCTD_CACHE_DIRECTORY": str(self.directory / "cache"),
            "GCTD_ALLOW_LOCAL": "true",
            "GCTD_PRESENCE_TTL": "3s",
            "GCTD_RETRY_DELAY": "200ms",
            "PYTHONPATH": str(ROOT),
            **self._added,
        }

    def remove_database(self) -> None:
        """Remove the read model of the stopped control plane."""
        for file in self.directory.glob(f"{self.database.name}*"):
            file.unlink()

    async def start(self, name: str, *arguments: str, **environment: str) -> Program:
        """Start a module as a program; it ends with this process at the latest."""
        log = self.directory / f"{name}.log"
        with log.open("ab") as output:
            process = await warm.start(*arguments, environment={**self.environment, **environment}, output=output)
        program = Program(process, log)
        self.programs.append(program)
        return program

    async def start_serve(self) -> Program:
        """Start the control plane and wait until it is ready."""
        self.serve = await self.start("serve", "gctd", "serve")
        await self.ready()
        return self.serve

    async def start_worker(self, number: int = 1, *, program: tuple[str, ...] = FAKE_WORKER, **environment: str) -> Program:
        """Start a worker `worker-<number>` and wait until it is present."""
        if program == REAL_WORKER:
            await go_library.give(self.directory / "cache")
        worker = await self.begin_worker(number, program=program, **environment)
        await wait_until(lambda: self._is_present(f"worker-{number}", worker), timeout=30, every=0.05)
        return worker

    async def begin_worker(self, number: int = 1, *, program: tuple[str, ...] = FAKE_WORKER, **environment: str) -> Program:
        """Start a worker `worker-<number>`, which may have ended before it is seen to be present."""
        id_ = f"worker-{number}"
        return await self.start(id_, *program, GCTD_WORKER_ID=id_, **environment)

    async def _is_present(self, id_: str, worker: Program) -> bool:
        assert worker.process.returncode is None, worker.log.read_text()[-3000:]
        workers = await self.get("/api/workers")
        return any(w["id"] == id_ and w["pid"] == worker.process.pid and w["status"] != "gone" for w in workers)

    async def ready(self, timeout: float = 60.0) -> None:  # noqa: ASYNC109 - the bound of a promise
        """Wait until `/readyz` reports that it is ready."""

        async def is_ready() -> bool:
            assert self.serve is None or self.serve.process.returncode is None, self.serve.log.read_text()[-3000:]
            return (await self.status("/readyz"))[0] == 200

        await wait_until(is_ready, timeout=timeout, every=0.05)

    # The API

    async def status(self, path: str, method: str = "GET", **options: Any) -> tuple[int, Any]:
        """Status and decoded JSON of an answer; status 0 if there was none."""
        try:
            async with self.http.request(method, self.url + path, **options) as answer:
                text = await answer.text()
                return answer.status, json.loads(text) if text and "json" in answer.content_type else text
        except (aiohttp.ClientError, TimeoutError):
            return 0, None

    async def get(self, path: str) -> Any:
        """The JSON of an answer that succeeds."""
        status, document = await self.status(path)
        assert status == 200, (path, status, document)
        return document

    async def post(self, path: str, document: Any = None, **headers: str) -> Any:
        """The JSON of an answer that succeeds."""
        status, answer = await self.status(path, "POST", json=document, headers=headers)
        assert status in {200, 201, 202, 204}, (path, status, answer)
        return answer

    async def register(self, url: str) -> Any:
        """Register a repository and wait until it is ready."""
        await self.post("/api/repos", {"repo_url": url})

        async def ready() -> Any:
            repo = await self.get(f"/api/repos/status?url={url}")
            assert repo["Status"] != "error", repo["StatusReason"]
            return repo if repo["Status"] == "ready" else None

        return await wait_until(ready, timeout=60, every=0.02)

    async def until_task(self, id_: str, *statuses: str, timeout: float = 120.0) -> Any:  # noqa: ASYNC109 - the bound of a promise
        """Wait until a task is in one of these states. The error after the timeout names its state and the reason."""
        seen: list[Any] = [None]

        async def reached() -> Any:
            status, task = await self.status(f"/api/tasks/{id_}")
            seen[0] = (task["status"], task["reason"]) if status == 200 else status
            return task if status == 200 and task["status"] in statuses else None

        try:
            return await wait_until(reached, timeout=timeout, every=0.02)
        except AssertionError as error:
            raise AssertionError(f"the task is {seen[0]}, not {' or '.join(statuses)}") from error

    async def until_repo(self, url: str, status: str) -> Any:
        """Wait until a repository is in this state."""

        async def reached() -> Any:
            repo = await self.get(f"/api/repos/status?url={url}")
            return repo if repo["Status"] == status else None

        return await wait_until(reached, timeout=30, every=0.02)

    async def until_worker(self, id_: str, status: str) -> None:
        """Wait until a worker has received a pause or its end."""

        async def heard() -> bool:
            return any(worker["id"] == id_ and worker["status"] == status for worker in await self.get("/api/workers"))

        await wait_until(heard, timeout=30, every=0.05)

    # The log and the tables

    @asynccontextmanager
    async def log(self) -> AsyncIterator[JetStreamLog]:
        """The event log itself."""
        async with Connection.open(self.nats.url, name="test") as connection:
            yield JetStreamLog(connection, "GCTD", REGISTRY)

    async def events(self, subject: str | None = None) -> list[Any]:
        """Return all events of the log, or of one aggregate, in order."""
        async with self.log() as log:
            if subject is not None:
                return [event async for commit in log.history(AggregateId.parse(subject)) for event in commit.events]
            head = await log.head()
            return [
                event async for commits in log.follow(after=0, until=head.last) for commit in commits for event in commit.events
            ]

    async def difference_from_a_fold(self) -> str | None:
        """Promise I3: return the difference between the tables of the stopped control plane and a fold of the log, or None."""
        async with self.log() as log, SQLiteStore(self.database) as live:
            head = await log.head()
            await Projector(log, live, MODEL).run(until=head.last)
            async with replayed_copy(log, MODEL, until=head.last) as fresh:
                found = await compare(live, fresh, MODEL)
            return None if found is None else str(found)

    def last_lines(self) -> str:
        """Return the end of each program's output."""
        files = {program.log for program in self.programs}
        return "\n".join(f"{file.name}: …{file.read_text(errors='replace')[-2000:]}" for file in sorted(files))

    async def end(self) -> None:
        """Kill what is still running."""
        for program in self.programs:
            if program.process.returncode is None:
                program.signal(signal.SIGCONT)
            await program.kill()


@asynccontextmanager
async def tracker_system(directory: Path, **environment: str) -> AsyncIterator[TrackerSystem]:
    """A system with its control plane running, and no worker yet."""
    system = TrackerSystem(directory, environment)
    async with system.nats, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as system.http:
        try:
            await system.start_serve()
            yield system
        except AssertionError as error:
            error.add_note(system.last_lines())
            raise
        finally:
            await system.end()
