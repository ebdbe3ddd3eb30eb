"""The one command in a fresh copy of the checkout, with a bare environment: nothing but Python and git."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.programs.supervised import alive, supervised
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

_KEPT = ("PIP_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
"""Where packages come from is the machine's business, and the only thing that is passed on."""

_NOT_COPIED = (".git", ".venv", ".data", ".*_cache", "__pycache__", "*.egg-info", ".hypothesis", "build")


@pytest.mark.timeout(2400)
async def test_up_demo_sets_everything_up_shows_scores_and_leaves_nothing_behind(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    home.mkdir()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"} | {
        name: value for name, value in os.environ.items() if name.upper().startswith(_KEPT)
    }
    up = [
        _python_outside_the_environment(),
        str(clone / "scripts" / "up"),
        "--port-base",
        "0",
        "--ready-file",
        str(tmp_path / "ready.json"),
    ]

    began = time.monotonic()
    with supervised([*up, "--demo"], tmp_path / "first.txt", environment) as running:
        ready = await running.ready(900)
        await wait_until(lambda: "Ctrl-C stops" in running.said or running.process.poll() is not None, 900)
        print(f"first start with the demonstration: {time.monotonic() - began:.1f} s")
        assert "Check" in running.said, "the function that is most at risk"
        assert f"dashboard  {ready['gctd']}" in running.said
        children = list(running.descendants().values())
        assert await running.end(signal.SIGINT) == 130
        assert alive(children) == []

    began = time.monotonic()
    with supervised(up, tmp_path / "second.txt", environment) as running:
        ready = await running.ready()
        print(f"second start: {time.monotonic() - began:.1f} s")
        assert "set-up" not in running.said
        gctd = [str(clone / ".venv" / "bin" / "gctd"), "task", "list", "--json"]
        listing = subprocess.run(gctd, env=environment | ready["env"], capture_output=True, check=True, timeout=300)  # noqa: ASYNC221 - nothing else runs here
        assert {task["status"] for task in json.loads(listing.stdout)} == {"completed"}
        assert await running.end(signal.SIGTERM) == 143


def _python_outside_the_environment() -> str:
    return str(Path(sys.base_prefix) / "bin" / "python3")
