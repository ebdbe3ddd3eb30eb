"""Coverage profiles that were made elsewhere, merged into one, and the results of the tests as far as the profiles show them."""

from __future__ import annotations

import asyncio
import io
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from eventlog import BlobMissing
from gctd.broker.blobs import Blobs
from gctd.domain.analysis import PackageProblem
from gctd.domain.repo.project import Project
from gctd.domain.upload import UploadedProfile, minor_of
from gctd.engines.engine import EngineLimits
from gctd.engines.golang.constraints import Platform, constraint_in, not_built
from gctd.engines.golang.modfile import module_file
from gctd.engines.golang.profile import CoverProfile, parse_profile
from gctd.engines.measurement import PackageFacts, Scope, TestFacts
from gctd.engines.selection import Unreadable, is_skipped_directory, read_source
from gctd.worker.scans.measuring import MeasuredRun, told
from gctd.worker.work import WorkFailed

_PACKAGE = re.compile(rb"^package\s", re.MULTILINE)
_FUNCTION = re.compile(rb"^func\s", re.MULTILINE)
_CGO = re.compile(rb'^[ \t]*(?:import[ \t]+)?"C"[ \t]*(?://|;|\r?$)', re.MULTILINE)
"""The import of cgo, alone or in a list of imports. A worker does not parse sources: only an engine does, within its limits."""
_MOST_BYTES = 1 << 30
_MOST_BLOCKS = 4_000_000


async def measured_elsewhere(uploads: Sequence[UploadedProfile], blobs: Blobs, root: Path, project: Project) -> MeasuredRun:
    """Return the test run behind the profiles of a commit. `root` is the directory of the module.

    A single profile is used unchanged. Of several, a block is covered if one of them covers it. Raises WorkFailed.
    """
    bodies = []
    for upload in uploads:
        try:
            bodies.append(await blobs.get(upload.profile.digest))
        except BlobMissing as missing:
            raise WorkFailed(f"the uploaded profile {upload.flag} is gone: {missing}", permanent=True) from missing
    return await measured_by(uploads, bodies, root, project)


async def measured_by(uploads: Sequence[UploadedProfile], bodies: Sequence[bytes], root: Path, project: Project) -> MeasuredRun:
    """As `measured_elsewhere`, with the texts of the profiles in the same order."""
    profile, parsed = await asyncio.to_thread(_merged, bodies)
    tested = await asyncio.to_thread(lambda: dict(_packages(root)))
    facts = _facts(uploads, parsed, project, tested)
    left_out = await asyncio.to_thread(lambda: list(_left_out(facts, project, root, tested)))
    problems = [PackageProblem(path=one.path, reason=one.outcome) for one in facts.packages if one.outcome != "ok"]
    first = uploads[0]
    return MeasuredRun(
        profile=profile,
        go_version=first.go_version,
        flags=told(_flags(uploads), workspace=project.in_workspace),
        uncovered=tuple(sorted([*problems, *left_out], key=lambda one: one.path)),
        sandbox="",
        tests=facts,
    )


def _merged(bodies: Sequence[bytes]) -> tuple[bytes, CoverProfile]:
    if len(bodies) == 1:
        return bodies[0], parse_profile(io.BytesIO(bodies[0]), max_bytes=_MOST_BYTES, max_blocks=_MOST_BLOCKS)
    text = b"mode: set\n" + b"".join(line + b"\n" for body in bodies for line in _covered_or_not(body))
    parsed = parse_profile(io.BytesIO(text), max_bytes=_MOST_BYTES, max_blocks=_MOST_BLOCKS)
    lines = ["mode: set\n"]
    for path in parsed.paths():
        for block in parsed.blocks_of(path):
            place = f"{block.start_line}.{block.start_col},{block.end_line}.{block.end_col}"
            lines.append(f"{path}:{place} {block.statements} {int(block.covered)}\n")
    return os.fsencode("".join(lines)), parsed


def _covered_or_not(body: bytes) -> Iterator[bytes]:
    """Yield the blocks of a profile with counts of 0 or 1, because modes count differently."""
    for line in body.splitlines():
        block, _, count = line.strip().rpartition(b" ")
        if block and not line.startswith(b"mode:"):
            yield block + (b" 1" if count.strip(b"0") else b" 0")


