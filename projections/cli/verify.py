"""`projections verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import click

from projections.cli.options import connected, database_option, model_option, nats_option, opened_log, parked_line, shown
from terminalkit.commands.command import Choice, command, examples
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from projections.model import ReadModel
    from projections.rebuild.verify import Verification
    from projections.store import Mark


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
    from projections.rebuild import verify as fold  # noqa: PLC0415 - slow
    from projections.rebuild.audit import audit  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at, reader_at  # noqa: PLC0415 - slow

    output = invocation.output
    reader = reader_at(database) if part is None else copies_at(database).reader(CopyPart(part))
    async with reader, opened_log(nats_url, model) as log:
        broken = await reader.problems(thorough=True)
        verdict = await fold.verify(reader, log, model, run=shown(output, "folding"), dumped=output.json)
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
        *(("parked", parked_line(one)) for one in parked),
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
            "parked_aggregates": [parked_line(one) for one in parked],
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
    from eventlog.admin.declarations import load  # noqa: PLC0415 - slow
    from eventlog.admin.reconcile import needed_keys  # noqa: PLC0415 - slow
    from eventlog.jetstream.keyring import JetStreamKeyring  # noqa: PLC0415 - slow

    missing = 0
    for stream in load().streams:
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
    from projections.store import Mark  # noqa: PLC0415 - slow

    return () if verdict.digest is None else (Mark(model.stream, verdict.sequence, verdict.digest, ""),)
