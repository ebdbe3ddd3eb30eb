"""A Python with the extra `bench`, or another: the peers of benchmarks, never installed with the program."""

from __future__ import annotations

import configparser
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[3]


def installed(directory: Path, extra: str = "bench") -> Path:
    """Make an environment with that extra in this directory; gives its Python."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    wanted = setup["options.extras_require"][extra].split()
    venv.create(directory / extra, with_pip=True)
    python = directory / extra / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
    return python
