"""A copy of this checkout that is set up already, as after the first start of a reader."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
from pathlib import Path

from tests.support import ROOT
from tests.support.tracker import go_library

_NOT_COPIED = (
    ".git",
    ".venv*",
    ".data",
    ".*_cache",
    "__pycache__",
    "*.egg-info",
    ".hypothesis",
    "build",
    "node_modules",
    "tests",
)


async def set_up_checkout(place: Path) -> None:
    """Make the copy. Its environment has the packages of this one, so `scripts/up` has nothing to install or to build."""
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    (place / "tests").mkdir()
    (place / "tests" / "__init__.py").touch()  # the packages are counted among the sources of the installed project
    (place / "ui" / "node_modules").symlink_to(ROOT / "ui" / "node_modules")
    ours, venv = ROOT / ".venv", place / ".venv"
    python = Path(sys.base_prefix) / "bin" / "python3"
    made = await asyncio.create_subprocess_exec(python, "-m", "venv", "--without-pip", venv)
    assert await made.wait() == 0
    [packages] = venv.glob("lib/python3.*/site-packages")
    packages_of_ours = ours / packages.relative_to(venv)
    # A line of a .pth file adds a directory without its own .pth files, so without the link to this checkout.
    (packages / "documents.pth").write_text(f"{place}\n{packages_of_ours}\n")
    for name in ("gctd", "graphql-fn", "pantry", "projections"):
        program = venv / "bin" / name
        program.write_text((ours / "bin" / name).read_text(encoding="utf-8").replace(str(ours), str(venv)))
        program.chmod(0o755)
    go = shutil.which("go", path=f"{ours / 'bin'}:{Path(sys.executable).parent}") or shutil.which("go")
    assert go is not None
    for name, target in (("nats-server", ours / "bin" / "nats-server"), ("go", go), ("gofmt", Path(go).with_name("gofmt"))):
        (venv / "bin" / name).symlink_to(target)
    shutil.copytree(ours / "stamps", venv / "stamps")
    (venv / "stamps" / "place").write_text(str(venv), encoding="utf-8")
    lock = (place / "requirements" / "go.lock").read_bytes()
    (venv / "stamps" / "go").write_text(hashlib.sha256(lock).hexdigest(), encoding="ascii")
    await go_library.give(place / ".data" / "cache")
