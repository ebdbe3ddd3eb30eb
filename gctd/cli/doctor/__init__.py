"""Checks of a tracker and of the host it runs on, from outside: they also work if no part of it runs."""

from __future__ import annotations

from collections.abc import Sequence

from gctd.cli.doctor.finding import CheckStatus, DoctorFinding, examine
from gctd.cli.doctor.host import host_checks
from gctd.cli.doctor.system import broker_at, system_checks
from gctd.settings import Settings
from terminalkit import ExitCode

__all__ = ["CheckStatus", "DoctorFinding", "diagnose", "exit_code"]


async def diagnose(settings: Settings) -> Sequence[tuple[str, DoctorFinding]]:
    """Return the findings of all checks by their names, in order."""
    async with broker_at(settings) as broker:
        return await examine({**system_checks(settings, broker), **host_checks(settings)})


def exit_code(found: Sequence[tuple[str, DoctorFinding]]) -> ExitCode:
    """Return the exit code of the command: failure if a check fails. A warning or an unknown finding is no failure."""
    return ExitCode.FAILURE if any(one.verdict is CheckStatus.FAIL for _, one in found) else ExitCode.OK
