"""The program `projections`, run as a process: its output and its exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from eventlog import AggregateId, Context, NewCommit, NewEvent
from eventlog.admin import reconcile as streams
from eventlog.admin.declarations import load_declarations
from eventlog.commit import Proposal
from eventlog.jetstream.api import call
from eventlog.jetstream.connection import Connection
from eventlog.jetstream.log import JetStreamLog
from gctd.broker.broker import open_broker
from gctd.domain import worker
from gctd.readmodel import MODEL
from gctd.settings import SETTINGS as TRACKER_SETTINGS
from pantry.serve import SERVICE as PANTRY_SERVICE
from pantry.settings import SETTINGS as PANTRY_SETTINGS
from projections.cli import main
from projections.migrations import Migrations, migrations_of
from projections.projector.projector import Projector
from projections.stores.databases import store_at
from projections.stores.sqlite import SQLiteStore
from tests.support import ROOT
from tests.support.log.nats import plain_client
from tests.support.programs import warm
from tests.support.programs.documents import misfits
from tests.support.waiting import wait_until

MIGRATIONS = migrations_of(MODEL, "sqlite")
PROGRAM = (sys.executable, "-c", "import sys; from projections.cli import main; sys.exit(main())")
NOWHERE = "nats://127.0.0.1:9"


@attrs.frozen
class Ended:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GCTD_", "NO_COLOR", "FORCE_COLOR"))}
    return kept | {"PYTHONPATH": str(ROOT)} | variables


async def run(*arguments: str, **variables: str) -> Ended:
    done = await asyncio.to_thread(warm.run, "projections", *arguments, environment=environment(**variables))
    ended = Ended(done.returncode, done.stdout, done.stderr)
    assert misfits("projections", arguments, ended.out) == []
    return ended


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run the program in this process if it needs no server, because a process takes a while to start."""
    for name in ("GCTD_NATS_URL", "GCTD_DATABASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def call(*arguments: str) -> Ended:
        code = main(arguments)
        ended = Ended(code, *capsys.readouterr())
        assert misfits("projections", arguments, ended.out) == []
        return ended

    return call


async def append(log: JetStreamLog, id_: str, number: int) -> None:
    at = datetime.now(UTC)
    started = worker.WorkerStarted(id=id_, session=f"s{number}", host="hé", pid=number, at=at)
    last = await log.last(AggregateId(worker.CATEGORY, id_))
    state = worker.evolve(None if last is None else last.state, started)
    context = Context(key=f"key-{number}", correlation="c")
    commit = NewCommit(id=f"{id_}-{number}", at=at, events=(NewEvent(started, context),), state=state)
    expected, prev = (0, None) if last is None else (last.sequence, last.digest)
    await log.append(Proposal(aggregate=AggregateId(worker.CATEGORY, id_), expected=expected, commit=commit, prev=prev))


@pytest_asyncio.fixture
async def log(nats_url: str) -> AsyncIterator[JetStreamLog]:
    async with Connection.open(nats_url, name="test") as connection:
        await streams.apply_declarations(connection, load_declarations().only(MODEL.stream))
        yield JetStreamLog(connection, MODEL.stream, MODEL.registry)


@pytest_asyncio.fixture
async def store(log: JetStreamLog, tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    """The tracker's read model with two events, of which the service that has it open has applied the first."""
    await append(log, "w1", 1)
    async with SQLiteStore(tmp_path / "read.db") as store:
        await Migrations(store, MODEL).up()
        await Projector(log, store, MODEL).run(until=1)
        await append(log, "w1", 2)
        yield store


# Status


async def test_status_says_how_far_each_projection_is_while_the_service_runs(
    nats_url: str, log: JetStreamLog, store: SQLiteStore
) -> None:
    arguments = ("--nats-url", nats_url, "--database", f"sqlite:{store.path}")
    ended = await run("status", *arguments, "--json")
    assert (ended.code, ended.err) == (0, "")
    head = await log.head()
    document = ended.document
    assert (document["head"], document["incarnation"], document["stream"]) == (2, head.incarnation, "GCTD")
    assert document["schema"] == {"version": len(MIGRATIONS), "dirty": False, "taken_back": False}
    assert [line["projection"] for line in document["projections"]] == [
        "repos",
        "tracked_refs",
        "tasks",
        "analyses",
        "verdicts",
        "deliveries",
        "workers",
        "tokens",
        "command_keys",
    ]
    [of_workers] = [line for line in document["projections"] if line["projection"] == "workers"]
    assert 0 < of_workers.pop("lag_seconds") < 60
    assert of_workers == {
        "projection": "workers",
        "version": 1,
        "position": 1,
        "head": 2,
        "lag_events": 1,
        "applied": 1,
        "parked": 0,
        "waiting": 0,
        "problem": None,
    }
    digest = document_digest(await run("status", *arguments, "--json", "--digest"))
    await Projector(log, store, MODEL).run(until=2)
    table = await run("status", GCTD_NATS_URL=nats_url, GCTD_DATABASE_URL=f"sqlite:{store.path}")
    titles, *rows = table.lines
    assert titles[:3] == ["PROJECTION", "VERSION", "POSITION"]
    assert next(row for row in rows if row[0] == "workers") == ["workers", "1", "2", "2", "0", "0.0", "2", "0", "0", "-"]
    assert document_digest(await run("status", *arguments, "--json", "--digest")) != digest


async def test_scrub_of_each_server_reads_a_log_of_one_server_once(nats_url: str, log: JetStreamLog) -> None:
    await append(log, "w1", 1)
    ended = await run("scrub", "--each-server", "--json", "--nats-url", nats_url)
    assert (ended.code, ended.document["until"], ended.document["damaged"]) == (0, 1, 0), ended.err


def document_digest(ended: Ended) -> str:
    digest = ended.document["digest"]
    assert isinstance(digest, str)
    assert len(digest) == 64
    return digest


async def test_status_of_a_stream_that_was_created_anew_is_a_conflict(nats_url: str, store: SQLiteStore) -> None:
    async with plain_client(nats_url) as client:
        await client.jetstream().delete_stream(MODEL.stream)
    async with Connection.open(nats_url, name="test") as connection:
        await streams.apply_declarations(connection, load_declarations().only(MODEL.stream))
    ended = await run("status", "--nats-url", nats_url, "--database", f"sqlite:{store.path}")
    assert ended.code == 5
    assert {row[-1] for row in ended.lines[1:]} == {"the stream was recreated"}


async def test_what_is_not_there_is_unavailable(tmp_path: Path, store: SQLiteStore) -> None:
    """On standard error, with what to do; standard output stays empty."""
    missing = await run("status", "--nats-url", NOWHERE, "--database", f"sqlite:{tmp_path / 'no.db'}")
    assert (missing.code, missing.out) == (6, "")
    assert missing.err.startswith("error: status: ")
    assert "no.db does not exist" in missing.err
    assert "\nhint: " in missing.err
    no_broker = await run("status", "--nats-url", NOWHERE, "--database", f"sqlite:{store.path}", "--json")
    assert (no_broker.code, no_broker.out) == (6, "")
    assert json.loads(no_broker.err)["error"]["code"] == "unavailable"


def test_a_database_of_a_kind_that_is_not_known_is_said(here: Callable[..., Ended]) -> None:
    ended = here("status", "--nats-url", NOWHERE, "--database", "oracle://x")
    assert (ended.code, ended.out) == (6, "")
    assert "'oracle' is no database that is known: give sqlite:<path> or postgresql:" in ended.err


@pytest.mark.real
def test_a_postgres_that_does_not_answer_is_named_without_its_password(here: Callable[..., Ended]) -> None:
    for address in ("postgres://me:geheim@127.0.0.1:9/x", "postgresql://me@127.0.0.1:9/x?password=geheim"):
        ended = here("status", "--nats-url", NOWHERE, "--database", address)
        assert (ended.code, ended.out) == (6, "")
        assert "127.0.0.1:9/x" in ended.err
        assert "geheim" not in ended.err


# Events


async def test_events_prints_the_log_in_order(nats_url: str, log: JetStreamLog, store: SQLiteStore) -> None:
    await append(log, "w2", 3)
    ended = await run("events", "--nats-url", nats_url)
    assert ended.code == 0
    assert [(line[0], line[2], line[3]) for line in ended.lines] == [
        ("1", "gctd.worker.w1", "WorkerStarted"),
        ("2", "gctd.worker.w1", "WorkerStarted"),
        ("3", "gctd.worker.w2", "WorkerStarted"),
    ]
    assert json.loads(ended.lines[1][4])["host"] == "hé"
    records = [
        json.loads(line) for line in (await run("events", "--nats-url", nats_url, "--json", "--from", "2")).out.splitlines()
    ]
    assert [record["position"] for record in records] == ["2", "3"]
    assert records[0]["data"]["pid"] == 2
    assert (records[0]["key"], records[0]["correlation"], records[0]["version"]) == ("key-2", "c", 1)
    assert records[0]["at"].endswith("Z")


@pytest.mark.parametrize(
    ("chosen", "positions"),
    [
        (("--aggregate", "gctd.worker.w2"), ["3"]),
        (("--aggregate", "gctd.worker.nobody"), []),
        (("--type", "WorkerStarted", "--to", "2"), ["1", "2"]),
        (("--type", "TaskQueued", "--type", "RepoReady"), []),
        (("--from", "2", "--to", "2"), ["2"]),
        (("--from", "9"), []),
        (("--to", "9"), ["1", "2", "3"]),
    ],
)
async def test_events_can_be_searched(
    nats_url: str, log: JetStreamLog, store: SQLiteStore, chosen: Sequence[str], positions: list[str]
) -> None:
    await append(log, "w2", 3)
    ended = await run("events", "--nats-url", nats_url, *chosen)
    assert (ended.code, [line[0] for line in ended.lines]) == (0, positions)


async def test_a_message_that_is_no_commit_is_printed_all_the_same(nats_url: str, store: SQLiteStore) -> None:
    """With what is wrong with it, and nothing that would move the cursor."""
    async with plain_client(nats_url) as client:
        await client.jetstream().publish("gctd.worker.bad", b"\x1b[2J\xff")
    ended = await run("events", "--nats-url", nats_url, "--from", "3")
    assert ended.code == 0
    assert ended.lines[0][:4] == ["3", "-", "gctd.worker.bad", "(unreadable)"]
    assert "\x1b" not in ended.out
    record = json.loads((await run("events", "--nats-url", nats_url, "--from", "3", "--json")).out)
    assert record["type"] is None
    assert "not a commit" in record["problem"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_following_prints_what_is_new_at_once_and_ends_with_a_signal(
    nats_url: str, log: JetStreamLog, store: SQLiteStore, number: signal.Signals, code: int
) -> None:
    arguments = ("events", "--nats-url", nats_url, "--follow", "--json")
    out, their_out = os.pipe()
    with os.fdopen(their_out, "wb") as writing:
        streams = (None, writing.fileno(), writing.fileno())
        process = await warm.fork("projections", *arguments, environment=environment(), streams=streams)
    lines, reading = await warm.stream(out)
    try:
        await wait_until(lambda: has_consumer(nats_url), timeout=20)
        for pid in (3, 4):
            await append(log, "w1", pid)
            line = await asyncio.wait_for(lines.readline(), 20)
            assert json.loads(line)["data"]["pid"] == pid
        process.send_signal(number)
        assert await asyncio.wait_for(process.wait(), 20) == code
    finally:
        process.kill()
        await process.wait()
        reading.close()


async def has_consumer(nats_url: str) -> bool:
    async with plain_client(nats_url) as client:
        names = [info.name for info in await client.jetstream().consumers_info(MODEL.stream)]
        return any(name.startswith("reader-") for name in names)


async def test_a_reader_that_closes_its_pipe_is_no_error(nats_url: str, log: JetStreamLog, store: SQLiteStore) -> None:
    for number in range(3, 100):
        await append(log, "w1", number)
    process = subprocess.Popen(  # noqa: ASYNC220 - started, not waited for
        [*PROGRAM, "events", "--nats-url", nats_url],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = await asyncio.to_thread(process.communicate)
    assert (process.returncode, err) == (141, b"")


# Streams


async def test_plan_shows_drift_and_apply_ends_it(nats_url: str) -> None:
    """Exit code 5 while there is a difference."""
    missing = await run("streams", "plan", "--nats-url", nats_url, "--json")
    assert missing.code == 5
    assert {(d["kind"], d["name"], d["action"]) for d in missing.document} >= {
        ("stream", "GCTD", "create"),
        ("consumer", "crap-workers", "create"),
    }
    applied = await run("streams", "apply", "--nats-url", nats_url)
    assert (applied.code, applied.out) == (0, "")
    assert (await run("streams", "plan", "--nats-url", nats_url, "--json")).document == []
    async with plain_client(nats_url) as client:
        info = await client.jetstream().stream_info(MODEL.stream)
        await client.jetstream().update_stream(attrs_free(info.config, description="something else"))
    changed = await run("streams", "plan", "--nats-url", nats_url)
    assert changed.code == 5
    assert changed.lines[1][:3] == ["stream", "GCTD", "description"]
    assert changed.lines[1][4] == "something else"
    assert (await run("streams", "apply", "--nats-url", nats_url)).code == 0


def attrs_free(config: Any, **changes: Any) -> Any:
    return config.evolve(**changes)


async def test_plan_and_apply_declare_what_the_services_are_configured_with(
    nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise `apply` would make the log of a running service smaller, which could then refuse writes."""
    variables = {
        "GCTD_EVENT_STORE_MAX_BYTES": "2GiB",
        "GCTD_PRESENCE_TTL": "1m30s",
        "GCTD_ACK_WAIT": "1200.5s",
        "PANTRY_EVENT_STORE_MAX_BYTES": "123456789",
    }
    for name, value in {**variables, "GCTD_NATS_URL": nats_url}.items():
        monkeypatch.setenv(name, value)
    async with open_broker(TRACKER_SETTINGS.load().values, name="test") as broker:
        await streams.apply_declarations(broker.connection, PANTRY_SERVICE.declarations(PANTRY_SETTINGS.load().values))
        assert (await run("streams", "plan", "--nats-url", nats_url, "--json", **variables)).document == []
        assert (await run("streams", "apply", "--nats-url", nats_url, "--json", **variables)).document == []
        sizes = [(await call(broker.connection, f"STREAM.INFO.{name}"))["config"]["max_bytes"] for name in ("GCTD", "PANTRY")]
    assert sizes == [2 * 1024**3, 123456789]
    wrong = await run("streams", "apply", "--nats-url", nats_url, **{**variables, "GCTD_ACK_WAIT": "soon"})
    assert (wrong.code, "ack_wait (GCTD_ACK_WAIT) must be a duration" in wrong.err) == (2, True)
    bank = tmp_path / "streams.yaml"
    bank.write_text("streams: {BANK: {subjects: [bank.*], max_bytes: 1MiB}}")
    [missing] = (await run("streams", "plan", "--nats-url", nats_url, "--json", "--file", str(bank), **variables)).document
    assert (missing["name"], missing["wanted"]["max_bytes"]) == ("BANK", 1024**2)


async def test_a_file_of_declarations_that_is_not_there_is_said(nats_url: str, tmp_path: Path) -> None:
    ended = await run("streams", "plan", "--nats-url", nats_url, "--file", str(tmp_path / "no.yaml"))
    assert ended.code == 1
    assert "no.yaml cannot be read" in ended.err


# Migrations


@pytest.mark.real
async def test_migrations_go_up_and_down(database_url: str) -> None:
    """The version is printed as `Current migration version: N`; a dirty one is a conflict until it is forced."""
    database = ("--database", database_url)
    assert (await run("migrate", "version", *database)).code == 6
    up = await run("migrate", "up", *database)
    assert (up.code, len(up.lines), up.lines[0]) == (0, len(MIGRATIONS), ["applied", "000001 create_repos_table"])
    again = await run("migrate", "up", *database)
    assert (again.code, again.out, again.err) == (0, "", "nothing to do\n")
    down = await run("migrate", "down", *database, "--json")
    assert down.document == str(MIGRATIONS[-1])
    left = len(MIGRATIONS) - 1
    assert (await run("migrate", "version", *database)).out == f"Current migration version: {left}\n"
    async with store_at(database_url) as store:
        version = await store.schema()
        await store.migrate("", before=version, after=attrs.evolve(version, dirty=True), projections=())
    assert (await run("migrate", "version", *database)).out == f"Current migration version: {left} (dirty)\n"
    dirty = await run("migrate", "up", *database)
    assert dirty.code == 5
    assert "left half done" in dirty.err
    assert (await run("migrate", "force", str(left), *database)).code == 0
    assert (await run("migrate", "up", *database)).code == 0


async def test_a_database_that_the_service_has_open_is_not_migrated(store: SQLiteStore) -> None:
    ended = await run("migrate", "down", "--database", f"sqlite:{store.path}")
    assert ended.code == 6
    assert f"in use by process {os.getpid()}" in ended.err


# The program


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Usage: projections"),
        (("nonsense",), "no such command 'nonsense'"),
        (("status", "--nonsense"), "no such option"),
        (("status",), "missing option '--database'"),
        (("events", "--from", "0"), "0 is not in the range"),
        (("events", "--aggregate", "a b"), "is not <service>.<aggregate>.<id>"),
        (("events", "--follow", "--to", "4"), "leave --to out"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(here: Callable[..., Ended], arguments: Sequence[str], told: str) -> None:
    ended = here(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err


@pytest.mark.parametrize(
    "arguments",
    [(), ("status",), ("events",), ("streams",), ("migrate",), ("streams", "plan"), ("migrate", "force")],
)
def test_every_command_has_help_with_examples(here: Callable[..., Ended], arguments: Sequence[str]) -> None:
    ended = here(*arguments, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("Usage: projections" if not arguments else "Usage: projections ")
    if arguments not in (("streams",), ("migrate",)):
        assert "Examples:" in ended.out
    if not arguments:
        assert "130" in ended.out


@pytest.mark.real
async def test_help_does_not_wait_for_libraries_that_it_does_not_need() -> None:
    program = "import sys; from projections.cli import main; main(['status', '--help']); print(*sys.modules)"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], env=environment(), capture_output=True, check=True
    )
    assert {"nats", "sqlite_utils", "structlog", "rich", "yaml"}.isdisjoint(done.stdout.decode().split())


def test_colour_is_for_terminals_and_for_who_forces_it(
    here: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments = ("status", "--nats-url", NOWHERE, "--database", f"sqlite:{tmp_path / 'no.db'}")
    assert "\x1b[" not in here(*arguments).err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m" in here(*arguments).err
    assert "\x1b[" not in here(*arguments, "--no-color").err
