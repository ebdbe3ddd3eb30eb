"""`projections verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import click

from projections.cli.options import database_option, model_option, nats_option, opened_log, parked_line, shown
from terminalkit.commands.command import Choice, command, examples
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    a difference, a parked aggregate, or a record of the log that cannot be read, also behind the position of the tables.
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
    difference = verdict.difference
    sound = difference is None and not broken and not looked.problems and not parked
    if output.json:
        document: dict[str, Any] = {
            "read_model": model.name,
            "sequence": verdict.sequence,
            "equal": sound,
            "difference": None if difference is None else attrs.asdict(difference) | {"text": str(difference)},
            "broken": list(broken),
            "log": list(looked.problems),
            "parked": len(parked),
            "parked_aggregates": [parked_line(one) for one in parked],
            "digest": verdict.dump and verdict.dump.digest,
        }
        output.document(document)
    else:
        for problem in broken:
            output.row(["broken", problem])
        if difference is not None:
            output.row(["differs", str(difference)])
        for problem in looked.problems:
            output.row(["log", problem])
        for one in parked:
            output.row(["parked", parked_line(one)])
        if sound:
            output.note(f"equal to a fold of the log up to sequence {verdict.sequence}")
    if looked.problems:
        output.note("keep the tables and the log as they are: restore the stream from a backup or a replica")
    elif parked:
        output.note(f"{len(parked)} parked: `projections unpark` applies what waits")
    elif difference is not None or broken:
        output.note("`projections rebuild` rebuilds the read model next to the live tables")
    return ExitCode.OK if sound else ExitCode.CONFLICT


def _reached(verdict: Verification, model: ReadModel) -> Sequence[Mark]:
    """The mark of the tables at their position, if they know it."""
    from projections.store import Mark  # noqa: PLC0415 - slow

    return () if verdict.digest is None else (Mark(model.stream, verdict.sequence, verdict.digest, ""),)
