"""The health of a nats-server: a fault counts if it lasts, not if it is reported once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from servicekit.broker_watch import look_at

pytestmark = pytest.mark.real

BUSY = (HTTPStatus.INTERNAL_SERVER_ERROR, "failed to be ready for connections after 1ms: ")
REMOVED = (HTTPStatus.SERVICE_UNAVAILABLE, "JetStream stream '$G > jobs' could not be recovered")
CLOSED = (HTTPStatus.SERVICE_UNAVAILABLE, "JetStream stream '$G > events' write error: no space left on device")


@asynccontextmanager
async def reporting(*faults: tuple[HTTPStatus, str]) -> AsyncIterator[str]:
    """The address of a monitoring port that reports these faults in turn, and then none."""
    left = list(faults)

    async def healthz(_: web.Request) -> web.Response:
        if not left:
            return web.json_response({"status": "ok"})
        status, error = left.pop(0)
        return web.json_response({"status": "unavailable", "error": error}, status=status)

    async def jsz(_: web.Request) -> web.Response:
        return web.json_response({"server_id": "N1"})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/jsz", jsz)])
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.mark.parametrize("faults", [[], [BUSY], [REMOVED], [BUSY, REMOVED]])
async def test_a_fault_that_does_not_last_is_none(faults: Sequence[tuple[HTTPStatus, str]]) -> None:
    async with reporting(*faults) as url:
        assert (await look_at(url)).fault is None


async def test_a_fault_that_lasts_is_reported_with_its_reason() -> None:
    async with reporting(*[CLOSED] * 9) as url:
        seen = await look_at(url)
    assert seen.closed
    assert "no space left on device" in (seen.fault or "")
