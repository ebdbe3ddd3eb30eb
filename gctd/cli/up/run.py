"""`gctd up` as one process: from the options to the end of the last part."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from gctd.cli.doctor.finding import CheckStatus
from gctd.cli.doctor.host import host_checks
from gctd.cli.up.console import Console
from gctd.cli.up.demo import demonstrate
from gctd.cli.up.places import Places
from gctd.cli.up.supervisor import ReadyFile, run
from gctd.cli.up.system import Options, plan
from gctd.settings import SETTINGS
from terminalkit import PRIVATE, ExitCode, configure_logs

_PROGRAMS = ("git", "go")
"""Programs that no worker can do without."""


class ProgramMissing(Exception):
    """A program that workers need is missing; the text has the reason, and `hint` the remedy."""

    exit_code = ExitCode.FAILURE

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


def run_up(options: Options, console: Console, *, demo: bool, ready_file: Path | None, verbose: bool) -> int:
    """Run a system until a signal ends it. Return the exit code.

    Raises PortInUse, SettingsError, DeclarationInvalid, CredentialsDamaged if it cannot be planned. Raises ProgramMissing before
    anything starts.
    """
    configure_logs(level="info" if verbose else "warning", style="text")
    os.umask(PRIVATE)
    places = Places.chosen(options.data_dir, cluster=options.cluster)
    if demo or options.workers != 0:
        asyncio.run(_check_programs(places))
    places.make_private(passable=options.postgres or options.cluster)
    system = plan(options, places)
    if system.note is not None:
        console.say(system.note)
    return asyncio.run(run(system, console, ready=ReadyFile(ready_file), demo=demonstrate if demo else None))


async def _check_programs(places: Places) -> None:
    """Raise ProgramMissing if a worker could not run here."""
    settings = SETTINGS.load({"cache_directory": places.cache}).values
    checks = host_checks(settings)
    for finding in await asyncio.gather(*(checks[name]() for name in _PROGRAMS)):
        if finding is not None and finding.verdict is CheckStatus.FAIL:
            raise ProgramMissing(finding.detail, finding.fix)
