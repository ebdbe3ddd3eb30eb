"""Parts of the commands that work on a read model: the progress of a replay, and orders to the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from terminalkit.display.output import Output
from terminalkit.display.progress_bar import bar

if TYPE_CHECKING:
    from eventlog.jetstream.log import JetStreamLog
    from projections.model import ReadModel
    from projections.projector.projector import Projector
    from projections.rebuild.operations import AdminResult, OrderKind
    from projections.rebuild.verify import Run
    from projections.store import Parked


def parked_line(one: Parked) -> str:
    """A parked aggregate in a line."""
    return f"{one.projection} {one.subject}: sequence {one.sequence}, {one.waiting} wait: {one.error}"


def shown(output: Output, what: str) -> Run:
    """Return a function that runs a projector with a progress bar."""

    async def run(projector: Projector, until: int) -> None:
        async with bar(output, what, "events", lambda: (projector.status().position, until)):
            await projector.run(until=until)

    return run


async def ordered(
    work: OrderKind,
    database: str,
    log: JetStreamLog,
    model: ReadModel,
    *,
    projection: str | None = None,
    aggregate: str | None = None,
) -> AdminResult:
    """Let the running service do an operation, or do it in this process if no service runs.

    Raises OrderRefused, ProjectionError, Unavailable, OutcomeUnknown, StoreInUse.
    """
    import msgspec  # noqa: PLC0415 - slow

    from eventlog import OutcomeUnknown, Unavailable  # noqa: PLC0415 - slow
    from eventlog.jetstream.requests import ask  # noqa: PLC0415 - slow
    from projections.projector.projector import Projector  # noqa: PLC0415 - slow
    from projections.rebuild.operations import AdminCommand, AdminHandler, outcome_of, subject_of  # noqa: PLC0415 - slow
    from projections.stores.databases import copies_of, store_at  # noqa: PLC0415 - slow

    store = store_at(database)
    order = AdminCommand(work=work, database=store.identity, projection=projection, aggregate=aggregate)
    try:
        return outcome_of(await ask(log.connection, subject_of(model), msgspec.json.encode(order)))
    except OutcomeUnknown:
        raise
    except Unavailable:  # no service runs, so the tables are not in use
        async with store:
            projector = Projector(log, store, model)
            await projector.load()
            return await AdminHandler(projector, store, copies_of(store), log, model).do(order)
