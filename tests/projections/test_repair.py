"""`projections repair` on a real server with flipped bits: from a backup, and with a tombstone. Afterwards all is whole again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from structlog.testing import capture_logs

from eventlog import AggregateDamaged, Commands, Context
from eventlog.admin import repair
from eventlog.admin.backup import back_up, restore
from eventlog.admin.diagnosis import Witness, backup_source
from eventlog.admin.repair import StreamRepair
from eventlog.admin.scrub import LogScrubber
from eventlog.embedded.nats import EmbeddedServer
from eventlog.jetstream.api import MessageReader
from eventlog.jetstream.append import CostEstimate
from eventlog.jetstream.log import JetStreamLog
from eventlog.support.chain import FOLLOWS, GUARD
from projections.keys import CommandKeys
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import audit
from projections.stores.sqlite import SQLiteStore
from tests.support.log.damage import flip
from tests.support.programs import warm
from tests.support.readside.ledger import ACCOUNT, CATEGORY, MODEL, REGISTRY, Booked, Opened
from tests.support.readside.projecting import STREAM, assert_equals_a_fold, ledger_log, proven

pytestmark = pytest.mark.real

MODEL_AT = "tests.support.readside.ledger:MODEL"
BY = ("--tombstone", "--operator", "ann", "--reason", "a bad disk")


@attrs.frozen
class Place:
    """A server, tables and a backup."""

    server: EmbeddedServer
    directory: Path

    @property
    def backup(self) -> Path:
        return self.directory / "backup"

    @property
    def database(self) -> Path:
        return self.directory / "read.db"

    async def run(self, *command: object, code: int | None = 0) -> Any:
        address = () if "rebuild" in command else ("--model", MODEL_AT)
        words = [*map(str, command), *address, "--nats-url", self.server.url, "--json"]
        if not {"scrub", "events"} & set(command):
            words += ["--database", f"sqlite:{self.database}"]
        environment = {**os.environ, "NO_COLOR": "1"}
        done = await asyncio.to_thread(warm.run, "projections", *words, environment=environment, seconds=120)
        assert code is None or done.returncode == code, done.stderr
        return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stderr

    async def damage(self, needle: bytes) -> None:
        await self.server.stop()
        flip(self.server.data_dir, STREAM.name, needle)
        await self.server.start()

    @asynccontextmanager
    async def commands(self) -> AsyncIterator[tuple[Commands, JetStreamLog]]:
        """A service on the tables: up to date, and running."""
        async with SQLiteStore(self.database) as store, ledger_log(self.server.url) as log:
            await Migrations(store, MODEL).up()
            projector = Projector(log, store, MODEL)
            running = asyncio.create_task(projector.run())
            try:
                yield Commands(log, keys=CommandKeys(projector, store)), log
                await projector.wait_for((await log.head()).last, 20)
            finally:
                running.cancel()
                await asyncio.wait([running])

    async def check_whole(self) -> None:
        """The log is whole, the tables equal it, and the scrubber finds nothing."""
        async with SQLiteStore(self.database) as store, ledger_log(self.server.url) as log:
            await assert_equals_a_fold(log, store)
            scrubbed = await LogScrubber(MessageReader(log.connection, STREAM.name), REGISTRY, log.head).scrub()
            assert scrubbed.found == ()
            marks, end = await store.marks(STREAM.name), (await log.head()).last
            digest = (await store.checkpoints())["accounts"].digest
            assert (await audit(log, MODEL, until=end, marks=proven(marks, end, digest))).problems == []


@pytest.fixture
def place(nats_server: EmbeddedServer, tmp_path: Path) -> Place:
    return Place(nats_server, tmp_path)


async def fill(place: Place, *, backup_after: int = 6) -> None:
    """Ten commits of two accounts: the even sequences are of b. The backup has the first six."""
    place.backup.mkdir()
    async with place.commands() as (commands, log):
        for sequence in range(1, 11):
            name = "b" if sequence % 2 == 0 else "a"
            event = Opened(f"owner of {name}") if sequence <= 2 else Booked(1110000 + sequence)
            await commands.execute(ACCOUNT, name, event, Context(key=f"key-{sequence}", fingerprint="f"))
            if sequence == backup_after:
                await back_up(log.connection, STREAM.name, place.backup, verify=True)


@pytest.mark.parametrize("lost", [6, 5], ids=["even the newest of the backup", "in the middle"])
async def test_a_damaged_commit_is_restored_from_a_backup_byte_for_byte(place: Place, lost: int) -> None:
    """The plan changes nothing; afterwards it is the same log: the tables stay valid, and commands on the aggregate work."""
    await fill(place)
    async with ledger_log(place.server.url) as log:
        before = await log.head()
    await place.damage(b"%d" % (1110000 + lost))
    assert (await place.run("scrub", code=5))["damaged"] == 1
    nothing = await place.run("repair", code=5)
    assert [(one["sequence"], one["remedy"]) for one in nothing["damaged"]] == [(lost, "")]
    assert "no remedy" in await place.run("repair", "--apply", "--keep", place.directory / "refused", code=5)
    plan = await place.run("repair", "--from-backup", place.backup, code=5)
    assert plan["damaged"][0]["subject"] == f"{CATEGORY}.{'b' if lost % 2 == 0 else 'a'}"
    assert plan["damaged"][0]["remedy"] == f"backup {place.backup}"
    assert (await place.run("scrub", code=5))["damaged"] == 1
    done = await place.run("repair", "--from-backup", place.backup, "--apply", "--keep", place.directory / "kept")
    assert done["applied"]
    assert not done["rebuild"]
    assert (await place.run("verify"))["equal"]
    assert sorted(one.name for one in (place.directory / "kept").iterdir()) == ["damaged", "repaired"]
    await place.check_whole()
    async with place.commands() as (commands, log):
        assert await log.head() == before
        for name in ("a", "b"):
            assert (await commands.execute(ACCOUNT, name, Booked(5))).state.entries == 5
    await place.check_whole()


async def test_the_last_commit_of_an_aggregate_that_no_source_has_gets_a_tombstone(place: Place) -> None:
    """The effect of the lost command is gone, the tombstone names the reason, and the command can be repeated with its key."""
    await fill(place)
    await place.damage(b"1110010")
    async with ledger_log(place.server.url) as log:
        with pytest.raises(AggregateDamaged, match="projections repair"):
            await Commands(log).execute(ACCOUNT, "b", Booked(1))
    assert "no remedy" in await place.run(
        "repair", "--from-backup", place.backup, "--apply", "--keep", place.directory / "no", code=5
    )
    done = await place.run("repair", *BY, "--apply", "--keep", place.directory / "kept")
    assert done["rebuild"]
    assert [(one["sequence"], one["remedy"]) for one in done["damaged"]] == [(10, "tombstone by ann")]
    events = await place.run("events", "--type", "CommitLost", code=None)
    assert "a bad disk" in str(events)
    await place.run("rebuild", MODEL_AT)
    await place.check_whole()
    scrubbed = await place.run("scrub")
    assert [(one["sequence"], one["operator"]) for one in scrubbed["repaired"]] == [(10, "ann")]
    async with place.commands() as (commands, _):
        again = await commands.execute(ACCOUNT, "b", Booked(1110010), Context(key="key-10", fingerprint="f"))
        assert (again.state.entries, again.sequence, again.replayed) == (4, 11, False)
    await place.check_whole()


async def test_a_tombstone_in_the_middle_keeps_the_states_of_the_commits_after_it(place: Place) -> None:
    await fill(place)
    await place.damage(b"1110007")
    done = await place.run("repair", *BY, "--apply", "--keep", place.directory / "kept")
    assert done["damaged"][0]["subject"] == f"{CATEGORY}.a"
    await place.run("rebuild", MODEL_AT)
    assert (await place.run("verify"))["equal"]
    async with place.commands() as (commands, log):
        assert (await commands.execute(ACCOUNT, "a", Booked(5))).state.entries == 5
        lost = await log.at(7)
        assert lost is not None
        assert lost.lost is not None
        assert (lost.lost.operator, lost.lost.reason) == ("ann", "a bad disk")
    await place.check_whole()


@pytest.mark.parametrize(
    ("lost", "remedy"),
    [
        (11, "backup"),
        (13, "tombstone"),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [(11, "tombstone"), (13, "backup")]),
    ],
)
async def test_a_damaged_commit_of_a_row_is_repaired(
    place: Place, lost: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several commits that were stored in one batch all but the first have no guard of the server."""
    await fill(place, backup_after=0)
    monkeypatch.setattr(CostEstimate, "row_pays", lambda _, count: count > 1)
    async with place.commands() as (commands, log):
        row = [(Booked(1110000 + n), Context(key=f"row-{n}", fingerprint="f")) for n in range(11, 17)]
        await commands.execute_in_order(ACCOUNT, "a", row)
        last = await log.at(16)
        assert last is not None
        assert FOLLOWS.encode() in (last.headers or b"")
        await back_up(log.connection, STREAM.name, place.backup, verify=True)
    await place.check_whole()
    await place.damage(b"%d" % (1110000 + lost))
    means = ("--from-backup", place.backup) if remedy == "backup" else BY
    done = await place.run("repair", *means, "--apply", "--keep", place.directory / "kept")
    assert [(one["sequence"], one["subject"]) for one in done["damaged"]] == [(lost, f"{CATEGORY}.a")]
    assert done["damaged"][0]["remedy"].startswith(remedy)
    if done["rebuild"]:
        await place.run("rebuild", MODEL_AT)
    async with place.commands() as (commands, _):
        assert (await commands.execute(ACCOUNT, "a", Booked(5))).state.entries == 11
    await place.check_whole()