def _packages(root: Path) -> Iterator[tuple[str, bool]]:
    """Yield the directories of a module with Go files, and whether one of the files has tests.

    Links are not followed. A directory with a go.mod, or one that go.mod ignores, is not part of the module around it.
    """
    go_mod = module_file(root)
    for directory, names, files in os.walk(root):
        here = Path(directory).relative_to(root).as_posix()
        if here != "." and ("go.mod" in files or go_mod.ignores(here)):
            names.clear()
            continue
        names[:] = [name for name in names if not is_skipped_directory(name)]
        go = [name for name in files if name.endswith(".go") and not name.startswith((".", "_"))]
        if go:
            yield here, any(name.endswith("_test.go") for name in go)


def _facts(uploads: Sequence[UploadedProfile], profile: CoverProfile, project: Project, tested: dict[str, bool]) -> TestFacts:
    """Return the results. A package with tests and without a file in the profiles is left out: its functions are unknown."""
    failed = sorted(upload.flag for upload in uploads if upload.tests_failed)
    covered = {posixpath.dirname(path) for path in profile.paths()}
    packages = []
    for directory, has_tests in sorted(tested.items()):
        path = _import_path(project, directory)
        if not has_tests:
            packages.append(PackageFacts(path=path, outcome="no tests", reason="it has no tests"))
        elif path in covered and failed:
            reason = f"tests of the upload {', '.join(failed)} failed"
            packages.append(PackageFacts(path=path, outcome="failed", reason=reason))
        elif path in covered:
            packages.append(PackageFacts(path=path, outcome="ok"))
    first, *further = map(_platform, uploads)
    scope: Scope = "module" if any(upload.scope == "module" for upload in uploads) else "own"
    return TestFacts(packages=tuple(packages), platform=first, scope=scope, further=tuple(further), uploaded=True)


def _import_path(project: Project, directory: str) -> str:
    return posixpath.normpath(posixpath.join(project.module_path, directory))


def _left_out(facts: TestFacts, project: Project, root: Path, tested: dict[str, bool]) -> Iterator[PackageProblem]:
    """Yield the packages with tests whose code the profiles do not have, although a platform builds it."""
    known = {one.path for one in facts.packages}
    for directory in tested:
        path = _import_path(project, directory)
        if path not in known and any(_has_code(file, facts) for file in (root / directory).glob("*.go")):
            yield PackageProblem(path=path, reason="the uploaded profile does not have it")


def _has_code(file: Path, facts: TestFacts) -> bool:
    """Whether a file has functions outside of tests, and a platform builds it."""
    if file.name.endswith("_test.go"):
        return False
    try:
        source = read_source(file, EngineLimits().file_bytes)
    except Unreadable:
        return False
    package, function = _PACKAGE.search(source), _FUNCTION.search(source)
    if function is None:
        return False
    constraint = constraint_in(source[: package.start()] if package else b"")
    cgo = _CGO.search(source, 0, function.start()) is not None
    platforms = [one for one in (facts.platform, *facts.further) if one is not None]
    return not all(not_built(file.name, constraint, one, cgo=cgo) for one in platforms)


def _platform(upload: UploadedProfile) -> Platform:
    goos, _, goarch = upload.platform.partition("/")
    minor = minor_of(upload.go_version).removeprefix("go1.")
    releases = [f"go1.{release}" for release in range(1, int(minor) + 1)] if minor.isdecimal() else []
    return Platform(goos=goos, goarch=goarch, cgo=upload.cgo, tags=(*upload.tags, *releases))


def _flags(uploads: Sequence[UploadedProfile]) -> tuple[str, ...]:
    """Return the flags of `go test` that the numbers depend on, as far as the uploads name them, in the order of a worker."""
    tags = sorted({",".join(upload.tags) for upload in uploads if upload.tags})
    scope = ("-coverpkg=./...",) if any(upload.scope == "module" for upload in uploads) else ()
    return (*(f"-tags={one}" for one in tags), *scope)
