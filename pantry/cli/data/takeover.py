"""`pantry takeover`: the data of the first pantry program."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from pantry.cli.options import Sources, setting_options
from pantry.domain.quantity import number, text
from terminalkit import ExitCode, Invocation, check_default_broker, command, examples
from terminalkit.display import Column, Output, count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pantry.takeover.plan import Problem, ProductPlan, TakeOverPlan

_STOCKS = ("stored", "movements")


@click.command(
    epilog=examples(
        "pantry takeover --from postgres://user:password@localhost:5432/pantry     only shows what it would do",
        "pantry takeover --from postgres://localhost/pantry --zone Europe/Berlin --write",
        "pantry takeover --from postgres://localhost/pantry --stock movements --write --json",
    )
)
@click.option("--from", "source", required=True, metavar="URL", help="Database of the first program; it is only read.")
@click.option("--zone", default="UTC", show_default=True, help="Time zone of the first program's server: its times have none.")
@click.option(
    "--stock",
    type=click.Choice(_STOCKS),
    default="stored",
    show_default=True,
    help="The right stock if both differ: the stored one, which people saw, or the sum of the movements.",
)
@click.option("--write", is_flag=True, help="Take the data over. Without it the command only shows what it would do.")
@setting_options("nats_url")
@command(logs=True)
async def takeover(invocation: Invocation, *, sources: Sources, source: str, zone: str, stock: str, write: bool) -> int:
    """Take over the data of the first pantry program.

    Categories, products and movements keep their ids and times. The command may be repeated, also after it was ended early:
    each row is taken over once. Differences between the stored stock and the sum of the movements are listed, and booked with
    a reason. Rows that had to be changed or left out are listed, and the exit code is 7 if a row was left out. The command
    needs the broker, and no server.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - slow, and help does without it

    from eventlog import Commands  # noqa: PLC0415 - likewise
    from eventlog.jetstream import JetStreamLog  # noqa: PLC0415 - likewise
    from pantry.serve import SERVICE  # noqa: PLC0415 - likewise
    from pantry.takeover.carrying import carry_out, ledger_state  # noqa: PLC0415 - likewise
    from pantry.takeover.plan import plan_of  # noqa: PLC0415 - likewise
    from pantry.takeover.source import source_rows  # noqa: PLC0415 - likewise

    try:
        place = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise click.BadParameter(f"{zone!r} is not a time zone, as Europe/Berlin is one", param_hint="--zone") from None
    assert SERVICE.people is not None, "the service has a keyring"
    loaded = sources.load(running=("nats_url",))
    check_default_broker(loaded, invocation.what, up="pantry up", looked=True)
    async with source_rows(source, place) as rows, SERVICE.connected(loaded.values) as connection:
        log = JetStreamLog(connection, SERVICE.model.stream, SERVICE.model.registry, people=SERVICE.people(connection))
        plan = plan_of(rows, await ledger_state(log, rows), datetime.now(UTC), keep_stock=stock == "stored")
        problems = list(plan.problems)
        if write:
            async for planned, refused in carry_out(plan, Commands(log)):
                problems += refused
                invocation.output.detail(f"{planned.ean13}: {count(planned.movements, 'movement')}")
    if invocation.output.json:
        invocation.output.document(_document(plan, problems, written=write))
    else:
        _show(invocation.output, plan, problems, written=write)
    return ExitCode.PARTIAL if any(problem.left_out for problem in problems) else ExitCode.OK


def _document(plan: TakeOverPlan, problems: Sequence[Problem], *, written: bool) -> dict[str, Any]:
    return {
        "written": written,
        "categories": len(plan.categories),
        "products": sum(planned.is_new for planned in plan.products),
        "movements": sum(planned.movements for planned in plan.products),
        "differences": [
            {
                "ean13": planned.ean13,
                "stored": number(planned.stored),
                "summed": number(planned.summed),
                "opening": number(planned.opening),
                "correction": number(planned.correction),
            }
            for planned in _differing(plan)
        ],
        "problems": [{"row": problem.row, "text": problem.text, "left_out": problem.left_out} for problem in problems],
    }


def _differing(plan: TakeOverPlan) -> list[ProductPlan]:
    return [planned for planned in plan.products if planned.differs or planned.opening or planned.correction]


def _show(output: Output, plan: TakeOverPlan, problems: Sequence[Problem], *, written: bool) -> None:
    differing = _differing(plan)
    if differing:
        columns = [
            Column("EAN13", "id"),
            *(Column(name, "number") for name in ("STORED", "SUM", "BOOKED BEFORE", "BOOKED AFTER")),
        ]
        figures = [(one.stored, one.summed, one.opening, one.correction) for one in differing]
        rows = [[one.ean13, *map(text, shown)] for one, shown in zip(differing, figures, strict=True)]
        output.table(columns, rows)
    for problem in problems:
        output.note(f"{problem.row} {problem.text}")
    made = sum(planned.is_new for planned in plan.products)
    moved = sum(planned.movements for planned in plan.products)
    parts = f"{count(made, 'product')}, {count(moved, 'movement')}, categories: {len(plan.categories)},"
    output.note(f"{parts} {'taken over' if written else 'to take over: nothing was written, see --write'}")
    output.note(f"{count(len(differing), 'product')} whose stored stock is not the sum of its movements")
