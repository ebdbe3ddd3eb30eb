"""Options that several commands have, and what they lead to: which read model, where log and database are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from projections.cli.configured import PLACES, address_of
from projections.models import load, names

if TYPE_CHECKING:
    from eventlog.jetstream.log import JetStreamLog
    from eventlog.jetstream.transport.connection import Connection
    from projections.model import ReadModel

_PATIENCE = 5.0
"""Seconds that the broker has to answer in: somebody sits in front of it."""
MOST_WORKERS = 64
NATS_URL = "nats://nats.infra.svc:4222"


def _database(ctx: click.Context, option: click.Parameter, given: str | None) -> str:
    """The address that is given, else the one that the service of the read model is told."""
    if given:
        return given
    model = model_named(ctx.params.get("model_name") or ctx.params.get("name")).name
    if found := address_of(model):
        return found
    place = PLACES[model]
    raise click.MissingParameter(f"It may also be set as {place.variable}, or as {place.key} in {place.file}.", ctx, option)


nats_option = click.option(
    "--nats-url", envvar="GCTD_NATS_URL", default=NATS_URL, show_default=True, show_envvar=True, help="Address of the broker."
)
database_option = click.option(
    "--database",
    callback=_database,
    metavar="ADDRESS",
    help=(
        "Database of the read model: sqlite:PATH, or postgresql://USER@HOST/NAME; "
        f"else {PLACES['tracker'].variable}, of the pantry {PLACES['pantry'].variable}, or what the service's settings file says."
    ),
)
model_option = click.option(
    "--model",
    "model_name",
    type=click.Choice(names()),
    default=names()[0],
    show_default=True,
    is_eager=True,
    help="The read model.",
)

workers_option = click.option(
    "--workers",
    type=click.IntRange(0, MOST_WORKERS),
    default=0,
    show_default=True,
    help="Processes that work out the rows, aggregate by aggregate; 0: this one does. The tables are the same with any number.",
)


def model_named(name: str | None) -> ReadModel:
    """The read model of that name, or the one that a projection of that name belongs to; without a name the first.

    Raises click.UsageError.
    """
    if name is None or name in names():
        return load(name or names()[0])
    known = [load(one) for one in names()]
    for model in known:
        if any(projection.name == name for projection in model.projections):
            return model
    every = ", ".join(f"{model.name} ({', '.join(p.name for p in model.projections)})" for model in known)
    raise click.UsageError(f"{name!r} is neither a read model nor a projection; there are {every}", click.get_current_context())


@asynccontextmanager
async def connected(nats_url: str) -> AsyncIterator[Connection]:
    """A connection to the broker. Raises eventlog.Unavailable."""
    from eventlog.jetstream.transport.connection import Connection  # noqa: PLC0415 - slow

    async with Connection.open(nats_url, name="projections", timeout=_PATIENCE) as connection:
        yield connection


@asynccontextmanager
async def opened_log(nats_url: str, model: ReadModel) -> AsyncIterator[JetStreamLog]:
    """The event log that a read model is made from. Raises eventlog.Unavailable."""
    from eventlog.jetstream.log import JetStreamLog  # noqa: PLC0415 - slow

    async with connected(nats_url) as connection:
        yield JetStreamLog(connection, model.stream, model.registry)
