"""`projections status`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs
import click

from projections.cli.options import (
    database_option,
    examples,
    model_option,
    nats_option,
    opened_log,
    output_options,
    run,
)
from projections.cli.output import Output
from projections.cli.root import ExitCode
from projections.models import load

if TYPE_CHECKING:
    from eventlog import EventLog, Head
    from projections.model import Projection
    from projections.store import Checkpoint


@attrs.frozen(kw_only=True)
class _Line:
    """What there is to say of a projection. `problem`: why it cannot go on, None where it can."""

    projection: str
    version: int
    position: int
    head: int
    lag_events: int
    lag_seconds: float
    applied: int
    problem: str | None


@click.command(
    epilog=examples(
        "projections status",
        "projections status --database sqlite:.data/gctd.db --json",
        "projections status --digest       also a digest of all rows, to compare two databases by",
    )
)
@model_option
@nats_option
@database_option
@click.option("--digest", is_flag=True, help="Read all rows and print their digest, too.")
@output_options
def status(output: Output, model_name: str, nats_url: str, database: str, *, digest: bool) -> int:
    """Show how far each projection has come, and whether it can go on; also while the service runs."""
    return run(output, _status(output, model_name, nats_url, database, with_digest=digest))


async def _status(output: Output, model_name: str, nats_url: str, database: str, *, with_digest: bool) -> int:
    from projections.databases import reader_at  # noqa: PLC0415 - slow
    from projections.fold import dump  # noqa: PLC0415 - slow

    model = load(model_name)
    async with reader_at(database) as reader, opened_log(nats_url, model) as log:
        checkpoints = await reader.checkpoints()
        schema = await reader.schema()
        digest = (await dump(reader, model)).digest if with_digest else None
        head = await log.head()
        lines = [await _line(projection, checkpoints.get(projection.name), log, head) for projection in model.projections]
    if output.json:
        document: dict[str, Any] = {
            "read_model": model.name,
            "database": database,
            "schema": {"version": schema.version, "dirty": schema.dirty},
            "stream": model.stream,
            "incarnation": head.incarnation,
            "head": head.last,
            "projections": [attrs.asdict(line) for line in lines],
        }
        output.document(document | ({"digest": digest} if digest else {}))
    else:
        titles = ("PROJECTION", "VERSION", "POSITION", "HEAD", "LAG", "SECONDS", "APPLIED", "PROBLEM")
        output.table(titles, [_cells(line) for line in lines])
        if digest:
            output.line("digest", digest)
    return ExitCode.CONFLICT if schema.dirty or any(line.problem for line in lines) else ExitCode.OK


def _cells(line: _Line) -> list[str]:
    return ["-" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value) for value in attrs.astuple(line)]


async def _line(projection: Projection, checkpoint: Checkpoint | None, log: EventLog, head: Head) -> _Line:
    position = 0 if checkpoint is None else checkpoint.sequence
    problem = _problem(projection, checkpoint, head)
    waiting = None if problem or position >= head.last else await log.at(position + 1)
    return _Line(
        projection=projection.name,
        version=projection.version if checkpoint is None else checkpoint.version,
        position=position,
        head=head.last,
        lag_events=max(0, head.last - position),
        lag_seconds=0.0 if waiting is None else max(0.0, (datetime.now(UTC) - waiting.at).total_seconds()),
        applied=0 if checkpoint is None else checkpoint.applied,
        problem=problem,
    )


def _problem(projection: Projection, checkpoint: Checkpoint | None, head: Head) -> str | None:
    position = 0 if checkpoint is None else checkpoint.sequence
    if checkpoint is not None and checkpoint.incarnation != head.incarnation:
        return "the stream was created anew"
    if position > head.last:
        return "ahead of the stream: its end was lost"
    if position + 1 < head.first:
        return "behind the stream: its beginning was removed"
    if checkpoint is not None and checkpoint.version > projection.version:
        return f"made by version {checkpoint.version}, this program has {projection.version}"
    return None
