"""What a check finds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum

import attrs

PATIENCE = 8.0
"""Seconds that a check may take."""


class CheckStatus(StrEnum):
    """How something is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@attrs.frozen
class Finding:
    """How something is, in words, and what to do about it where it is not well."""

    verdict: CheckStatus
    detail: str
    fix: str = ""


Check = Callable[[], Awaitable[Finding | None]]
"""Gives None where there is nothing to be known."""


def ok(detail: str) -> Finding:
    """It is well."""
    return Finding(CheckStatus.OK, detail)


def warn(detail: str, fix: str) -> Finding:
    """It works, but not as it might, or not for long."""
    return Finding(CheckStatus.WARN, detail, fix)


def fail(detail: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(CheckStatus.FAIL, detail, fix)


async def examine(checks: Mapping[str, Check]) -> Sequence[tuple[str, Finding]]:
    """What the checks find, by their names, in order; a check that raises or takes too long has found just that."""
    found = await asyncio.gather(*map(_run, checks.values()))
    return [(name, finding) for name, finding in zip(checks, found, strict=True) if finding is not None]


async def _run(check: Check) -> Finding | None:
    try:
        async with asyncio.timeout(PATIENCE):
            return await check()
    except TimeoutError:
        return fail(f"no answer within {PATIENCE:.0f} s", "look whether the host is overloaded, then try again")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong
        return fail(f"{error}" or repr(error), "see the text; --verbose of the command concerned shows more")
