"""`projections events`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from projections.cli.options import model_option, nats_option, opened_log
from terminalkit.commands.command import command, examples
from terminalkit.display.output import Output
from terminalkit.exits import ExitCode
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from eventlog import AggregateId, Commit
    from projections.model import ReadModel


class _Aggregate(click.ParamType["AggregateId"]):
    """An aggregate by its subject."""

    name = "aggregate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> AggregateId:
        from eventlog import AggregateId  # noqa: PLC0415 - slow

        try:
            return AggregateId.parse(value)
        except ValueError:
            self.fail(f"{value!r} is not <service>.<aggregate>.<id>, as in bank.account.anna", param, ctx)


@click.command(
    epilog=examples(
        "projections events --from 1000 --to 2000",
        "projections events --aggregate bank.account.anna",
        "projections events --type MoneyMoved --json | jq .data.cents",
        "projections events --follow",
    )
)
@model_option
@nats_option
@click.option("--from", "first", type=click.IntRange(min=1), help="First sequence.  [default: the first; --follow: what is new]")
@click.option("--to", "last", type=click.IntRange(min=1), help="Last sequence.  [default: the last one there is]")
@click.option("--follow", is_flag=True, help="Continue with new events until interrupted.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only events of that type; may be given again.")
@click.option("--aggregate", type=_Aggregate(), metavar="SUBJECT", help="Only events of that aggregate: bank.account.anna.")
@command(logs=True)
async def events(
    invocation: Invocation,
    *,
    model: ReadModel,
    nats_url: str,
    first: int | None,
    last: int | None,
    types: tuple[str, ...],
    aggregate: AggregateId | None,
    follow: bool,
) -> int:
    """Print events in the order of the log, one per line; with --json one JSON object per line."""
    if follow and last is not None:
        raise click.UsageError("--follow has no end: leave --to out", click.get_current_context())
    async with opened_log(nats_url, model) as log:
        head = await log.head()
        after = (head.last if follow else head.first - 1) if first is None else first - 1
        until = None if follow else min(last or head.last, head.last)
        if until is not None and until <= after:
            return ExitCode.OK
        batches: Any = log.follow(after=after, until=until, aggregate=aggregate)
        async with aclosing(batches):
            async for commits in batches:
                for record in (record for commit in commits for record in _records(commit)):
                    if not types or record["type"] in types:
                        _print(invocation.output, record)
    return ExitCode.OK


def _print(output: Output, record: dict[str, Any]) -> None:
    if output.json:
        output.record(record)
        return
    data = json.dumps(record["data"], ensure_ascii=False)
    output.row([record["position"], record["at"] or "-", record["aggregate"], record["type"] or "(unreadable)", data])


def _records(commit: Commit) -> Iterator[dict[str, Any]]:
    from eventlog.history.search import records  # noqa: PLC0415 - slow
    from projections.model import timestamp_text  # noqa: PLC0415 - slow

    for record in records(commit):
        place = {"sequence": commit.sequence, "aggregate": record.aggregate, "position": str(record.position)}
        data = json.loads(bytes(record.data))
        if record.problem is not None or record.at is None:
            yield place | {"at": None, "type": None, "data": data, "problem": record.problem}
            continue
        names = ("key", "fingerprint", "correlation", "causation")
        context = {name: value for name in names if (value := getattr(record.context, name)) is not None}
        yield place | {
            "commit": record.commit,
            "at": timestamp_text(record.at),
            "type": record.type,
            "version": record.version,
            "data": data,
            **context,
        }
