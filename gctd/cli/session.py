"""Commands that ask a server: their common options, and the objects that they work with."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from gctd.cli.options import FLAGS
from terminalkit import lazily
from terminalkit.client import ClientError, ClientSession, NotFound, command_with_client

if TYPE_CHECKING:
    from gctd.client.api import Client

REPOSITORIES = "gctd repo list"
"""Advice if a repository is not found that no user wants to register."""
WAITED = 5.0
"""Seconds without progress after which the user is informed if no worker is present."""


class Session(ClientSession):
    """The session of a command of the tracker."""

    client: Client

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

    async def on_not_found(self, arguments: Mapping[str, Any]) -> None:
        """Replace advice that would fail in turn: a command about a repository that is not registered."""
        url = arguments.get("url")
        if url is None or self.invocation.not_found in (None, REPOSITORIES):
            return
        try:
            await self.client.repo(url)
        except NotFound:
            self.invocation.not_found = f"gctd repo add {shlex.quote(url)}"


client_command = partial(command_with_client, FLAGS, lazily("gctd.client.api:Client"), Session)
