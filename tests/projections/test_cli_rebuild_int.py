"""The commands that verify, rebuild and unpark, run as processes: with a service that has the database open, and without."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from eventlog import streams
from eventlog.declarations import load
from eventlog.desk import Desk
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.domain import worker
from projections.fold import compare, folded
from projections.maintenance import Maintenance, subject_of
from projections.migrations import Migrations
from projections.projector import Projector
from projections.sqlite import SQLiteStore
from projections.sqlite.copies import SQLiteCopies
from projections.tracker import MODEL
from tests.projections.test_cli_int import PROGRAM, append, environment, run
from tests.support.nats import plain_client
from tests.support.waiting import wait_until


@pytest_asyncio.fixture
async def log(nats_url: str) -> AsyncIterator[JetStreamLog]:
    async with Connection.open(nats_url, name="test") as connection:
        await streams.apply(connection, load().only(MODEL.stream))
        yield JetStreamLog(connection, MODEL.stream, MODEL.registry)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "read.db"


@pytest.fixture
def where(nats_url: str, path: Path) -> dict[str, str]:
    return {"GCTD_NATS_URL": nats_url, "GCTD_DATABASE_URL": f"sqlite:{path}"}


@asynccontextmanager
async def project(log: JetStreamLog, path: Path) -> AsyncIterator[SQLiteStore]:
    """The read model, brought to the end of the log, and open."""
    async with SQLiteStore(path) as store:
        await Migrations(store, MODEL).up()
        await Projector(log, store, MODEL).run(until=(await log.head()).last)
        yield store


@asynccontextmanager
async def serving(log: JetStreamLog, path: Path) -> AsyncIterator[tuple[SQLiteStore, Projector]]:
    """What a service does of it: the projector, and a desk for orders."""
    async with project(log, path) as store:
        projector = Projector(log, store, MODEL)
        maintenance = Maintenance(projector, store, SQLiteCopies(path), log, MODEL)
        desk = Desk(log.connection, subject_of(MODEL), maintenance.take)
        tasks = [asyncio.create_task(projector.run()), asyncio.create_task(desk.run())]
        await projector.wait_for((await log.head()).last, 10)
        try:
            yield store, projector
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def damage(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("UPDATE workers SET host = 'elsewhere' WHERE id = 'w1'").rowcount == 1


async def names(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT DISTINCT host FROM workers ORDER BY host")]


async def test_a_wrong_row_is_found_rebuilt_and_rolled_back_while_a_service_runs(
    log: JetStreamLog, path: Path, where: dict[str, str]
) -> None:
    """The service goes on throughout: it reads, and applies what is written, from the tables that are live."""
    for number in range(20):
        await append(log, f"w{number % 5}", number)
    async with serving(log, path) as (store, projector):

        async def hosts() -> list[object]:
            return [row["host"] for row in await store.fetch("SELECT DISTINCT host FROM workers ORDER BY host")]

        assert (await run("verify", **where)).code == 0
        damage(path)
        ended = await run("verify", "--json", **where)
        assert ended.code == 5
        assert ended.document["sequence"] == 20
        assert not ended.document["equal"]
        assert ended.document["difference"]["table"] == "workers"
        assert ended.document["difference"]["text"] == "workers 'w1': host is 'elsewhere', should be 'hé'"
        assert await hosts() == ["elsewhere", "hé"]
        ended = await run("rebuild", "workers", "--json", **where)
        assert (ended.code, ended.document) == (0, {"read_model": "tracker", "sequence": 20, "switched": True}), ended.err
        assert await hosts() == ["hé"]
        await append(log, "w9", 99)
        await projector.wait_for(21, 10)
        assert await store.fetch("SELECT pid FROM workers WHERE id = 'w9'") == [{"pid": 99}]
        assert (await run("verify", **where)).code == 0
        ended = await run("rollback", **where)
        assert ended.code == 0, ended.err
        assert await hosts() == ["elsewhere", "hé"]
        await append(log, "w9", 100)
        await projector.wait_for(22, 10)
        ended = await run("switch", **where)
        assert (ended.code, "not verified" in ended.err) == (5, True)
        assert (await run("resume", **where)).code == 0
        assert await hosts() == ["hé"]
        async with folded(log, MODEL, until=22) as fresh:
            assert await compare(store, fresh, MODEL) is None


async def test_without_a_service_the_commands_do_it_themselves(log: JetStreamLog, path: Path, where: dict[str, str]) -> None:
    """A copy that is not what was verified is refused, and stays beside; what is not there is said."""
    for number in range(6):
        await append(log, f"w{number % 3}", number)
    async with project(log, path):
        pass
    assert (await run("resume", **where)).code == 3
    assert (await run("rollback", **where)).code == 5
    assert (await run("rebuild", "nothing", **where)).code == 2
    assert (await run("rebuild", "--no-switch", **where)).code == 0
    new = path.with_name("read.db.1")
    damage(new)
    ended = await run("verify", "--copy", "new", **where)
    assert (ended.code, ended.lines) == (5, [["differs", "workers 'w1': host is 'elsewhere', should be 'hé'"]])
    ended = await run("switch", **where)
    assert (ended.code, "not what was verified" in ended.err) == (5, True)
    assert (await run("rebuild", **where)).code == 0
    assert path.with_name("read.db.live").exists()
    assert await names(new) == ["hé"]


async def test_a_rebuild_that_is_killed_is_gone_on_with(log: JetStreamLog, path: Path, where: dict[str, str]) -> None:
    """kill -9 in the middle: the live tables are not touched, and `resume` begins where the copy is."""
    for number in range(40):
        await append(log, f"w{number % 5}", number)
    async with project(log, path):
        pass
    command = [*PROGRAM, "rebuild", "--verbose"]
    process = await asyncio.to_thread(
        subprocess.Popen, command, env=environment(**where), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    new = path.with_name("read.db.1")

    def begun() -> bool:
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{new.as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("SELECT count(*) FROM schema_migrations").fetchone() == (1,))
        return False

    await wait_until(lambda: begun() or process.poll() is not None, timeout=30)
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    assert not path.with_name("read.db.live").exists() or process.returncode == 0
    if process.returncode != 0:
        ended = await run("resume", "--json", **where)
        assert (ended.code, ended.document["sequence"]) == (0, 40), ended.err
    assert (await run("verify", **where)).code == 0


async def test_what_is_parked_is_listed_and_taken_up(log: JetStreamLog, nats_url: str, path: Path, where: dict[str, str]) -> None:
    """By the service where there is one; 5 as long as something stays."""
    await append(log, "w1", 1)
    async with plain_client(nats_url) as client:
        await client.jetstream().publish(f"{worker.CATEGORY}.bad", b"{}")
    async with serving(log, path) as (_, projector):
        assert await asyncio.to_thread(lambda: len(projector.parked)) == 2
        ended = await run("parked", "--json", "--database", where["GCTD_DATABASE_URL"])
        assert ended.code == 0
        keys, workers = ended.document
        assert (keys["projection"], workers["projection"]) == ("command_keys", "workers")
        assert (workers["subject"], workers["sequence"], workers["waiting"]) == (f"{worker.CATEGORY}.bad", 2, 1)
        assert "UndecodableCommit" in workers["traceback"]
        titles, *rows = (await run("parked", "--traceback", "--database", where["GCTD_DATABASE_URL"])).lines
        assert titles[:4] == ["PROJECTION", "AGGREGATE", "SEQUENCE", "WAITING"]
        assert rows[1][:4] == ["workers", f"{worker.CATEGORY}.bad", "2", "1"]
        ended = await run("unpark", "--json", **where)
        assert (ended.code, len(ended.document["parked"])) == (5, 2)
        assert (await run("unpark", "--projection", "tasks", **where)).code == 3
    ended = await run("unpark", "--projection", "workers", **where)
    assert (ended.code, ended.lines) == (5, [["parked", f"workers {worker.CATEGORY}.bad"]])


async def test_the_database_of_a_service_that_does_not_answer_is_left_alone(
    log: JetStreamLog, path: Path, where: dict[str, str]
) -> None:
    await append(log, "w1", 1)
    async with project(log, path):
        ended = await run("rollback", **where)
        assert ended.code == 6
        assert re.search("in use by process [0-9]+", ended.err)
