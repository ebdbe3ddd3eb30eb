"""Chromium of this machine, for programs that draw or measure pages."""

from __future__ import annotations

import shutil
from typing import Any

ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage")


class ChromiumMissing(Exception):
    """Chromium is not installed."""


def launch_options() -> dict[str, Any]:
    """Return the options for `launch` of Playwright. Raises ChromiumMissing."""
    program = shutil.which("chromium")
    if program is None:
        raise ChromiumMissing("chromium is not installed\nhint: apt install chromium")
    return {"executable_path": program, "args": [*ARGUMENTS]}
