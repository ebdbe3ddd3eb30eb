"""Parts of the system that tests use and no package index has: the missing ones, their cost in tests, and the remedy.

Standard library only, since it runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Part(NamedTuple):
    """One of `programs` is needed, which Debian has in `package`."""

    programs: tuple[str, ...]
    package: str
    cost: str
    """The tests that do not run without it."""


PARTS = (
    Part(("git",), "git", "about 250 tests of repositories fail"),
    Part(
        ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
        "chromium-headless-shell",
        "about 230 tests of pages are skipped",
    ),
    Part(("bwrap",), "bubblewrap", "about 50 tests of the sandbox are skipped"),
)


def missing() -> list[Part]:
    """Return the parts that this machine does not have."""
    return [part for part in PARTS if not any(map(shutil.which, part.programs))]


def provide(say: Callable[[str], None], *, install: bool = True) -> None:
    """Install the missing parts, if this user may and apt-get can; name the parts that stay missing, with the remedy.

    `install=False` only names them.
    """
    absent = missing()
    if absent and install and os.geteuid() == 0 and shutil.which("apt-get"):
        _apt(absent, say)
        absent = missing()
    for part in absent:
        say(f"{part.programs[0]} is missing: {part.cost}\nhint: apt-get install {part.package} (or your system's name for it)")


def _apt(parts: Iterable[Part], say: Callable[[str], None]) -> None:
    """Install the packages of Debian; a failure is only reported."""
    packages = [part.package for part in parts]
    say(f"installing {', '.join(packages)} by apt-get (--no-system-packages refuses this)")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            say(f"apt-get {arguments[0]} ended with status {done.returncode}, so the tests run without it\n{done.stdout.strip()}")
            return
