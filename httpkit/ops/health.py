"""Probes: alive (the process answers) and ready (everything that an answer needs can be reached now)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

import structlog
from aiohttp import web

from httpkit.messages.encoding import encode
from httpkit.problems import Mapped, text_of

log = structlog.get_logger(__name__)

Check = Callable[[], Awaitable[object]]


class Health:
    """Named checks, each bounded in time; one that raises says why the service is not ready.

    The texts of exceptions with a `status` are shown, since they are written for users; others are logged, and named by type.
    """

    def __init__(self, checks: Mapping[str, Check], *, bound: float = 1.0, note: Callable[[], str | None] = lambda: None) -> None:
        """`note` says what is wrong though the service is ready."""
        self._checks = dict(checks)
        self._note = note
        self._bound = bound
        self._last: str | None = None

    async def reason(self) -> str | None:
        """Why the service is not ready, or None. Takes no longer than the bound of one check, in seconds."""
        found = await asyncio.gather(*(self._run(name, check) for name, check in self._checks.items()))
        reason = "; ".join(text for text in found if text is not None) or None
        if reason != self._last:
            log.warning("not ready", reason=reason) if reason else log.info("ready")
            self._last = reason
        return reason

    async def _run(self, name: str, check: Check) -> str | None:
        try:
            async with asyncio.timeout(self._bound):
                await check()
        except TimeoutError:
            return f"{name}: no answer within {self._bound:g} s"
        except Exception as error:
            if isinstance(error, Mapped):
                return f"{name}: {text_of(error)}"
            log.debug("readiness check failed", check=name, exc_info=error)
            return f"{name}: {type(error).__name__}"
        return None

    async def live(self, _: web.Request) -> web.Response:
        """Handler of `/livez`."""
        return _answer(HTTPStatus.OK, {"status": "ok"})

    async def ready(self, _: web.Request) -> web.Response:
        """Handler of `/readyz`: 200, or 503 with the reason."""
        reason, note = await self.reason(), self._note()
        noted = {} if note is None else {"note": note}
        if reason is None:
            return _answer(HTTPStatus.OK, {"status": "ok"} | noted)
        return _answer(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "error", "reason": reason} | noted)


def _answer(status: int, members: dict[str, str]) -> web.Response:
    headers = {} if status == HTTPStatus.OK else {"Retry-After": "1"}
    return web.Response(body=encode(members), status=status, headers=headers, content_type="application/json")
