"""`projections migrate up | down | version | force`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from projections.cli.options import database_option, examples, model_option, output_options, run
from projections.cli.output import Output
from projections.models import load

if TYPE_CHECKING:
    from projections.migrations import Migrations


@click.group()
def migrate() -> None:
    """Apply and take back migrations of a read model's schema. The service does it by itself when it starts."""


@migrate.command(epilog=examples("projections migrate up --database sqlite:.data/gctd.db"))
@model_option
@database_option
@output_options
def up(output: Output, model_name: str, database: str) -> None:
    """Apply all that are pending. Tables that this changes fill themselves again from the log when the service runs."""

    async def work() -> None:
        async with _opened(model_name, database) as migrations:
            applied = [str(migration) for migration in await migrations.up()]
        if output.json:
            output.document(applied)
        for migration in [] if output.json else applied:
            output.line("applied", migration)
        if not applied:
            output.note("nothing to do")

    run(output, work())


@migrate.command(epilog=examples("projections migrate down --database sqlite:.data/gctd.db"))
@model_option
@database_option
@output_options
def down(output: Output, model_name: str, database: str) -> None:
    """Take back the last one that was applied."""

    async def work() -> None:
        async with _opened(model_name, database) as migrations:
            taken = await migrations.down()
        if output.json:
            output.document(None if taken is None else str(taken))
        elif taken is not None:
            output.line("taken back", str(taken))
        else:
            output.note("nothing to do")

    run(output, work())


@migrate.command(epilog=examples("projections migrate version --json"))
@model_option
@database_option
@output_options
def version(output: Output, model_name: str, database: str) -> None:
    """Print the version of the schema; also while the service runs."""

    async def work() -> None:
        from projections.databases import reader_at  # noqa: PLC0415 - slow

        load(model_name)
        async with reader_at(database) as reader:
            found = await reader.schema()
        if output.json:
            output.document({"version": found.version, "dirty": found.dirty})
        else:
            output.line(f"Current migration version: {found.version}{' (dirty)' if found.dirty else ''}")

    run(output, work())


@migrate.command(epilog=examples("projections migrate force 3      after the schema was repaired by hand"))
@click.argument("number", type=click.IntRange(min=0))
@model_option
@database_option
@output_options
def force(output: Output, number: int, model_name: str, database: str) -> None:
    """Say that the schema is that of version NUMBER, and clean. Nothing else is changed."""

    async def work() -> None:
        async with _opened(model_name, database) as migrations:
            await migrations.force(number)

    run(output, work())


@asynccontextmanager
async def _opened(model_name: str, database: str) -> AsyncIterator[Migrations]:
    from projections.databases import store_at  # noqa: PLC0415 - slow
    from projections.migrations import Migrations  # noqa: PLC0415 - slow

    async with store_at(database) as store:
        yield Migrations(store, load(model_name))
