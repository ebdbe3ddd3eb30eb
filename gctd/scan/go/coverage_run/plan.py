"""Input and result of a test run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import attrs

from gctd.domain.options import covers_others
from gctd.engines.golang.constraints import Platform
from gctd.engines.measurement import Scope
from gctd.scan.disk import MIB
from gctd.scan.errors import GoError
from gctd.scan.go.coverage_run.events import PackageResult
from gctd.scan.go.coverage_run.progress import PackageCount
from gctd.scan.go.toolchain import Downloads, GoCaches
from gctd.scan.isolation.process import Limits
from gctd.scan.isolation.sandbox import NONE, Sandbox

BeginStage = Callable[[], Awaitable[PackageCount]]
"""Called as the preparation of the standard library begins, if it is needed. The count takes its packages."""

Restore = Callable[[Sequence[str], float, BeginStage], Awaitable[None]]
"""Called before anything is built, with the packages of the standard library that are needed and the seconds that are left."""


@attrs.frozen(kw_only=True)
class GoTestRun:
    """A run of `go test`.

    `profile` is the text of the coverage profile, None if there is none. The numbers depend on `flags`. `workspace`: with the
    go.work of the repository. `platform` is the target of the build, None if go did not report it. `repeatable`: no module was
    missing, and no tests were cut short, so another run of the commit is expected to end the same.
    """

    profile: bytes | None
    packages: tuple[PackageResult, ...]
    go_version: str
    flags: tuple[str, ...]
    workspace: bool
    repeatable: bool
    platform: Platform | None = None

    @property
    def scope(self) -> Scope:
        """The tests that count for a package."""
        return "module" if covers_others(self.flags) else "own"


class NothingBuilt(GoError):
    """No package of the module can be built; `run` has the reason of each."""

    def __init__(self, reason: str, run: GoTestRun) -> None:
        super().__init__(reason, permanent=True)
        self.run = run


@attrs.frozen(kw_only=True)
class Plan:
    """Input of a test run: a module of a checkout, flags (already checked), and `timeout` in seconds for the whole run.

    `source` is the checkout, `project` the module's directory in it; a sandbox never writes it. `commit` is the commit of the
    checkout: a commit is built once, unless it is empty. `job` is the job's folder. `workspace`: the go.work above the module is
    active. `cgo`: None leaves the choice to Go. `downloads`: the download of modules. `sandbox`: the sandbox of all steps.
    Without a sandbox, or with `test_network`, the tests have the network of the host. `restore` may fill the build cache
    beforehand.
    """

    source: Path
    project: str
    job: Path
    caches: GoCaches
    timeout: float
    test_args: tuple[str, ...] = ()
    go_flags: tuple[str, ...] = ()
    workspace: bool = False
    cgo: bool | None = None
    downloads: Downloads = attrs.field(factory=Downloads)
    sandbox: Sandbox = NONE
    test_network: bool = False
    restore: Restore | None = None
    commit: str = ""
    limits: Limits = attrs.field(factory=lambda: Limits(memory=8192 * MIB, processes=8192))

    @property
    def module_dir(self) -> Path:
        """The directory of the module."""
        return self.source / self.project
