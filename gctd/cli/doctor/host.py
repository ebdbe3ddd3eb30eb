"""Checks of the host: disks, and the programs that workers run."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gctd.cli.doctor.finding import Check, DoctorFinding, fail, ok, warn
from gctd.engines.registry import ENGINES
from gctd.scan.disk import LEAST_FREE, MIB, free_bytes
from gctd.scan.errors import NoGo, NoSandbox, NoToolchain, ProcessError
from gctd.scan.git.program import OLDEST as OLDEST_GIT
from gctd.scan.go.pinned import VERSION as PINNED
from gctd.scan.go.pinned import PinnedGo
from gctd.scan.go.toolchain import find_toolchain
from gctd.scan.isolation.process import run
from gctd.scan.isolation.sandbox import find_sandbox
from gctd.settings import Settings, size
from projections.stores import path_of

_OFF = "set sandbox to off"
_SECONDS = 30.0
"""For the version of a program. `examine` is less patient."""
_FILES = ("tls_certificate", "tls_key", "credentials_file", "ssh_key", "ssh_known_hosts", "ca_file", "forges_file")
"""Settings that name a file to read."""


def host_checks(settings: Settings) -> Mapping[str, Check]:
    """The checks by name."""

    async def data() -> DoctorFinding | None:
        file = path_of(settings.database_url)
        return None if file is None else _disk(file.parent, 2 * LEAST_FREE, "database")

    async def cache() -> DoctorFinding:
        return _disk(settings.cache_directory, size(settings.keep_free_bytes), "cache", short=": no worker takes jobs here")

    async def go() -> DoctorFinding:
        return await _go(settings)

    async def files() -> DoctorFinding | None:
        return _files(settings)

    async def sandbox() -> DoctorFinding:
        return await _sandbox(settings)

    return {
        "disk: database": data,
        "disk: cache": cache,
        "files": files,
        "git": _git,
        "go": go,
        "node": _node,
        "engines": _engines,
        "sandbox": sandbox,
    }


def _disk(directory: Path, comfortable: int, what: str, *, short: str = "") -> DoctorFinding:
    """Check the space on the disk of a directory, which may not exist yet. `short` is what follows if it is too little."""
    there = next(place for place in (directory.absolute(), *directory.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return fail(f"{directory} cannot be made: {there} is not a writable directory", f"make it writable, or move the {what}")
    free = free_bytes(there)
    detail = f"{free // MIB} MiB free in {there}"
    if free < LEAST_FREE:
        return fail(detail + short, f"make room, or move the {what} to another disk")
    return ok(detail) if free >= comfortable else warn(detail, f"make room, or move the {what} to another disk")


def _files(settings: Settings) -> DoctorFinding | None:
    """Check that the files named by settings can be read; None if no setting names one."""
    named = {name: getattr(settings, name) for name in _FILES if getattr(settings, name) is not None}
    if not named:
        return None
    unreadable = [f"{name}: {file}" for name, file in named.items() if not os.access(file, os.R_OK) or not file.is_file()]
    if unreadable:
        return fail(f"no readable file: {'; '.join(unreadable)}", "correct the path, or let this user read the file")
    return ok(f"{len(named)} named by settings can be read")


async def _git() -> DoctorFinding:
    oldest = ".".join(map(str, OLDEST_GIT))
    if shutil.which("git") is None:
        return fail("there is no git on PATH: no worker can run here", f"install git {oldest} or newer")
    said = await _version("git", "--version")
    if said is None:
        return fail("git --version fails: no worker can run here", f"install git {oldest} or newer")
    number = _numbers(said)
    if number < OLDEST_GIT:
        return fail(f"{said} is too old: no worker can run here", f"install git {oldest} or newer")
    return ok(said)


async def _go(settings: Settings) -> DoctorFinding:
    fix = "install Go 1.26, or name one in GCTD_GO"
    with tempfile.TemporaryDirectory(prefix="gctd-doctor-") as directory:
        try:
            toolchain = await find_toolchain(Path(directory))
        except NoGo as error:
            if settings.go_toolchains == "auto" and PinnedGo.available():
                return ok(f"none on this machine: workers use {PINNED}, which the first analysis downloads")
            return fail(f"{error}: no worker can run here", fix)
        except NoToolchain as error:
            return fail(f"{error}: no worker can run here", fix)
    return ok(f"{toolchain.version} at {toolchain.go}")


async def _node() -> DoctorFinding:
    said = await _version("node", "--version")
    if said is None:
        return warn("there is no node on PATH: it is wanted to build the dashboard only", "nothing, unless you build it")
    return ok(said)


async def _engines() -> DoctorFinding:
    return ok(", ".join(f"{name} {engine.version}" for name, engine in ENGINES.items()))


async def _sandbox(settings: Settings) -> DoctorFinding:
    with tempfile.TemporaryDirectory(prefix="gctd-doctor-") as directory:
        try:
            found = await find_sandbox(settings.sandbox, Path(directory))
        except NoSandbox as error:
            return fail(str(error), NoSandbox.hint)
    if found.kind == "landlock":
        return warn(f"only files are kept apart ({found.reason}): {'; '.join(found.walls())}", NoSandbox.hint)
    if found.kind != "none":
        return ok(f"{found.kind}: {'; '.join(found.walls())}")
    if settings.sandbox == "off":
        return warn(f"switched off: {'; '.join(found.walls())}", "set sandbox to auto")
    detail = f"none: tests of repositories run with the rights of the worker's user ({found.reason}); {found.walls()[-1]}"
    return fail(detail, f"{NoSandbox.hint}; or accept it: {_OFF}")


async def _version(program: str, *arguments: str) -> str | None:
    """Return the first line of a program's version, None if it is missing or does not work."""
    path = shutil.which(program)
    if path is None:
        return None
    with tempfile.TemporaryDirectory(prefix="gctd-doctor-") as directory:
        try:
            done = await run([path, *arguments], cwd=Path(directory), env={"PATH": str(Path(path).parent)}, timeout=_SECONDS)
        except ProcessError:
            return None
    return done.output_tail.strip().splitlines()[0] if done.ok and done.output_tail.strip() else None


def _numbers(text: str) -> tuple[int, int]:
    """The first two numbers of a version."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
