"""Probes: alive (the process answers) and ready (everything that an answer needs can be reached now), reads and writes apart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from http import HTTPStatus

import attrs
import structlog
from aiohttp import web

from httpkit.messages.encoding import encode
from httpkit.ops.bounded import BoundedQuestion
from httpkit.problems import status_of, text_of

log = structlog.get_logger(__name__)

Check = Callable[[], Awaitable[object]]
"""Raises if its subject is not well, and returns Unknown if it cannot look. With any other result the subject is well."""


@attrs.frozen
class Unknown:
    """The result of a check that could not look, with the `reason`."""

    reason: str


class Concern(StrEnum):
    """The part of the service that a check is about, if it is not about all."""

    READS = "reads"
    WRITES = "writes"


@attrs.frozen
class HealthFindings:
    """The findings of the checks, by name: `wrong` are reasons for not being ready, `unknown` are checks that could not look."""

    wrong: Mapping[str, str]
    unknown: Mapping[str, str]


class Health:
    """Named checks, each bounded in time. The error of a check is the reason why the service is not ready.

    The texts of exceptions with a `status` are shown, since they are written for users; others are logged, and named by type.
    """

    def __init__(
        self,
        checks: Mapping[str, Check],
        *,
        bound: float = 1.0,
        note: Callable[[], str | None] = lambda: None,
        concerns: Mapping[str, Concern] | None = None,
    ) -> None:
        """`note` describes a problem of a service that is ready.

        `concerns`: the checks that are about reads or writes only, by name. The others are about both. None: the service does
        not distinguish reads from writes.
        """
        self._checks = {name: BoundedQuestion(check, bound) for name, check in checks.items()}
        self._note = note
        self._concerns = concerns
        self._last: str | None = None
        self._was_ready = False

    async def reason(self) -> str | None:
        """Why the service is not ready, or None. Takes no longer than the bound of one check, in seconds."""
        return _joined((await self._look()).wrong)

    async def _look(self) -> HealthFindings:
        found = dict(zip(self._checks, await asyncio.gather(*map(self._run, self._checks)), strict=True))
        wrong = {name: one for name, one in found.items() if isinstance(one, str)}
        reason = _joined(wrong)
        if reason != self._last:
            if reason is None:
                log.info("ready")
            else:
                (log.warning if self._was_ready else log.info)("not ready", reason=reason)  # a start is no reason to worry
            self._last = reason
        self._was_ready = self._was_ready or reason is None
        return HealthFindings(wrong, {name: one.reason for name, one in found.items() if isinstance(one, Unknown)})

    async def _run(self, name: str) -> str | Unknown | None:
        try:
            found = await self._checks[name].ask()
        except Exception as error:
            if status_of(error) is not None:
                return text_of(error)
            log.debug("readiness check failed", check=name, exc_info=error)
            return type(error).__name__
        return found if isinstance(found, Unknown) else None

    def _of(self, concern: Concern, found: Mapping[str, str]) -> dict[str, str]:
        assert self._concerns is not None
        return {name: text for name, text in found.items() if self._concerns.get(name, concern) is concern}

    async def live(self, _: web.Request) -> web.Response:
        """Handler of `/livez`."""
        return _answer(HTTPStatus.OK, {"status": "ok"})

    async def ready(self, request: web.Request) -> web.Response:
        """Handler of `/readyz`: 200, or 503 with the reason; with `?for=reads` or `?for=writes` the status is of these alone."""
        found, note = await self._look(), self._note()
        wrong = dict(found.wrong)
        members: dict[str, str] = {}
        if self._concerns is not None:
            asked = request.query.get("for")
            for concern in Concern:
                bad = self._of(concern, wrong)
                members[concern] = _joined(bad) or _unknown(self._of(concern, found.unknown)) or "ok"
            if asked in set(Concern):
                wrong = self._of(Concern(asked), wrong)
        if note is not None:
            members["note"] = note
        reason = _joined(wrong)
        if reason is None:
            return _answer(HTTPStatus.OK, {"status": "ok"} | members)
        return _answer(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "error", "reason": reason} | members)


def _joined(found: Mapping[str, str]) -> str | None:
    return "; ".join(f"{name}: {text}" for name, text in found.items()) or None


def _unknown(found: Mapping[str, str]) -> str | None:
    reasons = _joined(found)
    return None if reasons is None else f"unknown: {reasons}"


def _answer(status: int, members: dict[str, str]) -> web.Response:
    headers = {} if status == HTTPStatus.OK else {"Retry-After": "1"}
    return web.Response(body=encode(members), status=status, headers=headers, content_type="application/json")
