"""A run of pytest on a few files, with the plugins of the house and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support import ROOT

PLUGINS = ("xdist.plugin", *(f"tests.support.plugins.{name}" for name in ("processor_time", "seed", "skips", "tiers")))


def run(
    directory: Path, files: Mapping[str, str], *arguments: str, settings: str = "", named: str = ""
) -> subprocess.CompletedProcess[str]:
    """Write the files into `directory`, and run pytest on all of it or on the `named` file. `settings`: lines of pytest.ini."""
    (directory / "pytest.ini").write_text(f"[pytest]\nmarkers =\n  real\n  long\n{settings}")
    for name, text in files.items():
        (directory / name).write_text(text)
    plugins = [part for name in PLUGINS for part in ("-p", name)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Without `basetemp`, the run removes the directories of earlier runs at its end, which takes minutes after a large one.
    own = ("-c", "pytest.ini", "--basetemp", "run")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *own, *arguments, *([named] if named else [])],
        cwd=directory,
        # Each plugin of an installed package is loaded in each process, and takes seconds of a busy machine.
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
