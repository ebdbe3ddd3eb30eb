"""Schemathesis on the document that a running service serves of itself."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.support import ROOT

EXAMPLES = 5
"""Requests that are made up for each operation beside those that go to its limits; more find more, and take longer."""
LONGEST = 110.0


async def schemathesis(
    document: str, directory: Path, *, hooks: str, streams: str, configuration: str, known: dict[str, str], without: str = ""
) -> None:
    """All checks but those in `without`, on sound and unsound requests and on sequences of them: nothing is found.

    `hooks` is the module with the formats that the document names, `known` its environment; `streams` matches the paths of event
    streams, which do not end and are left out.
    """
    file = directory / "schemathesis.toml"
    file.write_text(configuration)
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(file)),
        *("run", document, "--exclude-path-regex", streams),
        *("--mode", "all", "--checks", "all", "--max-examples", str(EXAMPLES), "--generation-deterministic"),
        *("--request-timeout", "10", "--continue-on-failure", "--no-color"),
        *(("--exclude-checks", without) if without else ()),
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": hooks, **known},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), LONGEST)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, output.decode()
