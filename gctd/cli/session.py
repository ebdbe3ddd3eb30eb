"""Commands that ask a server: their common options, and the objects that they work with."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import attrs

from gctd.cli.options import Sources, setting_options
from terminalkit.client.errors import ClientError, NotFound
from terminalkit.commands.command import command
from terminalkit.display.output import Output
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from gctd.client.api import Client

REPOSITORIES = "gctd repo list"
"""Advice if a repository is not found that no user wants to register."""
WAITED = 5.0
"""Seconds without progress after which the user is informed if no worker is present."""


@attrs.frozen
class Session:
    """A client of the server, the output, and the run of the program that both belong to."""

    client: Client
    output: Output
    invocation: Invocation

    def leaves_behind(self, what: str, hint: str) -> None:
        """Set the notes for an interrupted command: the work that continues without it, and the command to return to it."""
        self.invocation.goes_on, self.invocation.goes_on_hint = what, hint

    @asynccontextmanager
    async def missing_worker_told(self, waiting: Callable[[], bool]) -> AsyncIterator[None]:
        """Print a note, once, if something is still `waiting` after a while and no worker takes jobs."""

        async def look() -> None:
            await asyncio.sleep(WAITED)
            if waiting():
                try:
                    workers = await self.client.workers()
                except ClientError as error:
                    self.output.detail(f"the workers are not known: {error}")
                    return
                if any(worker.takes_jobs for worker in workers):
                    return
                if any(worker.status == "paused" for worker in workers):
                    self.output.note("note: every worker is paused; resume one with: gctd worker unpause ID")
                else:
                    self.output.note("note: no worker is running; start one with: gctd worker")

        looking = asyncio.create_task(look())
        try:
            yield
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking


async def _advise_to_register(client: Client, invocation: Invocation, url: str | None) -> None:
    """Replace advice that would fail in turn: a command about a repository that is not registered."""
    if url is None or invocation.not_found in (None, REPOSITORIES):
        return
    try:
        await client.repo(url)
    except NotFound:
        invocation.not_found = f"gctd repo add {shlex.quote(url)}"


def client_command(
    *, not_found: str | None = None, time_limit: str = "--timeout"
) -> Callable[[Callable[..., Coroutine[Any, Any, int]]], Callable[..., int]]:
    """Make the function of a command out of `async def f(session, ...) -> exit code`, with the options common to all.

    `not_found`: the remedy if the server does not have the named resource; `{name}` in it is replaced by the argument of that
    name. `time_limit` as in `terminalkit.commands.command.command`.
    """

    def decorate(work: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
        @setting_options("url")
        @command(not_found=not_found, time_limit=time_limit)
        @wraps(work)
        async def with_session(invocation: Invocation, *, sources: Sources, **arguments: Any) -> int:
            from gctd.client.api import Client  # noqa: PLC0415 - help and completion do without it

            settings = sources.load().values
            async with Client(settings.url, token=settings.auth_token, trace=invocation.output.detail) as client:
                try:
                    return await work(Session(client, invocation.output, invocation), **arguments)
                except NotFound:
                    await _advise_to_register(client, invocation, arguments.get("url"))
                    raise

        return with_session

    return decorate
