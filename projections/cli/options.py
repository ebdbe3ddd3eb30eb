"""Options that several commands have, and what they lead to: how to write, which read model, where log and database are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from projections.cli.output import Output
from projections.models import names

if TYPE_CHECKING:
    from eventlog.jetstream.connection import Connection
    from eventlog.jetstream.log import JetStreamLog
    from projections.model import ReadModel

T = TypeVar("T")
Command = Callable[..., Any]

_PATIENCE = 5.0
"""Seconds that the broker has to answer in: somebody sits in front of it."""
NATS_URL = "nats://nats.infra.svc:4222"


def examples(*lines: str) -> str:
    """The end of a command's help: examples, a line each."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def output_options(command: Command) -> Command:
    """Give a command the options that say how to write; it gets an `output`."""

    @click.option("--json", "as_json", is_flag=True, help="Write JSON; errors too, on standard error.")
    @click.option("-q", "--quiet", is_flag=True, help="No notes.")
    @click.option("-v", "--verbose", is_flag=True, help="Where an error happened, on standard error.")
    @click.option("--no-color", is_flag=True, help="No colour, whatever FORCE_COLOR says.")
    @wraps(command)
    def with_output(*args: Any, as_json: bool, quiet: bool, verbose: bool, no_color: bool, **kwargs: Any) -> Any:
        output = Output(json=as_json, quiet=quiet, verbose=verbose, no_color=no_color)
        return command(*args, output=output, **kwargs)

    return with_output


nats_option = click.option(
    "--nats-url", envvar="GCTD_NATS_URL", default=NATS_URL, show_default=True, show_envvar=True, help="Address of the broker."
)
database_option = click.option(
    "--database",
    envvar="GCTD_DATABASE_URL",
    show_envvar=True,
    required=True,
    metavar="sqlite:PATH",
    help="Database of the read model.",
)
model_option = click.option(
    "--model", "model_name", type=click.Choice(names()), default=names()[0], show_default=True, help="The read model."
)


def run(output: Output, work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end; what it logs is shown on standard error with `--verbose` only."""
    import logging  # noqa: PLC0415 - slow
    import sys  # noqa: PLC0415 - with the one above

    import structlog  # noqa: PLC0415 - slow

    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if output.verbose else logging.CRITICAL),
    )
    return asyncio.run(work)


@asynccontextmanager
async def connected(nats_url: str) -> AsyncIterator[Connection]:
    """A connection to the broker. Raises eventlog.Unavailable."""
    from eventlog.jetstream.connection import Connection  # noqa: PLC0415 - slow

    async with Connection.open(nats_url, name="projections", timeout=_PATIENCE) as connection:
        yield connection


@asynccontextmanager
async def opened_log(nats_url: str, model: ReadModel) -> AsyncIterator[JetStreamLog]:
    """The event log that a read model is made from. Raises eventlog.Unavailable."""
    from eventlog.jetstream.log import JetStreamLog  # noqa: PLC0415 - slow

    async with connected(nats_url) as connection:
        yield JetStreamLog(connection, model.stream, model.registry)
