"""The end of an event stream whose token is revoked or expires, or whose session ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from aiohttp import web

from httpkit.errors import HttpkitError
from httpkit.problems import Unauthorized, status_of
from httpkit.server.guard import Guard

log = structlog.get_logger(__name__)


@contextmanager
def ends_with_its_token(request: web.Request, guard: Guard) -> Iterator[None]:
    """Close the connection of a request as soon as its token is not valid, while the block runs."""
    watching = asyncio.create_task(_watch(request, guard))
    try:
        yield
    finally:
        watching.cancel()


async def _watch(request: web.Request, guard: Guard) -> None:
    while True:
        await asyncio.sleep(guard.recheck)
        if not await _is_valid(request, guard):
            log.info("stream ended with its token", path=request.rel_url.raw_path)
            if request.transport is not None:
                request.transport.abort()
            return


async def _is_valid(request: web.Request, guard: Guard) -> bool:
    """Return whether the token is valid, as far as that is known. A stream that was admitted continues while it is not."""
    try:
        return await guard.known(request) is not None
    except Unauthorized:
        return False
    except HttpkitError:
        return True
    except Exception as error:
        if status_of(error) is not None:
            return True
        raise
