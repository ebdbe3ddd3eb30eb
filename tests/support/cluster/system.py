"""A cluster as `gctd up --cluster` runs it, in a separate process. Its parts may be killed, and return."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs

from eventlog.errors import Unavailable
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from projections.model import ReadModel
from projections.rebuild.verify import compare, replayed_copy
from projections.stores.databases import store_at
from tests.support.programs.supervised import Supervised, supervised
from tests.support.waiting import wait_until

SERVERS = ("nats-1", "nats-2", "nats-3")


@attrs.define
class Cluster:
    """The running cluster: `ready` is the first content of its ready file. Process ids are current."""

    running: Supervised
    ready: dict[str, Any]

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the parts that run."""
        pids: dict[str, int] = json.loads(self.running.ready_file.read_bytes())["pids"]
        return pids

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a command reaches it."""
        env: dict[str, str] = self.ready["env"]
        return env

    def kill(self, part: str) -> int:
        """kill -9 of a part; its process id."""
        pid = self.pids[part]
        os.kill(pid, signal.SIGKILL)
        return pid

    async def back(self, part: str, killed: int) -> None:
        """Wait until a part that was killed runs again, and is ready."""
        await wait_until(lambda: self.pids.get(part, killed) != killed, timeout=90, every=0.05)

    async def whole(self) -> None:
        """Wait until every stream has a leader, and its other servers all that it has: then any one may be missing."""

        async def is_whole() -> bool:
            async with self.connected() as connection:
                try:
                    streams = (await call(connection, "STREAM.LIST"))["streams"]
                except Unavailable:
                    return False
            clusters = [stream["cluster"] for stream in streams]
            return all(each.get("leader") and [one["current"] for one in each["replicas"]] == [True, True] for each in clusters)

        await wait_until(is_whole, timeout=90, every=0.2)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """A connection to its nats-servers."""
        async with Connection.open(self.environment["GCTD_NATS_URL"], name="test") as connection:
            yield connection

    async def leader(self, stream: str) -> str:
        """The nats-server that leads a stream."""
        async with self.connected() as connection:
            while True:
                leader = (await call(connection, f"STREAM.INFO.{stream}"))["cluster"].get("leader")
                if leader:
                    return str(leader)
                await asyncio.sleep(0.1)

    async def leading(self, name: str, urls: list[str]) -> str:
        """Of the services `<name>-1`, `<name>-2`, the one that applies events."""

        async def found() -> str:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
                for number, url in enumerate(urls, start=1):
                    async with http.get(f"{url}/metrics") as answer:
                        if "projection_leading 1.0" in await answer.text():
                            return f"{name}-{number}"
            return ""

        return await wait_until(found, timeout=60, every=0.1)

    async def difference_from_a_fold(self, model: ReadModel, database: str) -> str | None:
        """Return the first difference between the tables, when they have all of the log, and a clean fold of it, or None."""
        async with self.connected() as connection, store_at(database) as live:
            log = JetStreamLog(connection, model.stream, model.registry)
            until = (await log.head()).last

            async def applied() -> bool:
                return {checkpoint.sequence for checkpoint in (await live.checkpoints()).values()} == {until}

            await wait_until(applied, timeout=60, every=0.05)
            async with replayed_copy(log, model, until=until) as fresh:
                found = await compare(live, fresh, model)
            return None if found is None else str(found)


@contextmanager
def cluster_directory() -> Iterator[Path]:
    """A directory into which others can go, as the Postgres of a cluster that root runs has to."""
    directory = Path(tempfile.mkdtemp(prefix="cluster-"))
    os.chmod(directory, 0o755)  # noqa: PTH101 - of a directory that is ours
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@asynccontextmanager
async def clustered(directory: Path, *options: str, **environment: str) -> AsyncIterator[Cluster]:
    """Run a cluster until it is ready, on free ports. At the end no process or file of it remains."""
    common = ["--data-dir", str(directory / "data"), "--ready-file", str(directory / "ready.json"), "--port-base", "0"]
    command = [sys.executable, "-m", "gctd", "up", "--cluster", *common, *options]
    with supervised(command, directory / "console.txt", {**os.environ, **environment}) as running:
        yield Cluster(running, await running.ready(within=150))
