"""`pantry migrate up | down | version | force`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import click

from pantry.cli.options import Sources, setting_options
from pantry.domain.errors import PantryError
from terminalkit import ExitCode, Invocation, command, examples

if TYPE_CHECKING:
    from projections import Migrations

_PATIENCE = 30.0
"""Seconds for which `up` waits for another process that migrates, or has not ended yet."""


@click.group()
def migrate() -> None:
    """Apply and take back migrations of the tables.

    `serve` applies pending migrations when it starts.
    """


@migrate.command(epilog=examples("pantry migrate up", "pantry migrate up --json", "pantry migrate up --verbose"))
@setting_options("database_url")
@command(logs=True)
async def up(invocation: Invocation, *, sources: Sources) -> int:
    """Apply all that are pending. Changed tables are rebuilt from the log when the service runs."""

    def waiting(owner: str) -> None:
        invocation.output.note(f"the database is in use by {owner}: waiting for it, for at most {_PATIENCE:g} s")

    async with _opened(sources, waiting) as migrations:
        applied = [str(migration) for migration in await migrations.up()]
    if invocation.output.json:
        invocation.output.document(applied)
    for migration in [] if invocation.output.json else applied:
        invocation.output.line(f"applied {migration}")
    if not applied:
        invocation.output.note("nothing to do")
    return ExitCode.OK


@migrate.command(epilog=examples("pantry migrate down", "pantry migrate down --json", "pantry migrate down --verbose"))
@setting_options("database_url")
@command(logs=True)
async def down(invocation: Invocation, *, sources: Sources) -> int:
    """Take back the last one that was applied."""
    async with _opened(sources) as migrations:
        taken = await migrations.down()
    if invocation.output.json:
        invocation.output.document(None if taken is None else str(taken))
    elif taken is not None:
        invocation.output.line(f"taken back {taken}")
    else:
        invocation.output.note("nothing to do")
    return ExitCode.OK


@migrate.command(
    epilog=examples(
        "pantry migrate version", "pantry migrate version --database-url sqlite:pantry.db", "pantry migrate version --json"
    )
)
@setting_options("database_url")
@command(logs=True)
async def version(invocation: Invocation, *, sources: Sources) -> int:
    """Print the number of the last migration applied, and whether it was left half done; also while the service runs."""
    from projections.stores import reader_at  # noqa: PLC0415 - slow

    async with reader_at(sources.load(running=("database_url",)).values.database_url) as reader:
        found = await reader.schema()
    if invocation.output.json:
        invocation.output.document({"version": found.version, "dirty": found.dirty})
    else:
        invocation.output.line(f"Current migration version: {found.version}{' (dirty)' if found.dirty else ''}")
    return ExitCode.OK


@migrate.command(
    epilog=examples(
        "pantry migrate force 4     once the tables were repaired by hand",
        "pantry migrate force 0 && pantry migrate up     once all of them were dropped",
        "pantry migrate force 4 --database-url sqlite:pantry.db",
    )
)
@click.argument("number", type=click.IntRange(min=0))
@setting_options("database_url")
@command(logs=True)
async def force(invocation: Invocation, *, number: int, sources: Sources) -> int:
    """Declare that the tables have version NUMBER, and are clean. Nothing else is changed."""
    async with _opened(sources) as migrations:
        await migrations.force(number)
    invocation.output.note(f"the tables are taken for version {number}")
    return ExitCode.OK


class ForeignTables(PantryError):
    """The database has tables that no migration of ours has made."""

    status = HTTPStatus.CONFLICT


@asynccontextmanager
async def _opened(sources: Sources, waiting: Callable[[str], object] | None = None) -> AsyncIterator[Migrations]:
    """The migrations of the database. With `waiting`, the name of the waiting command, another process is waited for."""
    from pantry.readmodel import MODEL  # noqa: PLC0415 - slow
    from projections import Migrations, StoreForeign  # noqa: PLC0415 - slow
    from projections.stores import PATIENCE, store_at  # noqa: PLC0415 - slow

    patience = PATIENCE if waiting is None else _PATIENCE
    async with AsyncExitStack() as stack:
        store = store_at(sources.load(running=("database_url",)).values.database_url, patience=patience, on_waiting=waiting)
        try:
            await stack.enter_async_context(store)
        except StoreForeign as error:
            raise ForeignTables(
                f"{error}. If it is the first pantry program, take its data over: pantry takeover --from URL"
            ) from error
        yield Migrations(store, MODEL)
