"""Numbered migrations of a read model: up, down, pending ones, and whether the tables are as the model declares them.

Each migration and its version are one transaction, so that a failure leaves no partial change. The version is dirty only if
another tool (the table is the one of golang-migrate) or a person has left it so. Then each command fails until `force` sets the
version of the schema. A read model can always be rebuilt instead: remove the database, and it is filled from the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs
import structlog

from projections.errors import MigrationError
from projections.model import ReadModel, StoredColumn, Table
from projections.store import Reader, SchemaVersion, Store

log = structlog.get_logger(__name__)

_WHAT_TO_DO = "run the program that made it, or set the database aside: the tables are filled from the event log"
"""The way on from a database of another version of the program."""
_FILE = re.compile(r"([0-9]{6})_([a-z0-9_]+)\.(up|down)(?:\.([a-z]+))?\.sql")


@attrs.frozen
class Migration:
    """One numbered change of the schema, in one dialect: the statements that make it and the statements that take it back."""

    number: int
    name: str
    up: str
    down: str

    def __str__(self) -> str:
        return f"{self.number:06d} {self.name}"


def migrations_of(model: ReadModel, dialect: str) -> Sequence[Migration]:
    """The migrations of a read model in a dialect, by number. A file without a dialect is for all of them.

    Raises MigrationError where the files are not complete.
    """
    by_number: dict[int, dict[str, tuple[str, str]]] = {}
    for file, text in model.migration_files():
        matched = _FILE.fullmatch(file)
        if matched is None:
            raise MigrationError(f"{model.migrations}: {file} is not named <number>_<name>.<up|down>[.<dialect>].sql")
        number, name, direction, of = matched.groups()
        if of not in (None, dialect):
            continue
        directions = by_number.setdefault(int(number), {})
        if direction in directions:
            raise MigrationError(f"{model.migrations}: there are two migrations {number} {direction}")
        directions[direction] = (name, text)
    if sorted(by_number) != list(range(1, len(by_number) + 1)):
        raise MigrationError(f"{model.migrations}: the {dialect} migrations are not numbered from 1 without a hole")
    return [_paired(model, number, directions) for number, directions in sorted(by_number.items())]


def _paired(model: ReadModel, number: int, directions: Mapping[str, tuple[str, str]]) -> Migration:
    try:
        (name, up), (name_down, down) = directions["up"], directions["down"]
    except KeyError as missing:
        raise MigrationError(f"{model.migrations}: migration {number:06d} has no file for {missing.args[0]!r}") from None
    if name != name_down:
        raise MigrationError(f"{model.migrations}: migration {number:06d} is named {name} up, {name_down} down")
    return Migration(number, name, up, down)


class Migrations:
    """The migrations of a read model on a database that is open."""

    def __init__(self, store: Store, model: ReadModel) -> None:
        self._store = store
        self._model = model
        self._all = migrations_of(model, store.dialect)

    async def version(self) -> SchemaVersion:
        """The last migration applied."""
        return await self._store.schema()

    async def pending(self) -> Sequence[Migration]:
        """The migrations that `up` would apply. Raises MigrationError if the schema is dirty or newer than the program.

        Also if the tables of a model without a package of migrations are declared otherwise: its schema has only one number.
        """
        left = self._after(await self._clean())
        if not left and self._model.migrations is None:
            await check_tables(self._store, self._model)
        return left

    async def up(self) -> Sequence[Migration]:
        """Apply all pending migrations. Return the migrations that this call applied, none if there was nothing to do.

        Projections whose tables are touched are refilled from the log: see `Store.migrate`. Safe if two processes do it at
        once: each migration is applied by one of them. Raises MigrationError.
        """
        applied = []
        while pending := self._after(before := await self._clean()):
            if await self._apply(pending[0], pending[0].up, before, pending[0].number):
                applied.append(pending[0])
        return applied

    async def down(self) -> Migration | None:
        """Take the last one back; None if none is applied. Raises MigrationError."""
        while (before := await self._clean()).version:
            last = self._all[before.version - 1]
            if await self._apply(last, last.down, before, last.number - 1):
                return last
        return None

    async def force(self, version: int) -> None:
        """Set the schema's version, clean, after a check by hand. Raises MigrationError."""
        if not 0 <= version <= len(self._all):
            raise MigrationError(f"there is no migration {version}: they are numbered 1 to {len(self._all)}, 0 is none")
        before = await self._store.schema()
        after = SchemaVersion(version, taken_back=version < before.version)
        changed = await self._store.migrate("", before=before, after=after, projections=self._model.projections)
        if changed is None:
            raise MigrationError("another process has changed the schema at the same time: look at its version again")

    async def _clean(self) -> SchemaVersion:
        version = await self._store.schema()
        if version.dirty:
            raise MigrationError(
                f"the schema is dirty: migration {version.version} was left half done. Repair it by hand and set its version by "
                "`force`; or remove the database: the read model is rebuilt from the event log"
            )
        if version.version > len(self._all):
            raise MigrationError(
                f"the schema is at version {version.version}, and this program knows {len(self._all)}: {_WHAT_TO_DO}"
            )
        return version

    def _after(self, version: SchemaVersion) -> Sequence[Migration]:
        return self._all[version.version :]

    async def _apply(self, migration: Migration, sql: str, before: SchemaVersion, after: int) -> bool:
        then = SchemaVersion(after, taken_back=after < before.version)
        try:
            emptied = await self._store.migrate(sql, before=before, after=then, projections=self._model.projections)
        except MigrationError as error:
            raise MigrationError(f"migration {migration}: {error}") from error
        if emptied is None:
            return False
        log.info(
            "schema migrated", read_model=self._model.name, migration=str(migration), version=after, to_be_filled=list(emptied)
        )
        return True


async def migrate(store: Store, model: ReadModel) -> None:
    """Apply all pending migrations, and check that the tables are as declared. Raises MigrationError.

    Tables without migrations that are empty, and declared otherwise by now, are recreated.
    """
    if model.migrations is None and not await store.checkpoints() and await table_problem(store, model):
        await Migrations(store, model).down()
    for migration in await Migrations(store, model).up():
        log.info("migration applied", migration=str(migration))
    await check_tables(store, model)


async def check_tables(store: Reader, model: ReadModel) -> None:
    """Check that each declared table is in the database as declared: columns, order, types, key. Raises MigrationError."""
    if problem := await table_problem(store, model):
        raise MigrationError(f"{problem}. It is the database of another program: {_WHAT_TO_DO}")


async def table_problem(store: Reader, model: ReadModel) -> str | None:
    """The first difference between the declared tables and the database's."""
    for projection in model.projections:
        for table in projection.tables:
            if problem := _difference(table, await store.columns(table.name)):
                return f"table {table.name!r} of projection {projection.name!r} is not as declared: {problem}"
    return None


def _difference(table: Table, columns: Sequence[StoredColumn]) -> str | None:
    if not columns:
        return "the migrations do not make it"
    names = tuple(column.name for column in columns)
    if names != table.names:
        return f"its columns are {', '.join(names)}, declared are {', '.join(table.names)}"
    if not all(column.strict for column in columns):
        return "it is not STRICT, so SQLite would store any value in any column. End its CREATE TABLE with STRICT"
    for declared, column in zip(table.columns, columns, strict=True):
        if declared.type not in column.holds:
            return f"column {column.name!r} is {column.type or 'without a type'}, which cannot hold {declared.type}"
    key = tuple(column.name for column in sorted((c for c in columns if c.key is not None), key=lambda c: c.key or 0))
    if key != table.key:
        return f"its primary key is ({', '.join(key)}), declared is ({', '.join(table.key)})"
    return None
