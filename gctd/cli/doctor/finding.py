"""Results of checks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum

import attrs

PATIENCE = 8.0
"""Seconds that a check may take."""


class CheckStatus(StrEnum):
    """Result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    """The check could not be made."""


@attrs.frozen
class DoctorFinding:
    """Result of a check in words, and the remedy if it found a problem."""

    verdict: CheckStatus
    detail: str
    fix: str = ""


Check = Callable[[], Awaitable[DoctorFinding | None]]
"""A check. It returns None if its subject does not exist, for example the disk of a database that is not a file."""


def ok(detail: str) -> DoctorFinding:
    """Return the finding of a check without problems."""
    return DoctorFinding(CheckStatus.OK, detail)


def warn(detail: str, fix: str) -> DoctorFinding:
    """Return the finding of a part that works, with a limitation or a risk."""
    return DoctorFinding(CheckStatus.WARN, detail, fix)


def fail(detail: str, fix: str) -> DoctorFinding:
    """Return the finding of a part that does not work."""
    return DoctorFinding(CheckStatus.FAIL, detail, fix)


def unknown(detail: str, fix: str) -> DoctorFinding:
    """Return the finding of a check that could not be made, for the reason in `detail`."""
    return DoctorFinding(CheckStatus.UNKNOWN, detail, fix)


async def examine(checks: Mapping[str, Check]) -> Sequence[tuple[str, DoctorFinding]]:
    """Return the findings of the checks by their names, in order. An error or a timeout of a check is a finding."""
    found = await asyncio.gather(*map(_run, checks.values()))
    return [(name, finding) for name, finding in zip(checks, found, strict=True) if finding is not None]


async def _run(check: Check) -> DoctorFinding | None:
    try:
        async with asyncio.timeout(PATIENCE):
            return await check()
    except TimeoutError:
        return fail(f"no answer within {PATIENCE:.0f} s", "look whether the host is overloaded, then try again")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong
        return fail(f"{error}" or repr(error), "see the text; --verbose of the command concerned shows more")
