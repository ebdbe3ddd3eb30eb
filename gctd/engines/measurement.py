"""The state of the coverage of each function, with the reason if the coverage is unknown.

It follows from the outcome of the tests of each package and from the platform, never from gaps of a profile.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Literal

import attrs
import msgspec

from gctd.engines.coverage import Coverage
from gctd.engines.golang.complexity import SourceFile
from gctd.engines.golang.constraints import Platform, not_built
from gctd.engines.state import State

Outcome = Literal["ok", "no tests", "failed", "build failed", "panicked", "timed out", "killed"]
"""Outcome of the tests of a package."""
Scope = Literal["own", "module"]
"""The tests that count for a package: its own, or the tests of all packages of the module (`-coverpkg`)."""


@attrs.frozen(kw_only=True)
class PackageFacts:
    """Outcome of the tests of a package (its import path). `reason` is the line with the cause, if the outcome is not ok."""

    path: str
    outcome: Outcome
    reason: str = ""


@attrs.frozen(kw_only=True)
class TestFacts:
    """Results of a module's tests. `platform` None: it is unknown, so that no file counts as not built.

    `further` are the platforms of further profiles of the same commit. `uploaded`: the tests ran elsewhere.
    """

    __test__ = False  # pytest takes it for a class of tests

    packages: tuple[PackageFacts, ...] = ()
    platform: Platform | None = None
    scope: Scope = "own"
    further: tuple[Platform, ...] = ()
    uploaded: bool = False

    @property
    def platforms(self) -> str:
        """The platforms as a text: `linux/amd64`, several joined by commas; empty if none is known."""
        return ",".join(sorted({str(one) for one in (self.platform, *self.further) if one is not None}))


def encode_facts(facts: TestFacts) -> bytes:
    """The facts as a JSON document."""
    return msgspec.json.encode(facts)


def decode_facts(document: bytes) -> TestFacts:
    """Facts from their JSON document. Raises msgspec.DecodeError."""
    return msgspec.json.decode(document, type=TestFacts)


@attrs.frozen
class _FileState:
    """State of all functions of a file. `settled`: it holds for any coverage."""

    state: State
    reason: str = ""
    settled: bool = False


class ModuleMeasurement:
    """Determines the state of each function of a module. Without facts, all states are unknown."""

    def __init__(self, facts: TestFacts | None, module_path: str) -> None:
        self._facts = facts or TestFacts()
        self._told = facts is not None
        self._module_path = module_path
        self._packages: Mapping[str, PackageFacts] = {one.path: one for one in self._facts.packages}
        failed = [one for one in self._facts.packages if one.outcome not in ("ok", "no tests")]
        self._incomplete = failed[0] if failed and self._facts.scope == "module" else None

    def of_file(self, path: str, file: SourceFile) -> _FileState:
        """Return the state of the functions of a file (relative to the module)."""
        if file.generated:
            return _FileState(State.GENERATED, "a program wrote the file", settled=True)
        if not self._told:
            return _FileState(State.UNKNOWN, "the result of the tests is not known", settled=True)
        reason = self._not_built(path, file)
        if reason:
            return _FileState(State.NOT_BUILT, reason, settled=True)
        if path.endswith("_test.go"):
            return _FileState(State.UNKNOWN, "the coverage of tests is not measured", settled=True)
        return self._of_package(path)

    def _not_built(self, path: str, file: SourceFile) -> str:
        """Return the reason why no platform builds a file; empty if one does, or if no platform is known."""
        first = self._facts.platform
        if first is None:
            return ""
        reasons = [not_built(path, file.constraint, one, cgo=file.cgo) for one in (first, *self._facts.further)]
        return reasons[0] if all(reasons) else ""

    def _of_package(self, path: str) -> _FileState:
        directory = posixpath.dirname(path)
        # The packages of the standard library have no module path before them.
        name = directory if self._module_path == "std" else posixpath.join(self._module_path, directory).rstrip("/")
        package = self._packages.get(name)
        if package is None:
            said = "the uploaded profile does not have" if self._facts.uploaded else "go does not list"
            return _FileState(State.UNKNOWN, f"{said} the package {name}", settled=True)
        if package.outcome == "build failed":
            return _FileState(State.BUILD_FAILED, package.reason, settled=True)
        if package.outcome == "no tests":
            return _FileState(State.NO_TESTS, "the package has no tests")
        if package.outcome != "ok":
            return _FileState(State.TESTS_FAILED, f"{package.outcome}: {package.reason}", settled=True)
        return _FileState(State.MEASURED)

    def of_function(self, known: _FileState, own: Coverage | None, *, has_body: bool) -> tuple[State, str]:
        """The state of a function of a file, and why it is not simply measured."""
        if known.settled:
            return known.state, known.reason
        if not has_body:
            return State.UNKNOWN, "it has no body in Go"
        percent = None if own is None else own.percent
        if own is not None and own.doubtful:
            return State.UNKNOWN, "the //line directives do not distinguish its blocks from blocks of another function"
        if percent is None:
            return State.UNKNOWN, "the coverage profile does not have it"
        if self._incomplete is not None and percent < 100.0:
            return State.TESTS_FAILED, f"tests of {self._incomplete.path} may reach it: {self._incomplete.outcome}"
        if known.state is State.NO_TESTS and percent > 0.0:
            return State.OTHER_TESTS, "its package has no tests; tests of other packages reach it"
        return known.state, known.reason
