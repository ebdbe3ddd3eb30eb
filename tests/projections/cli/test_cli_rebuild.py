"""The commands that verify, rebuild and unpark, run as processes: with a service that has the database open, and without."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load_declarations
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from eventlog.jetstream.requests import RequestServer
from eventlog.support.chain import GUARD
from gctd.domain import worker
from gctd.readmodel import MODEL
from projections.errors import ProjectionError
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.operations import OperationHandler, subject_of
from projections.rebuild.verify import compare, replayed_copy
from projections.store import Copies, CopyPart
from projections.stores.databases import copies_at, reader_at, store_at
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore
from tests.projections.cli.test_cli import PROGRAM, append, environment, run
from tests.support.log.nats import plain_client
from tests.support.readside.postgres import either_database
from tests.support.readside.tables import change
from tests.support.waiting import wait_until

pytestmark = pytest.mark.real

EitherStore = SQLiteStore | PostgresStore


@pytest_asyncio.fixture
async def log(nats_url: str) -> AsyncIterator[JetStreamLog]:
    async with Connection.open(nats_url, name="test") as connection:
        await streams.apply_declarations(connection, load_declarations().only(MODEL.stream))
        yield JetStreamLog(connection, MODEL.stream, MODEL.registry)


@pytest.fixture
def where(nats_url: str, database_url: str) -> dict[str, str]:
    return {"GCTD_NATS_URL": nats_url, "GCTD_DATABASE_URL": database_url}


@asynccontextmanager
async def project(log: JetStreamLog, database_url: str) -> AsyncIterator[EitherStore]:
    """The read model, brought to the end of the log, and open."""
    async with store_at(database_url) as store:
        await Migrations(store, MODEL).up()
        await Projector(log, store, MODEL).run(until=(await log.head()).last)
        yield store


@asynccontextmanager
async def serving(log: JetStreamLog, database_url: str) -> AsyncIterator[tuple[EitherStore, Projector]]:
    """Run the projector and the handler of orders, as a service does."""
    async with project(log, database_url) as store:
        projector = Projector(log, store, MODEL)
        operations = OperationHandler(projector, store, copies_at(database_url), log, MODEL)
        requests = RequestServer(log.connection, subject_of(MODEL), operations.take)
        tasks = [asyncio.create_task(projector.run()), asyncio.create_task(requests.run())]
        await projector.wait_for((await log.head()).last, 60)
        try:
            yield store, projector
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


ELSEWHERE = "UPDATE workers SET host = 'elsewhere' WHERE id = 'w1'"


async def test_a_wrong_row_is_found_rebuilt_and_rolled_back_while_a_service_runs(
    log: JetStreamLog, database_url: str, where: dict[str, str]
) -> None:
    """The service continues throughout: it reads from the live tables, and applies new events to them."""
    for number in range(20):
        await append(log, f"w{number % 5}", number)
    async with serving(log, database_url) as (store, projector):

        async def hosts() -> list[object]:
            return [row["host"] for row in await store.fetch("SELECT DISTINCT host FROM workers ORDER BY host")]

        assert (await run("verify", **where)).code == 0
        await change(database_url, ELSEWHERE)
        ended = await run("verify", "--json", **where)
        assert ended.code == 5
        assert ended.document["sequence"] == 20
        assert not ended.document["equal"]
        assert ended.document["difference"]["table"] == "workers"
        assert ended.document["difference"]["text"] == "workers 'w1': host is 'elsewhere', should be 'hé'"
        assert await hosts() == ["elsewhere", "hé"]
        ended = await run("rebuild", "workers", "--json", **where)
        assert (ended.code, ended.document) == (
            0,
            {"read_model": "tracker", "sequence": 20, "switched": True, "log": [], "parked": []},
        ), ended.err
        assert await hosts() == ["hé"]
        await append(log, "w9", 99)
        await projector.wait_for(21, 60)
        assert await store.fetch("SELECT pid FROM workers WHERE id = 'w9'") == [{"pid": 99}]
        assert (await run("verify", **where)).code == 0
        ended = await run("rollback", **where)
        assert ended.code == 0, ended.err
        assert await hosts() == ["elsewhere", "hé"]
        await append(log, "w9", 100)
        await projector.wait_for(22, 60)
        ended = await run("switch", **where)
        assert (ended.code, "not verified" in ended.err) == (5, True)
        assert (await run("resume", **where)).code == 0
        assert await hosts() == ["hé"]
        async with replayed_copy(log, MODEL, until=22) as fresh:
            assert await compare(store, fresh, MODEL) is None


@either_database(pytest.mark.long)
async def test_without_a_service_the_commands_do_it_themselves(
    log: JetStreamLog, database_url: str, where: dict[str, str]
) -> None:
    """A copy that differs from its verification is refused, and remains. A missing copy is reported."""
    for number in range(6):
        await append(log, f"w{number % 3}", number)
    async with project(log, database_url):
        pass
    assert (await run("resume", **where)).code == 3
    assert (await run("rollback", **where)).code == 5
    assert (await run("rebuild", "nothing", **where)).code == 2
    assert (await run("rebuild", "--no-switch", **where)).code == 0
    await change(database_url, ELSEWHERE, CopyPart.NEW)
    ended = await run("verify", "--copy", "new", **where)
    assert (ended.code, ended.lines) == (5, [["differs", "workers 'w1': host is 'elsewhere', should be 'hé'"]])
    ended = await run("switch", **where)
    assert (ended.code, "has changed since it was verified" in ended.err) == (5, True)
    assert (await run("rebuild", **where)).code == 0
    assert await copies_at(database_url).there() == [CopyPart.OLD]
    async with reader_at(database_url) as reader:
        assert await reader.fetch("SELECT DISTINCT host FROM workers") == [{"host": "hé"}]
    assert (await run("verify", **where)).code == 0


async def begun(copies: Copies) -> bool:
    """Whether a copy has a part of its tables."""
    if CopyPart.NEW in await copies.there():
        copy = copies.reader(CopyPart.NEW)
        try:
            await copy.open()
            return (await copy.schema()).version > 0
        except ProjectionError:
            return False
        finally:
            await copy.close()
    return False


async def test_a_rebuild_that_is_killed_is_gone_on_with(log: JetStreamLog, database_url: str, where: dict[str, str]) -> None:
    """kill -9 in the middle: the live tables are not touched, and `resume` begins where the copy is."""
    for number in range(40):
        await append(log, f"w{number % 5}", number)
    async with project(log, database_url):
        pass
    command = [*PROGRAM, "rebuild", "--verbose"]
    process = await asyncio.to_thread(
        subprocess.Popen, command, env=environment(**where), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    copies = copies_at(database_url)

    async def begun_or_ended() -> bool:
        return process.poll() is not None or await begun(copies)

    await wait_until(begun_or_ended, timeout=60)
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    assert await copies.there() == [CopyPart.NEW if process.returncode else CopyPart.OLD]
    if process.returncode != 0:
        ended = await run("resume", "--json", **where)
        assert (ended.code, ended.document["sequence"]) == (0, 40), ended.err
    assert (await run("verify", **where)).code == 0


@either_database(pytest.mark.long)
async def test_what_is_parked_is_listed_and_taken_up(
    log: JetStreamLog, nats_url: str, database_url: str, where: dict[str, str]
) -> None:
    """The service does it if one runs. Exit code 5 while an aggregate stays parked."""
    await append(log, "w1", 1)
    async with plain_client(nats_url) as client:
        await client.jetstream().publish(f"{worker.CATEGORY}.bad", b"{}", headers={GUARD: "0"})
    async with serving(log, database_url) as (_, projector):
        assert await asyncio.to_thread(lambda: len(projector.parked)) == 2
        ended = await run("verify", "--json", **where)
        assert (ended.code, ended.document["equal"], ended.document["parked"]) == (5, False, 2)
        assert any("workers gctd.worker.bad: sequence 2" in line for line in ended.document["parked_aggregates"])
        assert any("sequence 2, gctd.worker.bad: it cannot be decoded" in line for line in ended.document["log"])
        ended = await run("rebuild", "--no-switch", **where)
        assert (ended.code, [line[0] for line in ended.lines]) == (5, ["log", "parked", "parked"])
        ended = await run("parked", "--json", "--database", where["GCTD_DATABASE_URL"])
        assert ended.code == 0
        keys, workers = ended.document
        assert (keys["projection"], workers["projection"]) == ("command_keys", "workers")
        assert (workers["subject"], workers["sequence"], workers["waiting"]) == (f"{worker.CATEGORY}.bad", 2, 1)
        assert "it cannot be decoded" in workers["traceback"]
        titles, *rows = (await run("parked", "--traceback", "--database", where["GCTD_DATABASE_URL"])).lines
        assert titles[:4] == ["PROJECTION", "AGGREGATE", "SEQUENCE", "WAITING"]
        assert rows[1][:4] == ["workers", f"{worker.CATEGORY}.bad", "2", "1"]
        ended = await run("unpark", "--json", **where)
        assert (ended.code, len(ended.document["parked"])) == (5, 2)
        assert (await run("unpark", "--projection", "tasks", **where)).code == 3
    ended = await run("unpark", "--projection", "workers", **where)
    assert (ended.code, ended.lines) == (5, [["parked", f"workers {worker.CATEGORY}.bad"]])


async def test_the_database_of_a_service_that_does_not_answer_is_left_alone(
    log: JetStreamLog, database_url: str, where: dict[str, str]
) -> None:
    await append(log, "w1", 1)
    async with project(log, database_url):
        ended = await run("rollback", **where)
        assert ended.code == 6
        assert re.search("in use by process [0-9]+|is in use: another process", ended.err)
