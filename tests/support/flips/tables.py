"""Tables of SQLite and Postgres whose files are changed while they are closed."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
import attrs

from eventlog import EventLogError
from eventlog.testing.memory import MemoryLog
from projections.errors import ProjectionError
from projections.migrations import Migrations
from projections.projector.projector import Projector
from projections.rebuild.verify import audit, compare, verify
from projections.store import Reader, Store
from projections.stores.postgres import PostgresStore
from projections.stores.postgres.server import PostgresServer
from projections.stores.sqlite import SQLiteStore
from tests.support.flips.harm import Harm, Violation, harm
from tests.support.readside.ledger import MODEL, REGISTRY, Book
from tests.support.readside.postgres import binaries
from tests.support.readside.projecting import proven

COMMITS = 60
PATIENCE = 60.0
_WHOLE = "whole"


@attrs.frozen
class Sound:
    """The tables before they are changed, in a separate store, with the log that they are made of."""

    log: MemoryLog
    store: SQLiteStore
    inner: Any


async def made_log() -> MemoryLog:
    """A log of a few accounts; some commits have keys."""
    log = MemoryLog(REGISTRY)
    book = Book(log)
    await book.append_randomly(COMMITS, accounts=8, seed=3, batch=4)
    return log


async def filled(store: Store, log: MemoryLog) -> None:
    await Migrations(store, MODEL).up()
    await Projector(log, store, MODEL).run(until=(await log.head()).last)


async def inner_of(reader: Reader) -> Any:
    """All that a store keeps besides the tables of the model."""
    schema = await reader.schema()
    return (
        dict(await reader.checkpoints()),
        list(await reader.marks(MODEL.stream)),
        list(await reader.parked()),
        (schema.version, schema.dirty, schema.taken_back),
    )


async def judge(store: SQLiteStore | PostgresStore, sound: Sound) -> str:
    """How a change of a store was noticed, or that it has no effect. Raises Violation."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await _judge(store, sound)
    except (ProjectionError, EventLogError) as error:
        return f"refused: {type(error).__name__}"
    finally:
        await store.close()


async def _judge(store: SQLiteStore | PostgresStore, sound: Sound) -> str:
    await store.open()
    await Migrations(store, MODEL).up()  # as a service that starts
    if await store.problems(thorough=True):
        return "the check of the file names it"
    verdict = await verify(store, sound.log, MODEL)
    marks = await store.marks(MODEL.stream)
    looked = await audit(sound.log, MODEL, until=verdict.sequence, marks=proven(marks, verdict.sequence, verdict.digest))
    if verdict.difference is not None or looked.problems:
        return "verify names it"
    if await store.problems(thorough=True):
        return "the check of the file names it"
    if await inner_of(store) == sound.inner:
        return "without effect: all rows are as they were"
    await Projector(sound.log, store, MODEL).run(until=(await sound.log.head()).last)
    if await compare(store, sound.store, MODEL) is None and await inner_of(store) == sound.inner:
        return "without effect: the projector has made it good"
    raise Violation(f"not noticed: {await inner_of(store)}, and it was {sound.inner}")


async def sqlite_flips(directory: Path, trials: int, seed: int) -> Counter[str]:
    """Make trials, each a random change of a file; gives how many were noticed in which way. Raises Violation."""
    chance, outcomes = random.Random(seed), Counter[str]()
    log, pristine = await made_log(), directory / "pristine.db"
    async with SQLiteStore(pristine) as store:
        await filled(store, log)
    await asyncio.to_thread(shutil.copy, pristine, directory / "reference.db")
    async with SQLiteStore(directory / "reference.db") as reference:
        sound = Sound(log, reference, await inner_of(reference))
        for number in range(trials):
            file = directory / f"trial-{number}.db"
            await asyncio.to_thread(shutil.copy, pristine, file)
            what = await asyncio.to_thread(harm, [file], chance)
            try:
                outcomes[await judge(SQLiteStore(file), sound)] += 1
            except Violation as error:
                raise Violation(f"seed {seed}, trial {number}, {what}: {error}") from error
            await asyncio.to_thread(_remove, directory, file.name)
    return outcomes


def _remove(directory: Path, name: str) -> None:
    for file in directory.glob(f"{name}*"):
        file.unlink()


async def postgres_flips(directory: Path, trials: int, seed: int, *, together: int = 25) -> Counter[str]:
    """As `sqlite_flips`, of the files of tables and indexes of Postgres, `together` databases at a time."""
    chance, outcomes = random.Random(seed), Counter[str]()
    log = await made_log()
    place = Path(tempfile.mkdtemp(prefix="postgres-"))
    server = PostgresServer(place, durable=False, binaries=binaries())
    try:
        async with SQLiteStore(directory / "reference.db") as reference:
            await filled(reference, log)
            async with server:
                await server.create(_WHOLE)
                async with PostgresStore(server.url(_WHOLE)) as store:
                    await filled(store, log)
                    sound = Sound(log, reference, await inner_of(store))
                    files = await _files(store)
            while trials > 0:
                names = [f"trial_{seed}_{trials}_{number}" for number in range(min(together, trials))]
                async with server:
                    places = await _copies(server, names)
                done = {
                    name: await asyncio.to_thread(_harm, place / "cluster/base" / places[name], files, chance) for name in names
                }
                async with server:
                    for name in names:
                        try:
                            outcomes[await judge(PostgresStore(server.url(name)), sound)] += 1
                        except Violation as error:
                            raise Violation(f"seed {seed}, {name}, {done[name]}: {error}") from error
                        await server.drop(name)
                trials -= len(names)
    finally:
        await asyncio.to_thread(shutil.rmtree, place)
    return outcomes


async def _files(store: PostgresStore) -> list[str]:
    """The files of the tables and indexes of a database."""
    rows = await store.fetch(
        "SELECT pg_relation_filepath(c.oid) AS path FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'i') AND n.nspname NOT LIKE 'pg_%' AND n.nspname <> 'information_schema'"
    )
    return sorted(Path(row["path"]).name for row in rows)


async def _copies(server: PostgresServer, names: list[str]) -> dict[str, str]:
    """Copy the database to each of these names; gives the directories."""
    connection: Any = await asyncpg.connect(server.url("postgres"))
    try:
        for name in names:
            await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {_WHOLE}')
        rows = await connection.fetch("SELECT datname, oid::text AS oid FROM pg_database")
        return {row["datname"]: row["oid"] for row in rows}
    finally:
        await connection.close()


def _harm(directory: Path, names: list[str], chance: random.Random) -> Harm:
    files = [directory / name for name in names]
    return harm([file for file in files if file.stat().st_size], chance)