async def test_the_only_commit_of_an_aggregate_is_lost_and_it_is_created_again(place: Place) -> None:
    await fill(place)
    async with place.commands() as (commands, _):
        await commands.execute(ACCOUNT, "c", Opened("zzzzzzz"))
    await place.damage(b"zzzzzzz")
    async with ledger_log(place.server.url) as log:
        with pytest.raises(AggregateDamaged):
            await Commands(log).execute(ACCOUNT, "c", Opened("other"))
    await place.run("repair", *BY, "--apply", "--keep", place.directory / "kept")
    await place.run("rebuild", MODEL_AT)
    async with place.commands() as (commands, _):
        assert (await commands.execute(ACCOUNT, "c", Opened("other"))).state.owner == "other"
    await place.check_whole()


async def test_a_message_that_bypassed_the_log_is_replaced_by_a_tombstone(place: Place) -> None:
    await fill(place)
    async with ledger_log(place.server.url) as log:
        last = await MessageReader(log.connection, STREAM.name).leader({"seq": 10})
        assert last is not None
        await log.connection.request(f"{CATEGORY}.b", last.data)
        done = await place.run("repair", *BY, "--apply", "--keep", place.directory / "kept")
    assert "past the event log" in done["damaged"][0]["problem"]
    await place.run("rebuild", MODEL_AT)
    async with place.commands() as (commands, _):
        assert (await commands.execute(ACCOUNT, "b", Booked(5))).state.entries == 5
    await place.check_whole()


