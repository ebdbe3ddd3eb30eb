"""Commands that ask a server: their common options and their session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any

import attrs

from pantry.cli.options import Sources, setting_options
from terminalkit.client.errors import NotFound
from terminalkit.commands.command import command
from terminalkit.display.output import Output
from terminalkit.runtime.invocation import Invocation

if TYPE_CHECKING:
    from pantry.client.api import Client


@attrs.frozen
class Session:
    """A client of the server, the output, and the run of the program that both belong to."""

    client: Client
    output: Output
    invocation: Invocation

    async def category_id(self, name: str | None) -> str | None:
        """The id of a category by its name or id. Raises NotFound."""
        if not name:
            return name
        for category in await self.client.categories():
            if name in {category.id, category.name}:
                return category.id
        self.invocation.not_found = "pantry category list"
        raise NotFound(f"there is no category {name}")


def client_command(
    *, not_found: str | None = None, request_timeout: float | None = None
) -> Callable[[Callable[..., Coroutine[Any, Any, int]]], Callable[..., int]]:
    """Make the function of a command out of `async def f(session, ...) -> exit code`, with the options common to all.

    `not_found`: advice if the server does not find the thing; `{name}` in it is replaced by the argument of that name.
    `request_timeout`: the longest time of one request in seconds, if the client's own bound is too long.
    """

    def decorate(work: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
        @setting_options("url")
        @command(not_found=not_found)
        @wraps(work)
        async def with_session(invocation: Invocation, *, sources: Sources, **arguments: Any) -> int:
            from pantry.client.api import Client  # noqa: PLC0415 - as above
            from terminalkit.client.service import TIMEOUT  # noqa: PLC0415 - help and completion do without it

            settings = sources.load().values
            timeout = request_timeout or TIMEOUT
            trace = invocation.output.detail
            async with Client(settings.url, token=settings.auth_token, timeout=timeout, trace=trace) as client:
                return await work(Session(client, invocation.output, invocation), **arguments)

        return with_session

    return decorate
