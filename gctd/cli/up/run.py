"""`gctd up` as one process: from the options to the end of the last part."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from gctd.cli.up.console import Console
from gctd.cli.up.demo import demonstrate
from gctd.cli.up.places import Places
from gctd.cli.up.supervisor import ReadyFile, run
from gctd.cli.up.system import Options, plan
from terminalkit import logs
from terminalkit.runtime.serving import PRIVATE


def run_up(options: Options, *, demo: bool, ready_file: Path | None, verbose: bool) -> int:
    """Run a system until a signal ends it. Return the exit code.

    Raises PortInUse, SettingsError, DeclarationInvalid, CredentialsDamaged if it cannot be planned.
    """
    console = Console(verbose=verbose)
    logs.configure(level="info" if verbose else "warning", style="text")
    os.umask(PRIVATE)
    places = Places.chosen(options.data_dir, cluster=options.cluster)
    places.make_private(passable=options.postgres or options.cluster)
    system = plan(options, places)
    if system.note is not None:
        console.say(system.note)
    return asyncio.run(run(system, console, ready=ReadyFile(ready_file), demo=demonstrate if demo else None))