async def test_a_guarded_message_that_is_no_commit_is_replaced_by_a_tombstone(place: Place) -> None:
    """The servers of the stream, and a backup made since, have no other record: that record is no remedy."""
    await fill(place)
    async with ledger_log(place.server.url) as log:
        await log.connection.request(f"{CATEGORY}.b", b"no commit", headers=f"{GUARD}: 10\r\n".encode())
        later = place.directory / "later"
        later.mkdir()
        await back_up(log.connection, STREAM.name, later)
    plan = await place.run("repair", "--from-backup", later, code=5)
    assert [(one["sequence"], one["remedy"]) for one in plan["damaged"]] == [(11, "")]
    done = await place.run("repair", *BY, "--apply", "--keep", place.directory / "kept")
    assert [(one["sequence"], one["remedy"]) for one in done["damaged"]] == [(11, "tombstone by ann")]
    await place.run("rebuild", MODEL_AT)
    async with place.commands() as (commands, _):
        assert (await commands.execute(ACCOUNT, "b", Booked(5))).state.entries == 5
    await place.check_whole()


async def test_a_tail_that_the_server_cut_comes_back_from_a_backup(place: Place) -> None:
    """kill -9 after a flipped bit: the server cuts its file there, and the tables are ahead of the log."""
    await fill(place, backup_after=10)
    await place.server.stop()
    flip(place.server.data_dir, STREAM.name, b"1110008")
    for index in place.server.data_dir.glob("**/msgs/index.db"):
        index.unlink()
    await place.server.start()
    async with ledger_log(place.server.url) as log:
        assert (await log.head()).last < 8
    done = await place.run("repair", "--from-backup", place.backup, "--apply", "--keep", place.directory / "kept")
    assert not done["rebuild"]
    assert {one["sequence"] for one in done["damaged"]} >= {8, 9, 10}
    await place.check_whole()


