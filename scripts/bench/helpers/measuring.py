"""The common parts of measurements: the machine that they ran on, and the options of a load."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
from importlib.metadata import version


def show_machine(*packages: str) -> None:
    """Print the processors and the load of the machine, and the versions of Python, SQLite and these packages."""
    versions = [f"CPython {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    versions += [f"{name} {version(name)}" for name in packages]
    print(f"{platform.machine()}, {os.cpu_count()} cores, {', '.join(versions)}, load {os.getloadavg()[0]:.1f}", flush=True)


def load_options(description: str | None, *, seconds: float) -> argparse.ArgumentParser:
    """Return a parser with the options of a load of the pantry; `seconds` is the default length of a measurement."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--connections", default="1,2,4,8,16,64")
    return parser
