"""`projections status | verify | rebuild | resume | switch | rollback`, and `projections migrate up | down | version | force`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs
import click

from projections.cli.options import (
    carried_out,
    connected,
    database_option,
    model_named,
    model_option,
    nats_option,
    opened_log,
    parked_line,
    with_progress,
)
from terminalkit.coroutine import Choice, command, examples
from terminalkit.display.table import Column
from terminalkit.failure import ExitCode
from terminalkit.invocation import Invocation

if TYPE_CHECKING:
    from projections.migrations import Migrations
    from projections.model import ReadModel
    from projections.rebuild.report import ProjectionStatus
    from projections.rebuild.verify import Verification
    from projections.store import Mark


@click.command(
    epilog=examples(
        "projections status",
        "projections status --database sqlite:bank.db --json",
        "projections status --digest       also a digest of all rows, to compare two databases by",
    )
)
@model_option
@nats_option
@database_option
@click.option("--digest", is_flag=True, help="Also read all rows and print their digest.")
@command(logs=True)
async def status(invocation: Invocation, *, model: ReadModel, nats_url: str, database: str, digest: bool) -> int:
    """Show the position of each projection, and whether it can continue. The service may run."""
    from projections.rebuild.report import standing
    from projections.rebuild.verify import dump
    from projections.stores.databases import copies_of, reader_at, shown

    output = invocation.output
    async with reader_at(database) as reader, opened_log(nats_url, model) as log:
        report = await standing(reader, copies_of(reader), log, model)
        whole = (await dump(reader, model)).digest if digest else None
    if output.json:
        document: dict[str, Any] = {"database": shown(database)} | attrs.asdict(report) | ({"digest": whole} if whole else {})
        document["parked"] = len(report.parked)
        output.document(document)
    else:
        numbers = ("VERSION", "POSITION", "HEAD", "LAG", "SECONDS", "APPLIED", "PARKED", "WAITING")
        columns = [Column("PROJECTION", "id"), *(Column(title, "number") for title in numbers), Column("PROBLEM")]
        output.table(columns, [_cells(line) for line in report.projections])
        for copy in report.copies:
            output.row(["copy", copy.part, str(copy.position), copy.problem or "can be switched to"])
        if whole:
            output.row(["digest", whole])
        if report.parked:
            output.note(f"{len(report.parked)} parked: `projections parked` lists them")
    return ExitCode.CONFLICT if report.schema.dirty or any(line.problem for line in report.projections) else ExitCode.OK


def _cells(status: ProjectionStatus) -> list[str]:
    return [
        "-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value) for value in attrs.astuple(status)
    ]


@click.command(
    epilog=examples(
        "projections verify --database sqlite:bank.db",
        "projections verify --copy new     the copy that a rebuild made",
        "projections verify --json",
    )
)
@model_option
@nats_option
@database_option
@click.option("--copy", "part", type=Choice(["new", "old"]), help="Look at a copy, not at the live tables.")
@command(logs=True, busy=True)
async def verify(invocation: Invocation, *, model: ReadModel, nats_url: str, database: str, part: str | None) -> int:
    """Fold the log and compare the result with the tables row by row. The service may run.

    Each commit has to follow the one before it in its aggregate, and its state has to equal the fold of the events. Exit code 5:
    a difference, a parked aggregate, a missing key of a person who is not erased, or a record of the log that cannot be read,
    also behind the position of the tables.
    """
    from projections.rebuild import verify as fold
    from projections.rebuild.verify import audit
    from projections.store import CopyPart
    from projections.stores.databases import copies_at, reader_at

    output = invocation.output
    reader = reader_at(database) if part is None else copies_at(database).reader(CopyPart(part))
    async with reader, opened_log(nats_url, model) as log:
        broken = await reader.problems(thorough=True)
        verdict = await fold.verify(reader, log, model, run=with_progress(output, "folding"), dumped=output.json)
        until = max(verdict.sequence, (await log.head()).last)
        looked = await audit(log, model, until=until, marks=[*await reader.marks(model.stream), *_reached(verdict, model)])
        parked = await reader.parked()
    missing = await _missing_keys(nats_url, model)
    difference = verdict.difference
    rows = [
        *(("broken", problem) for problem in broken),
        *([] if difference is None else [("differs", str(difference))]),
        *(("log", problem) for problem in looked.problems),
        *([("keys", f"keys of persons: {missing} are missing")] if missing else []),
        *(("parked", parked_line(aggregate)) for aggregate in parked),
    ]
    sound = not rows
    if output.json:
        document: dict[str, Any] = {
            "read_model": model.name,
            "sequence": verdict.sequence,
            "equal": sound,
            "difference": None if difference is None else attrs.asdict(difference) | {"text": str(difference)},
            "broken": list(broken),
            "log": list(looked.problems),
            "missing_keys": missing,
            "parked": len(parked),
            "parked_aggregates": [parked_line(aggregate) for aggregate in parked],
            "digest": verdict.dump and verdict.dump.digest,
        }
        output.document(document)
    else:
        for row in rows:
            output.row(row)
        if sound:
            output.note(f"equal to a fold of the log up to sequence {verdict.sequence}")
    if (advice := _advice({kind for kind, _ in rows}, len(parked))) is not None:
        output.note(advice)
    return ExitCode.OK if sound else ExitCode.CONFLICT


def _advice(kinds: Collection[str], parked: int) -> str | None:
    """The remedy for problems of these kinds, None without one: first for the log, from which the rest is made."""
    if "log" in kinds:
        return "keep the tables and the log as they are: restore the stream from a backup or a replica"
    if "keys" in kinds:
        return "restore the copy of the keys: see docs/guides/operation.md, Backup and restore"
    if "parked" in kinds:
        return f"{parked} parked: `projections unpark` applies what waits"
    return "`projections rebuild` rebuilds the read model next to the live tables" if kinds else None


async def _missing_keys(nats_url: str, model: ReadModel) -> int:
    """How many keys of persons the log needs that are not in the stream of its keys."""
    from eventlog.admin.declarations import load_declarations
    from eventlog.admin.reconcile import needed_keys
    from eventlog.jetstream.keyring import JetStreamKeyring

    missing = 0
    for stream in load_declarations().streams:
        if stream.keys_of is not None and stream.keys_of["stream"] == model.stream:
            async with connected(nats_url) as connection:
                if needed := set(await needed_keys(connection, stream)):
                    (subjects,) = stream.config["subjects"]
                    keyring = JetStreamKeyring(connection, stream.name, subjects.removesuffix(".*"))
                    needed -= {key.id for key in await keyring.after(0)}
                if needed:  # a person can have been erased in between
                    needed &= set(await needed_keys(connection, stream))
                missing += len(needed)
    return missing


def _reached(verdict: Verification, model: ReadModel) -> Sequence[Mark]:
    """The mark of the tables at their position, if they know it."""
    from projections.store import Mark

    return () if verdict.digest is None else (Mark(model.stream, verdict.sequence, verdict.digest, ""),)


_name = click.argument("name", required=False)


@click.command(epilog=examples("projections switch bank --database sqlite:bank.db"))
@_name
@nats_option
@database_option
@command(logs=True)
async def switch(invocation: Invocation, *, name: str | None, nats_url: str, database: str) -> int:
    """Switch to the copy that a rebuild has made and verified; one that is not what was verified is refused (exit code 5)."""
    from projections.errors import NoCopy
    from projections.rebuild.operations import OperationKind
    from projections.rebuild.rebuild import check_whole
    from projections.store import CopyPart
    from projections.stores.databases import copies_at

    model, copies = model_named(name), copies_at(database)
    if CopyPart.NEW not in await copies.there():
        raise NoCopy("there is no copy: `projections rebuild` makes one")
    async with copies.reader(CopyPart.NEW) as copy:
        await check_whole(copy, model)
    async with opened_log(nats_url, model) as log:
        done = await carried_out(OperationKind.SWITCH, database, log, model)
    _say(invocation, model.name, done.sequence, "switched; `projections rollback` goes back")
    return ExitCode.OK


@click.command(epilog=examples("projections rollback bank --database sqlite:bank.db"))
@_name
@nats_option
@database_option
@command(logs=True)
async def rollback(invocation: Invocation, *, name: str | None, nats_url: str, database: str) -> int:
    """Switch back to the tables that were live before the last switch, brought up to the end of the log first."""
    from projections.rebuild.operations import OperationKind

    model = model_named(name)
    async with opened_log(nats_url, model) as log:
        done = await carried_out(OperationKind.ROLLBACK, database, log, model)
    _say(
        invocation,
        model.name,
        done.sequence,
        "rolled back; the tables that were live are the copy now: `projections resume` verifies it",
    )
    return ExitCode.OK


def _say(invocation: Invocation, model: str, sequence: int, text: str) -> None:
    invocation.output.note(text)
    if invocation.output.json:
        invocation.output.document({"read_model": model, "sequence": sequence})


_GOES_ON = "the copy is kept"
_no_switch = click.option("--no-switch", is_flag=True, help="Make and verify the copy; leave the switch to `projections switch`.")


@click.command(
    epilog=examples(
        "projections rebuild bank --database sqlite:bank.db",
        "projections rebuild balances      the read model that this projection belongs to",
        "projections rebuild --no-switch   then look at it, and: projections switch",
    )
)
@_name
@nats_option
@database_option
@_no_switch
@command(logs=True, busy=True)
async def rebuild(invocation: Invocation, *, name: str | None, nats_url: str, database: str, no_switch: bool) -> int:
    """Rebuild the read model NAME next to the live tables, verify it, and switch to it. Reads and writes continue.

    All projections of the read model are rebuilt together. `projections resume` continues an interrupted rebuild.
    Exit code 5: a record of the log is not sound, or an aggregate is parked. The output names it.
    """
    from projections.store import CopyPart
    from projections.stores.databases import copies_at

    model = model_named(name)
    await copies_at(database).discard(CopyPart.NEW)
    return await _make(invocation, model, nats_url, database, no_switch=no_switch)


@click.command(epilog=examples("projections resume bank --database sqlite:bank.db"))
@_name
@nats_option
@database_option
@_no_switch
@command(logs=True, busy=True)
async def resume(invocation: Invocation, *, name: str | None, nats_url: str, database: str, no_switch: bool) -> int:
    """Continue a stopped rebuild at its position: bring the copy to the end of the log, verify it, and switch to it."""
    from projections.errors import NoCopy
    from projections.store import CopyPart
    from projections.stores.databases import copies_at

    if CopyPart.NEW not in await copies_at(database).there():
        raise NoCopy("there is nothing to resume: `projections rebuild` begins")
    return await _make(invocation, model_named(name), nats_url, database, no_switch=no_switch)


async def _make(invocation: Invocation, model: ReadModel, nats_url: str, database: str, *, no_switch: bool) -> int:
    from projections.rebuild.operations import OperationKind
    from projections.rebuild.rebuild import confirm, fill
    from projections.rebuild.verify import audit
    from projections.store import CopyPart
    from projections.stores.databases import copies_at

    output = invocation.output
    invocation.goes_on, invocation.goes_on_hint = _GOES_ON, f"projections resume {model.name} resumes it"
    async with opened_log(nats_url, model) as log:
        async with copies_at(database).store(CopyPart.NEW) as copy:
            await fill(copy, log, model, run=with_progress(output, "filling"))
            sequence = await confirm(copy, log, model, run=with_progress(output, "verifying"))
            problems = (await audit(log, model, until=sequence)).problems
            parked = await copy.parked()
        output.note(f"the copy equals a fold of the log up to sequence {sequence}")
        if not no_switch:
            sequence = (await carried_out(OperationKind.SWITCH, database, log, model)).sequence
            output.note("switched; `projections rollback` goes back")
    lines = [parked_line(aggregate) for aggregate in parked]
    if output.json:
        document = {"read_model": model.name, "sequence": sequence, "switched": not no_switch, "log": list(problems)}
        output.document(document | {"parked": lines})
    else:
        for problem in problems:
            output.row(["log", problem])
        for line in lines:
            output.row(["parked", line])
    return ExitCode.CONFLICT if problems or parked else ExitCode.OK


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
    from projections.stores.databases import reader_at

    async with reader_at(database) as reader:
        schema = await reader.schema()
    output = invocation.output
    if output.json:
        output.document({"version": schema.version, "dirty": schema.dirty})
    else:
        output.line(f"Current migration version: {schema.version}{' (dirty)' if schema.dirty else ''}")
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
    from projections.migrations import Migrations
    from projections.stores.databases import PATIENCE, store_at

    async with store_at(database, patience=PATIENCE if waiting is None else _PATIENCE, on_waiting=waiting) as store:
        yield Migrations(store, model)