async def test_a_backup_of_another_log_is_refused(place: Place) -> None:
    await fill(place)
    await place.damage(b"1110006")
    description = place.backup / f"{STREAM.name}.json"
    description.write_text(description.read_text().replace('"incarnation": "', '"incarnation": "other-'))
    assert "another incarnation" in await place.run("repair", "--from-backup", place.backup, code=None)


async def test_a_repair_that_was_interrupted_leaves_no_half_stream(place: Place) -> None:
    """Frozen by a repair that was killed, the stream takes no writes; the next one gives its subjects back."""
    await fill(place)
    await place.damage(b"1110006")
    async with ledger_log(place.server.url) as log:
        work = StreamRepair(log.connection, STREAM.name, REGISTRY, sources=(), witness=Witness())
        await work._freeze()
    plan = await place.run("repair", "--from-backup", place.backup, code=5)
    assert len(plan["damaged"]) == 1
    await place.run("repair", "--from-backup", place.backup, "--apply", "--keep", place.directory / "kept")
    await place.check_whole()
    async with place.commands() as (commands, _):
        await commands.execute(ACCOUNT, "b", Booked(5))


async def test_a_repair_that_ends_before_the_stream_is_back_names_the_command_that_brings_it_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(place)
    await place.damage(b"1110006")
    removed = asyncio.Event()

    async def slow(*_: object, **__: object) -> None:
        removed.set()
        await asyncio.Event().wait()

    async with ledger_log(place.server.url) as log:
        incarnation = (await log.head()).incarnation
        async with backup_source(place.backup, log.connection, STREAM.name, incarnation) as source:
            work = StreamRepair(log.connection, STREAM.name, REGISTRY, sources=[source], witness=Witness())
            monkeypatch.setattr(repair, "restore", slow)
            with capture_logs() as lines:
                applying = asyncio.create_task(work.apply(place.directory / "kept"))
                await removed.wait()
                applying.cancel()
                await asyncio.wait([applying])
        [command] = [line["command"] for line in lines if line["event"] == "the repaired stream is not restored yet"]
        start, _, copies = command.rpartition(" ")
        assert start == "projections streams restore"
        await restore(log.connection, Path(copies) / f"{STREAM.name}.json")
    await place.check_whole()


async def test_the_scrubber_of_a_service_sees_the_repair_without_a_new_pass(place: Place) -> None:
    await fill(place)
    await place.damage(b"1110006")
    async with ledger_log(place.server.url) as log:
        scrubber = LogScrubber(MessageReader(log.connection, STREAM.name), REGISTRY, log.head)
        await scrubber.scrub()
        assert scrubber.found is not None
        assert scrubber.found.count == 1
        await scrubber.look_again()
        assert scrubber.found.count == 1
        await place.run("repair", "--from-backup", place.backup, "--apply", "--keep", place.directory / "kept")
        await scrubber.look_again()
        assert scrubber.found.count == 0
