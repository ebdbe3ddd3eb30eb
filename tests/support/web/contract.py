"""Schemathesis on the document that a running service serves of itself."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.support import ROOT

EXAMPLES = 5
"""Made-up requests of a fuzzer for each operation, in addition to the requests at its limits. More find more, and take longer."""
_LIMITS = ("--phases", "coverage", "--max-examples", "1", "--generation-deterministic")
LONGEST = 1100.0
"""Seconds for a machine with much other work; it takes less than a minute on one at rest."""
ANSWERED = 40.0
"""Seconds within which each answer is there: the service ends its own work on a request after 30."""


async def schemathesis(
    document: str,
    directory: Path,
    *,
    seed: int | None,
    hooks: str,
    streams: str,
    configuration: str,
    known: dict[str, str],
    without: str = "",
) -> None:
    """Run all checks but the checks in `without`, on sound and unsound requests. They must not fail.

    The requests are at the limits of each operation. With a `seed` there are random ones too, and sequences of them.
    `hooks` is the module with the formats that the document names, `known` its environment; `streams` matches the paths of event
    streams, which do not end and are left out.
    """
    file = directory / "schemathesis.toml"
    file.write_text(configuration)
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(file)),
        *("run", document, "--exclude-path-regex", streams),
        *("--mode", "all", "--checks", "all"),
        *(_LIMITS if seed is None else ("--max-examples", str(EXAMPLES), "--seed", str(seed))),
        *("--request-timeout", str(ANSWERED), "--continue-on-failure", "--no-color"),
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
