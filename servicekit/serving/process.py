"""A process that answers requests until a signal ends it in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import structlog
from aiohttp import web

from httpkit.edge import Edge
from httpkit.server.serving import ListenAddress, serving, termination
from servicekit.settings import Listening, limits_of, tls_of

_log = structlog.get_logger(__name__)

Application: TypeAlias = tuple[web.Application, Edge]
"""An application and its edge."""
Opened: TypeAlias = AbstractAsyncContextManager[Application]
"""An application with all that it needs, while a block runs."""


@asynccontextmanager
async def listening(settings: Listening, opened: Opened) -> AsyncIterator[ListenAddress]:
    """Answer requests while the block runs, which gets the address. Raises OSError for one that is taken."""
    async with (
        opened as (app, edge),
        serving(app, edge, host=settings.host, port=settings.port, limits=limits_of(settings), tls=tls_of(settings)) as address,
    ):
        yield address


async def serve_application(settings: Listening, opened: Opened, *, on_ready: Callable[[ListenAddress], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; `on_ready` gets the address when requests are answered."""
    with termination() as signalled:
        async with listening(settings, opened) as address:
            on_ready(address)
            received = await signalled
            _log.info("ending", signal=received.name)
