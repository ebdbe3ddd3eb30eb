"""The common parts of measurements: the machine that they ran on, and the options of a load."""

from __future__ import annotations

import argparse
import os
import platform


def show_machine() -> None:
    """Print the processors, the version of Python and the load of the machine."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}, load {os.getloadavg()[0]:.1f}")


def load_options(description: str | None, *, seconds: float) -> argparse.ArgumentParser:
    """Return a parser with the options of a load of the pantry; `seconds` is the default length of a measurement."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--connections", default="1,2,4,8,16,64")
    return parser
