"""`projections migrate up | down | version | force`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from projections.cli.options import database_option, model_option
from terminalkit.commands.command import command, examples
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from projections.migrations import Migrations
    from projections.model import ReadModel

_PATIENCE = 30.0
"""Seconds for which `up` waits for another process that migrates, or has not ended yet."""


@click.group()
def migrate() -> None:
    """Apply and take back migrations of a read model's schema. The service does it by itself when it starts."""


@migrate.command(epilog=examples("projections migrate up --database sqlite:bank.db"))
@model_option
@database_option
@command(logs=True)
async def up(invocation: Invocation, *, model: ReadModel, database: str) -> int:
    """Apply all pending migrations. The service refills changed tables from the log when it runs."""

    def waiting(owner: str) -> None:
        invocation.output.note(f"the database is in use by {owner}: waiting for it, for at most {_PATIENCE:g} s")

    output = invocation.output
    async with _opened(model, database, waiting) as migrations:
        applied = [str(migration) for migration in await migrations.up()]
    if output.json:
        output.document(applied)
    for migration in [] if output.json else applied:
        output.row(["applied", migration])
    if not applied:
        output.note("nothing to do")
    return ExitCode.OK


@migrate.command(epilog=examples("projections migrate down --database sqlite:bank.db"))
@model_option
@database_option
@command(logs=True)
async def down(invocation: Invocation, *, model: ReadModel, database: str) -> int:
    """Take back the last one that was applied."""
    output = invocation.output
    async with _opened(model, database) as migrations:
        taken = await migrations.down()
    if output.json:
        output.document(None if taken is None else str(taken))
    elif taken is not None:
        output.row(["taken back", str(taken)])
    else:
        output.note("nothing to do")
    return ExitCode.OK


@migrate.command(epilog=examples("projections migrate version --json"))
@model_option
@database_option
@command(logs=True)
async def version(invocation: Invocation, *, model: ReadModel, database: str) -> int:  # noqa: ARG001 - it names the database
    """Print the version of the schema; also while the service runs."""
    from projections.stores.databases import reader_at  # noqa: PLC0415 - slow

    async with reader_at(database) as reader:
        found = await reader.schema()
    output = invocation.output
    if output.json:
        output.document({"version": found.version, "dirty": found.dirty})
    else:
        output.line(f"Current migration version: {found.version}{' (dirty)' if found.dirty else ''}")
    return ExitCode.OK


@migrate.command(epilog=examples("projections migrate force 3      after the schema was repaired by hand"))
@click.argument("number", type=click.IntRange(min=0))
@model_option
@database_option
@command(logs=True)
async def force(invocation: Invocation, *, number: int, model: ReadModel, database: str) -> int:
    """Record that the schema has version NUMBER and is clean. Tables are not changed."""
    async with _opened(model, database) as migrations:
        await migrations.force(number)
    invocation.output.note(f"the version is {number} now")
    return ExitCode.OK


@asynccontextmanager
async def _opened(model: ReadModel, database: str, waiting: Callable[[str], object] | None = None) -> AsyncIterator[Migrations]:
    """Open the migrations of a database. With `waiting`, wait for another process; `waiting` is called with its name."""
    from projections.migrations import Migrations  # noqa: PLC0415 - slow
    from projections.stores.databases import PATIENCE, store_at  # noqa: PLC0415 - slow

    async with store_at(database, patience=PATIENCE if waiting is None else _PATIENCE, on_waiting=waiting) as store:
        yield Migrations(store, model)
