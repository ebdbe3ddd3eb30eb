"""Commands on a log with one flipped bit: each fails with exit code 5 and names the sequence."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from eventlog.embedded.nats import EmbeddedServer
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.stores.sqlite import SQLiteStore
from tests.support.log.damage import flip
from tests.support.programs import warm
from tests.support.readside.ledger import MODEL, Book, Opened
from tests.support.readside.projecting import STREAM, ledger_log

pytestmark = pytest.mark.real

RECORDS = 6
MODEL_AT = "tests.support.readside.ledger:MODEL"


@pytest_asyncio.fixture
async def stopped(nats_server: EmbeddedServer, tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A stopped server. The tables have all records of its log but the last one."""
    async with ledger_log(nats_server.url) as log, SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, MODEL).up()
        book = Book(log)
        for number in range(1, RECORDS):
            await book.append(f"a{number}", Opened(f"owner {7770000 + number}"))
        await Projector(log, store, MODEL).run(until=RECORDS - 1)
        await book.append("last", Opened(f"owner {7770000 + RECORDS}"))
    await nats_server.stop()
    yield nats_server


@pytest.mark.parametrize("sequence", [1, 3, RECORDS], ids=["first", "middle", "last"])
async def test_a_record_that_cannot_be_read_makes_commands_fail(stopped: EmbeddedServer, tmp_path: Path, sequence: int) -> None:
    """Also if the tables have not reached it. The broker is there, so nothing asks whether it runs."""
    flip(stopped.data_dir, STREAM.name, b"%d" % (7770000 + sequence))
    await stopped.start()
    tables, log = ("--database", f"sqlite:{tmp_path / 'read.db'}"), ("--nats-url", stopped.url, "--model", MODEL_AT)
    rebuild = ("rebuild", MODEL_AT, "--nats-url", stopped.url, *tables)
    for words in (("verify", *log, *tables), ("verify", "--json", *log, *tables), rebuild, ("events", *log), ("scrub", *log)):
        done = await asyncio.to_thread(warm.run, "projections", *words, environment=os.environ, seconds=60)
        said = done.stdout + done.stderr
        assert (done.returncode, f"sequence {sequence}" in said) == (5, True), (words, said)
        assert "is it running" not in said
        assert "equal to a fold" not in said
