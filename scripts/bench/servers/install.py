"""Times from nothing to the first page: set-ups of a checkout with uv and with pip, and the installed wheel.

PYTHONPATH=.:scripts python scripts/bench/servers/install.py --wheel dist/gctd-0.2.0-py3-none-any.whl [--revision REV] [--runs 3]
    [--python /usr/bin/python3]

Each way begins with an empty home, empty caches and a bare environment, and ends when the dashboard answers. The ways take turns.
A checkout is a clone of the last commit. For pip it has no `requirements/uv.lock`, so the set-up does not find uv. The set-up of
a checkout installs Go if the machine has none. `--revision` adds `scripts/up` of an older commit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from launcher.first_page import NotStarted, first_page

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 1200.0
"""Seconds for a way from its begin to the page."""
_KEPT = ("PIP_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NPM_CONFIG_REGISTRY", "NODE_EXTRA_CA_CERTS")
"""Variables that tell the machine's package registries."""


class Fresh:
    """A folder with an empty home, and the environment of a new machine."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.answered = 0.0
        self.folder = folder
        self.python = python
        self.home = folder / "home"
        self.home.mkdir()
        self.environment: Mapping[str, str] = {
            **{name: value for name, value in os.environ.items() if name.upper().startswith(_KEPT)},
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""),
        }

    def run(self, *command: str | Path) -> None:
        """Run a command to its end."""
        subprocess.run(list(map(str, command)), cwd=self.home, env=self.environment, check=True, capture_output=True)

    def clone(self, revision: str) -> Path:
        """Return a checkout of a revision."""
        place = self.folder / "gctd"
        self.run("git", "clone", "--quiet", "--no-hardlinks", ROOT, place)
        self.run("git", "-C", place, "checkout", "--quiet", revision)
        return place

    def start(self, *command: str | Path) -> None:
        """Run a command that starts the system, until its dashboard answers, and end it."""
        try:
            self.answered = first_page([*map(str, command)], self.folder, self.environment, PATIENCE).answered
        except NotStarted as error:
            raise SystemExit(str(error)) from error


def checkout(fresh: Fresh, revision: str, *, uv: bool) -> Mapping[str, float]:
    """`scripts/up` in a clone."""
    place = fresh.clone(revision)
    if not uv:
        (place / "requirements" / "uv.lock").unlink(missing_ok=True)
    began = time.monotonic()
    fresh.start(fresh.python, place / "scripts" / "up")
    return {"page": fresh.answered - began}


def by_pip(fresh: Fresh, wheel: Path) -> Mapping[str, float]:
    """`pip install` of the wheel into a new environment, and `gctd up`."""
    began = time.monotonic()
    fresh.run(fresh.python, "-m", "venv", fresh.folder / "x")
    fresh.run(fresh.folder / "x" / "bin" / "pip", "install", "--quiet", wheel)
    installed = time.monotonic() - began
    fresh.start(fresh.folder / "x" / "bin" / "gctd", "up")
    return {"installed": installed, "page": fresh.answered - began}


def by_uv(fresh: Fresh, wheel: Path, uv: Path) -> Mapping[str, float]:
    """`uv tool install` of the wheel, and `gctd up`."""
    began = time.monotonic()
    fresh.run(uv, "tool", "install", "--quiet", "--python", fresh.python, wheel)
    installed = time.monotonic() - began
    fresh.start(fresh.home / ".local" / "bin" / "gctd", "up")
    return {"installed": installed, "page": fresh.answered - began}


def main() -> None:
    """Run each way in turn, and print the medians with the lowest and the highest run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, required=True, help="the wheel, as scripts/release builds it")
    parser.add_argument("--revision", help="an older commit whose scripts/up is also measured")
    parser.add_argument("--runs", type=int, default=3, help="runs of each way (default: %(default)s)")
    parser.add_argument("--python", type=Path, default=Path("/usr/bin/python3"), help="interpreter (default: %(default)s)")
    given = parser.parse_args()
    wheel = given.wheel.absolute()
    uv = ROOT / ".venv" / "bin" / "uv"
    ways: dict[str, Callable[[Fresh], Mapping[str, float]]] = {
        "checkout with uv": lambda fresh: checkout(fresh, "HEAD", uv=True),
        "checkout with pip": lambda fresh: checkout(fresh, "HEAD", uv=False),
        "wheel by pip install": lambda fresh: by_pip(fresh, wheel),
        "wheel by uv tool install": lambda fresh: by_uv(fresh, wheel, uv),
    }
    if given.revision:
        ways[f"checkout of {given.revision}"] = lambda fresh: checkout(fresh, given.revision, uv=False)
    found: dict[str, list[Mapping[str, float]]] = {name: [] for name in ways}
    for number in range(given.runs):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp(prefix="install-"))
            try:
                found[name].append(way(Fresh(folder, given.python)))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            times = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in found[name][-1].items())
            print(f"run {number + 1}: {name}: {times} (load {os.getloadavg()[0]:.1f})", flush=True)
    for name, runs in found.items():
        for part in runs[0]:
            print(f"{name}: {part} {_range([run[part] for run in runs])}")


def _range(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f} s ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    main()
