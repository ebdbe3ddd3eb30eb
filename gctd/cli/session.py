"""Commands that ask a server: their common options, and what they work with."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import attrs
import click

from gctd.cli.invocation import Invocation, begin
from gctd.cli.options import DURATION, Sources, output_options, setting_options
from gctd.cli.output import Output
from gctd.cli.run import run
from gctd.client.errors import ClientError

if TYPE_CHECKING:
    from gctd.client.api import Client
    from gctd.settings import Settings

WAITED = 5.0
"""Seconds for which nothing has been taken up, after which the user is told where there is no worker to do it."""


@attrs.frozen
class Session:
    """A client of the server, the output, and the run of the program that both belong to."""

    client: Client
    output: Output
    invocation: Invocation

    def leaves_behind(self, what: str, hint: str) -> None:
        """From now on, whoever interrupts the command is told what goes on without it and how to come back to it."""
        self.invocation.goes_on, self.invocation.goes_on_hint = what, hint

    @asynccontextmanager
    async def missing_worker_told(self, waiting: Callable[[], bool]) -> AsyncIterator[None]:
        """Say so, once, where something is still `waiting` after a while and no worker takes jobs."""

        async def look() -> None:
            await asyncio.sleep(WAITED)
            if waiting():
                try:
                    states = {worker.status for worker in await self.client.workers()}
                except ClientError as error:
                    self.output.detail(f"the workers are not known: {error}")
                    return
                if "paused" in states and "online" not in states:
                    self.output.note("note: every worker is paused; let one go on with: gctd worker unpause ID")
                elif "online" not in states:
                    self.output.note("note: no worker is running; start one with: gctd worker")

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking


def client_command(*, not_found: str | None = None) -> Callable[[Callable[..., Coroutine[Any, Any, int]]], Callable[..., int]]:
    """Make the function of a command out of `async def f(session, ...) -> exit code`, with the options common to all.

    `not_found`: what to do where the server has no such thing; `{name}` in it stands for the argument of that name.
    """

    def decorate(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
        @setting_options("url")
        @click.option("--timeout", type=DURATION, help="Give up after this time, as in 90s or 10m.  [default: never]")
        @output_options
        @click.pass_context
        @wraps(command)
        def run_command(
            ctx: click.Context, /, *, sources: Sources, timeout: float | None, output: Output, **arguments: Any
        ) -> int:
            given = {name: shlex.quote(value) for name, value in arguments.items() if isinstance(value, str)}
            hint = None if not_found is None else not_found.format(**given)
            invocation = begin(ctx, output, not_found=hint)
            return run(_run(command, sources.load().settings, invocation, arguments), timeout=timeout)

        return run_command

    return decorate


async def _run(
    command: Callable[..., Coroutine[Any, Any, int]], settings: Settings, invocation: Invocation, arguments: dict[str, Any]
) -> int:
    from gctd.client.api import Client  # noqa: PLC0415 - help and completion do without it

    async with Client(settings.url, token=settings.auth_token, trace=invocation.output.detail) as client:
        return await command(Session(client, invocation.output, invocation), **arguments)
