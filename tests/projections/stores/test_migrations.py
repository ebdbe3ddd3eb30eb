"""Migrations: up, down, refusals, and tables that equal the declarations of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import attrs
import pytest

from projections import models
from projections.errors import MigrationError
from projections.migrations import Migration, Migrations, check_tables, migrations_of
from projections.model import Column, ColumnType, Projection, Put, ReadModel, Table, timestamp_text
from projections.store import Checkpoint, CheckpointOutcome, SchemaVersion, Step
from projections.stores.postgres import PostgresStore
from projections.stores.sqlite import SQLiteStore
from tests.support.readside.ledger import MODEL


class OtherFiles(ReadModel):
    """The example's read model with other migration files."""

    files: tuple[tuple[str, str], ...] = ()

    def migration_files(self) -> Iterable[tuple[str, str]]:
        return self.files


def with_files(shared: Mapping[str, str] | None = None, /, **files: str) -> ReadModel:
    """The read model with these migrations in each dialect; `shared` are files for all dialects."""
    model = OtherFiles(**{field.name: getattr(MODEL, field.name) for field in attrs.fields(ReadModel)})
    texts = [(name.replace("__", "."), text) for name, text in files.items()]
    named = tuple((f"{name}.{dialect}.sql", text) for name, text in texts for dialect in ("sqlite", "postgres"))
    for_all = tuple((f"{name.replace('__', '.')}.sql", text) for name, text in (shared or {}).items())
    object.__setattr__(model, "files", named + for_all)
    return model


EitherStore = SQLiteStore | PostgresStore
_THERE = {
    "sqlite": "SELECT name, sql FROM sqlite_schema ORDER BY name",
    "postgres": "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace ORDER BY relname",
}
"""The tables and indexes that there are."""


@pytest.fixture
def store(either_store: EitherStore) -> EitherStore:
    return either_store


async def test_up_applies_what_is_pending_in_order_and_down_takes_the_last_one_back(store: EitherStore) -> None:
    migrations = Migrations(store, MODEL)
    assert [str(migration) for migration in await migrations.pending()] == [
        "000001 create_accounts_table",
        "000002 create_entries_table",
        "000003 create_owners_table",
        "000004 add_entries_index",
    ]
    assert [migration.number for migration in await migrations.up()] == [1, 2, 3, 4]
    assert await migrations.version() == SchemaVersion(4)
    assert await migrations.up() == []
    for number in (4, 3, 2, 1):
        taken = await migrations.down()
        assert taken is not None
        assert taken.number == number
        assert await migrations.version() == SchemaVersion(number - 1)
    assert await migrations.down() is None
    for table in ("accounts", "entries", "owners"):
        assert await store.columns(table) == []


async def test_two_that_start_at_once_apply_each_migration_once(store: EitherStore) -> None:
    applied = await asyncio.gather(*(Migrations(store, MODEL).up() for _ in range(4)))
    assert sorted(migration.number for one in applied for migration in one) == [1, 2, 3, 4]
    assert await store.schema() == SchemaVersion(4)


async def test_a_second_process_waits_for_the_first_one(tmp_path: Path) -> None:
    """The file has one owner; who comes second is patient for a moment."""

    async def migrate() -> int:
        async with SQLiteStore(tmp_path / "read.db", patience=10) as store:
            return len(await Migrations(store, MODEL).up())

    assert sorted(await asyncio.gather(migrate(), migrate(), migrate())) == [0, 0, 4]


async def test_a_dirty_schema_is_left_alone_until_somebody_says_what_it_is(store: EitherStore) -> None:
    migrations = Migrations(store, MODEL)
    await migrations.up()
    await store.migrate("", before=SchemaVersion(4), after=SchemaVersion(4, dirty=True), projections=())
    for refused in (migrations.up, migrations.down, migrations.pending):
        with pytest.raises(MigrationError, match=r"migration 4 was left half done.*`force`.*rebuilt from the event log"):
            await refused()
    with pytest.raises(MigrationError, match="numbered 1 to 4"):
        await migrations.force(5)
    await migrations.force(3)
    assert await migrations.version() == SchemaVersion(3)


async def test_a_schema_of_a_newer_program_is_refused(store: EitherStore) -> None:
    await store.migrate("", before=SchemaVersion(0), after=SchemaVersion(5), projections=())
    with pytest.raises(MigrationError, match="at version 5, and this program knows 4: run the program that made it"):
        await Migrations(store, MODEL).up()


async def test_a_migration_that_fails_is_named_and_those_before_it_stay(store: EitherStore) -> None:
    migrations = Migrations(
        store,
        with_files(
            **{
                "000001_one__up": "CREATE TABLE one (a INTEGER);",
                "000001_one__down": "DROP TABLE one;",
                "000002_two__up": "CREATE TABLE two (a INTEGER); CREATE TABLE one (a INTEGER);",
                "000002_two__down": "DROP TABLE two;",
            }
        ),
    )
    with pytest.raises(MigrationError, match=r"migration 000002 two: .*it had no effect.*already exists"):
        await migrations.up()
    assert await migrations.version() == SchemaVersion(1)
    assert await store.columns("one") != []
    assert await store.columns("two") == []


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"1_one__up": ""}, "is not named"),
        ({"000001_one__sideways": ""}, "is not named"),
        ({"000001_one__up": ""}, "has no file for 'down'"),
        ({"000001_one__up": "", "000001_two__down": ""}, "named one up, two down"),
        ({"000001_one__up": "", "000001_two__up": ""}, "two migrations 000001 up"),
        ({"000002_one__up": "", "000002_one__down": ""}, "without a hole"),
    ],
)
def test_migration_files_that_are_not_complete_are_refused(files: dict[str, str], complaint: str) -> None:
    with pytest.raises(MigrationError, match=complaint):
        migrations_of(with_files(**files), "sqlite")


