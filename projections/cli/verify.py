"""`projections verify`."""

from __future__ import annotations

from typing import Any

import attrs
import click

from projections.cli.options import database_option, model_option, nats_option, opened_log, workers_option
from projections.cli.working import shown
from projections.models import load
from terminalkit.command import command
from terminalkit.exits import ExitCode
from terminalkit.options import examples
from terminalkit.runtime.invocation import Invocation


@click.command(
    epilog=examples(
        "projections verify --database sqlite:.data/gctd.db",
        "projections verify --copy new     the copy that a rebuild made",
        "projections verify --json",
    )
)
@model_option
@nats_option
@database_option
@click.option("--copy", "part", type=click.Choice(["new", "old"]), help="Look at a copy, not at the live tables.")
@workers_option
@command(logs=True, busy=True)
async def verify(invocation: Invocation, *, model_name: str, nats_url: str, database: str, part: str | None, workers: int) -> int:
    """Fold the log afresh and compare with the tables row by row; also while the service runs. Exit code 5: they differ."""
    from projections.parallel import Workers  # noqa: PLC0415 - slow
    from projections.rebuild import verify as fold  # noqa: PLC0415 - slow
    from projections.rebuild.copies import CopyPart  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_at, reader_at  # noqa: PLC0415 - slow

    model, output = load(model_name), invocation.output
    reader = reader_at(database) if part is None else copies_at(database).reader(CopyPart(part))
    async with reader, opened_log(nats_url, model) as log, Workers(model, workers) as deriving:
        broken = await reader.problems(thorough=True)
        verdict = await fold.verify(reader, log, model, run=shown(output, "folding", deriving))
        parked = await reader.parked()
        digest = (await fold.dump(reader, model)).digest if output.json else ""
    difference = verdict.difference
    if output.json:
        document: dict[str, Any] = {
            "read_model": model.name,
            "sequence": verdict.sequence,
            "equal": difference is None and not broken,
            "difference": None if difference is None else attrs.asdict(difference) | {"text": str(difference)},
            "broken": list(broken),
            "parked": len(parked),
            "digest": digest,
        }
        output.document(document)
    else:
        for problem in broken:
            output.row(["broken", problem])
        if difference is not None:
            output.row(["differs", str(difference)])
        if difference is None and not broken:
            output.note(f"equal to a fold of the log up to sequence {verdict.sequence}")
    if difference is not None and parked:
        output.note(f"{len(parked)} parked: `projections unpark` applies what waits")
    elif difference is not None or broken:
        output.note("`projections rebuild` makes the read model again beside the live tables")
    return ExitCode.OK if difference is None and not broken else ExitCode.CONFLICT
