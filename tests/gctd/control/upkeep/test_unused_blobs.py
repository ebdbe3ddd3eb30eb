"""The tracker removes the bodies that only tasks of removed repositories name. A pass that is in doubt removes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import attrs
import pytest
import pytest_asyncio

from eventlog import BlobMissing, Unavailable
from eventlog.admin.declarations import load_declarations
from eventlog.admin.reconcile import apply_declarations
from eventlog.commands import Commands
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.broker.blobs import BlobRef, BlobStore, Removed
from gctd.control.upkeep.unused_blobs import UnusedBlobs
from gctd.domain.analysis import Blob, analysis_id
from gctd.domain.registry import REGISTRY
from gctd.domain.task import TASK
from gctd.domain.task.commands import CancelTask, CompleteTask, DropTask, QueueTask, StartTask
from gctd.domain.task.events import AttemptLog
from gctd.engines.functions.sources import KeptFile, KeptSources, encode_sources
from tests.gctd.domain.test_tasks import ANALYSIS
from tests.support.tracker.queued import queued_task

pytestmark = pytest.mark.real

GRACE = 0.0
"""Seconds: all that is stored is old at once."""


@attrs.frozen
class Site:
    """A log, a blob store and a pass."""

    connection: Connection
    log: JetStreamLog
    commands: Commands
    blobs: BlobStore

    async def queue(self, id_: str, repo: str) -> None:
        """Queue a task, and start it."""
        now = datetime.now(UTC)
        queued = queued_task(now, id_, repo_id=repo, repo_url=f"https://example.com/{repo}")
        await self.commands.execute(TASK, id_, QueueTask(queued))
        await self.commands.execute(TASK, id_, StartTask(worker="w", session="s", at=now))

    async def completed(self, id_: str, repo: str, **bodies: bytes) -> dict[str, BlobRef]:
        """A task with stored bodies: `report`, `profile`, `tests` and `log`, each with its link as a worker makes it."""
        await self.queue(id_, repo)
        stored = {name: await self.blobs.put(body) for name, body in bodies.items()}
        if "source" in stored:  # the list of the kept source names each file
            files = KeptSources(files={"a.go": KeptFile(digest="f" * 64, size=1, blob=stored["source"].digest)})
            stored["sources"] = await self.blobs.put(encode_sources(files))
        parts = {name: Blob(digest=ref.digest, size=ref.size) for name, ref in stored.items() if name != "log"}
        log = stored.get("log")
        kept = None if log is None else AttemptLog(digest=log.digest, size=log.size, cut=0, cut_at=log.size)
        analysis = attrs.evolve(
            ANALYSIS, report=parts["report"], profile=parts.get("profile"), tests=parts.get("tests"), sources=parts.get("sources")
        )
        command = CompleteTask(attempt=1, session="s", analysis=analysis, at=datetime.now(UTC), log=kept)
        await self.commands.execute(TASK, id_, command)
        if "profile" in stored:
            await self.blobs.link(f"coverage/{repo}/./{id_}.out", stored["profile"])
        made = await self.blobs.put(f"analysis of {id_}".encode())
        await self.blobs.link(f"analyses/{analysis_id(repo, '.')}/{id_}", made)
        return stored | {"made": made}

    async def drop(self, id_: str) -> None:
        """As the removal of its repository does."""
        await self.commands.execute(TASK, id_, DropTask(at=datetime.now(UTC)))

    async def has(self, ref: BlobRef) -> bool:
        """Whether the bucket has a body."""
        try:
            await BlobStore(self.connection, "gctd-blobs").get(ref.digest)
        except BlobMissing:
            return False
        return True

    async def swept(self) -> Removed:
        """Make a pass."""
        return await UnusedBlobs(self.log, self.blobs, grace=GRACE).remove()


@pytest_asyncio.fixture
async def site(nats_url: str) -> AsyncIterator[Site]:
    async with Connection.open(nats_url, name="test") as connection:
        await apply_declarations(connection, load_declarations().only("GCTD", "gctd-blobs"))
        log = JetStreamLog(connection, "GCTD", REGISTRY)
        yield Site(connection, log, Commands(log), BlobStore(connection, "gctd-blobs"))


async def test_only_the_bodies_of_removed_repositories_go(site: Site) -> None:
    bodies = {"report": b"r1", "profile": b"shared", "tests": b"t1", "log": b"l1"}
    gone = await site.completed("task-1", "a", **bodies)
    stays = await site.completed("task-2", "b", report=b"r2", profile=b"shared", tests=b"t2", log=b"l2")
    assert await site.swept() == Removed()
    await site.drop("task-1")
    found = await site.swept()
    assert (found.bodies, found.names) == (4, 2), (
        "report, tests, log and the analysis by its key; the profile is that of task-2 too"
    )
    assert [await site.has(ref) for ref in gone.values()] == [False, True, False, False, False]
    assert all([await site.has(ref) for ref in stays.values()])
    assert await site.blobs.resolve("coverage/a/./task-1.out") is None
    assert await site.blobs.resolve("coverage/b/./task-2.out") == stays["profile"]
    assert await site.swept() == Removed()


async def test_kept_source_goes_with_its_repository_and_stays_with_another_one_that_has_the_same_file(site: Site) -> None:
    one = await site.completed("task-1", "a", report=b"r1", source=b"file of both")
    two = await site.completed("task-2", "b", report=b"r2", source=b"file of both")
    three = await site.completed("task-3", "c", report=b"r3", source=b"another file")
    await site.drop("task-1")
    assert (await site.swept()).bodies == 2, "the report, and the analysis by its key; the list of files is the same in both"
    assert [await site.has(one["source"]), await site.has(two["sources"]), await site.has(three["source"])] == [True] * 3
    await site.drop("task-2")
    assert (await site.swept()).bodies == 4
    assert [await site.has(two["source"]), await site.has(two["sources"]), await site.has(three["source"])] == [
        False,
        False,
        True,
    ]


async def test_a_repository_that_came_again_keeps_only_the_new_names(site: Site) -> None:
    old = await site.completed("task-1", "a", report=b"r1")
    await site.drop("task-1")
    new = await site.completed("task-2", "a", report=b"r2")
    found = await site.swept()
    assert (found.bodies, found.names) == (2, 1)
    assert not any([await site.has(ref) for ref in old.values()])
    assert all([await site.has(ref) for ref in new.values()])


async def test_bodies_of_a_running_attempt_stay_until_its_end(site: Site) -> None:
    """A worker stores a body before it reports it, and the report may take long while the broker is away."""
    await site.queue("task-1", "a")
    ref = await site.blobs.put(b"not reported yet")
    assert await site.swept() == Removed()
    assert await site.has(ref)
    await site.commands.execute(TASK, "task-1", CancelTask(at=datetime.now(UTC)))
    assert (await site.swept()).bodies == 1


async def test_a_task_that_cannot_be_read_keeps_everything(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = await site.blobs.put(b"unused")
    await site.completed("task-1", "a", report=b"r1")
    ids = site.log.ids

    async def and_one_more(category: str) -> list[str]:
        return [*await ids(category), "task-2"]

    with monkeypatch.context() as damaged:
        damaged.setattr(site.log, "ids", and_one_more)
        with pytest.raises(Unavailable, match=r"gctd\.task\.task-2"):
            await site.swept()
    assert await site.has(ref)
    assert (await site.swept()).bodies == 1