def test_a_file_without_a_dialect_is_for_every_database() -> None:
    model = with_files({"000001_one__down": "DROP TABLE one;"}, **{"000001_one__up": "CREATE TABLE one (a INTEGER);"})
    for dialect in ("sqlite", "postgres"):
        assert migrations_of(model, dialect) == [Migration(1, "one", "CREATE TABLE one (a INTEGER);", "DROP TABLE one;")]
    both = with_files({"000001_one__up": ""}, **{"000001_one__up": "", "000001_one__down": ""})
    with pytest.raises(MigrationError, match="two migrations 000001 up"):
        migrations_of(both, "sqlite")


def test_migrations_of_another_dialect_are_another_matter() -> None:
    model = with_files(**{"000001_one__up": "", "000001_one__down": ""})
    assert migrations_of(model, "oracle") == []
    assert all(isinstance(migration, Migration) for migration in migrations_of(model, "sqlite"))


@pytest.mark.parametrize("name", models.names())
async def test_the_migrations_of_every_read_model_make_the_tables_that_it_declares(store: EitherStore, name: str) -> None:
    """Down and up also work a second time. After down no object of it remains."""
    model = models.load(name)
    migrations = Migrations(store, model)
    before = await store.fetch(_THERE[store.dialect])
    for _ in range(2):
        await migrations.up()
        await check_tables(store, model)
        while await migrations.down():
            pass
        assert await store.fetch(_THERE[store.dialect]) == before


async def test_a_table_of_sqlite_that_is_not_strict_is_refused(tmp_path: Path) -> None:
    """SQLite would store any value in any column of it."""
    table = Table("one", (Column("a", "integer"),), key=("a",))
    model = ReadModel("one", "ONE", MODEL.registry, (Projection("one", 1, (table,), {}),))
    async with SQLiteStore(tmp_path / "read.db") as store:
        made = "CREATE TABLE one (a INTEGER NOT NULL PRIMARY KEY)"
        await store.migrate(made, before=SchemaVersion(0), after=SchemaVersion(1), projections=())
        with pytest.raises(MigrationError, match=r"table 'one' .*not STRICT.*End its CREATE TABLE with STRICT"):
            await check_tables(store, model)
        await store.migrate("DROP TABLE one", before=SchemaVersion(1), after=SchemaVersion(0), projections=())
        await Migrations(store, model).up()
        await check_tables(store, model)


async def test_without_files_a_migration_makes_the_tables_as_they_are_declared(store: EitherStore) -> None:
    """In their order, with each type of column. The values of a row are read back, and columns outside the key may be empty."""
    kinds: tuple[ColumnType, ...] = get_args(ColumnType)
    every = Table("every", tuple(Column(kind, kind) for kind in kinds), key=("text", "integer"))
    pair = Table("order", (Column("group"),), key=("group",))  # names that SQL has other uses for
    projection = Projection("kinds", 1, (every, pair), {})
    model = ReadModel("kinds", "KINDS", MODEL.registry, (projection,))
    migrations = Migrations(store, model)
    before = await store.fetch(_THERE[store.dialect])
    assert [str(one) for one in await migrations.up()] == ["000001 declared_tables"]
    await check_tables(store, model)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    rows = [("a", 2**62, 0.5, True, at, "{}"), ("b", -1, None, None, None, None)]
    after = Checkpoint(projection="kinds", version=1, incarnation="i", sequence=1, applied=1)
    step = Step(projection=projection, before=None, after=after, changes=[Put(every, row) for row in rows])
    assert await store.advance([step]) is CheckpointOutcome.STORED
    async with store.snapshot() as snapshot:
        found = [row async for some in snapshot.scan(every) for row in some]
    assert found == [("a", 2**62, 0.5, True, timestamp_text(at), "{}"), rows[1]]
    await migrations.down()
    assert await store.fetch(_THERE[store.dialect]) == before


def _with_table(table: Table) -> ReadModel:
    return attrs.evolve(MODEL, projections=(Projection("accounts", 1, (table,), {}),))


@pytest.mark.parametrize(
    ("columns", "key", "complaint"),
    [
        ((Column("owner"), Column("account")), ("owner",), None),
        ((Column("account"), Column("owner")), ("owner",), "its columns are owner, account, declared are account, owner"),
        ((Column("owner"),), ("owner",), "its columns are owner, account, declared are owner"),
        ((Column("owner"), Column("account", "integer")), ("owner",), "column 'account' is TEXT, which cannot hold integer"),
        ((Column("owner"), Column("account", "json")), ("owner",), None),
        ((Column("owner"), Column("account")), ("owner", "account"), r"primary key is \(owner\), declared is \(owner, account\)"),
    ],
)
async def test_tables_that_are_not_as_declared_are_told(
    store: EitherStore, columns: tuple[Column, ...], key: tuple[str, ...], complaint: str | None
) -> None:
    await Migrations(store, MODEL).up()
    check = check_tables(store, _with_table(Table("owners", columns, key)))
    if complaint is None:
        await check
    else:
        with pytest.raises(MigrationError, match=f"table 'owners' of projection 'accounts' is not as declared: .*{complaint}"):
            await check


async def test_a_table_that_no_migration_makes_is_told(store: EitherStore) -> None:
    with pytest.raises(MigrationError, match="the migrations do not make it"):
        await check_tables(store, MODEL)
