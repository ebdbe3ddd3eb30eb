"""The rights of each step of a test run: its environment, its readable files, its writable files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from gctd.scan.errors import GoError
from gctd.scan.go.coverage_run.plan import Plan
from gctd.scan.go.toolchain import TRUST, Downloads, GoPlaces, Toolchain, go_environment
from gctd.scan.isolation.process import run
from gctd.scan.isolation.sandbox import View

_COPYING = 600.0
_NO_INDEX = {"GODEBUG": "goindex=0"}
"""Go keeps an index of packages whose files are older than two seconds in its build cache, and fails if it cannot write that."""
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@attrs.frozen(kw_only=True)
class GoStep:
    """A run of go. `credentials`: its output may show credentials of the operator."""

    environment: Mapping[str, str] = attrs.field(repr=False)
    view: View
    credentials: bool = False


@attrs.frozen(kw_only=True)
class Rights:
    """Rights of the steps of one test run.

    In a sandbox with mounts all steps see a copy of the checkout at the place of the checkout, so that paths, and with them the
    keys of the build cache, are the same. Otherwise they see the checkout. `place` is an empty folder of this run, in the job's
    folder. `index`: the tests are loaded with the index of packages of the build step.
    """

    toolchain: Toolchain
    plan: Plan
    place: Path
    index: bool

    async def prepare(self) -> None:
        """Make the directories and the copy of the checkout. Raises GoError."""
        for name in ("modules", "build", "test"):
            self._own(name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clones.mkdir(exist_ok=True)
        self.plan.caches.version_control.mkdir(parents=True, exist_ok=True)
        if not self.plan.sandbox.has_mounts:
            return
        self._copy.mkdir(mode=0o700)
        command = ["cp", "-a", "--reflink=auto", "--", f"{self.plan.source}/.", str(self._copy)]
        copied = await run(command, cwd=self.place, env=_ENVIRONMENT, timeout=_COPYING)
        if not copied.ok:
            raise GoError(f"the checkout cannot be copied: cp {copied.how()}: {copied.output_tail.strip()[-300:]}")

    def modules(self) -> GoStep:
        """Downloading: the network, the credentials, the module cache; clones of modules are thrown away with the job."""
        caches = self.plan.caches
        environment = self._environment("modules", caches.index, downloads=self.plan.downloads)
        view = self._view(
            environment,
            writable=[self._own("modules"), caches.modules, caches.index],
            writable_as={**self._tree, caches.version_control: self._clones},
            network=True,
        )
        return GoStep(environment=environment, view=view, credentials=True)

    def build(self) -> GoStep:
        """Compiling: the build cache and nothing else can be written."""
        caches = self.plan.caches
        environment = self._environment("build", caches.build)
        view = self._view(
            environment, readable=[caches.modules], readable_as=self._tree, writable=[self._own("build"), caches.build]
        )
        return GoStep(environment=environment, view=view)

    @property
    def profile(self) -> Path:
        """Path at which tests write the profile: a file that exists before."""
        return self.place / "profile"

    @property
    def test_flags(self) -> Sequence[str]:
        """Flags of go test in the step of the tests: tests that run go have no index."""
        return [f"-exec=env {name}={value}" for name, value in _NO_INDEX.items()] if self.index else []

    def test(self) -> GoStep:
        """Testing: no cache and no file of another step can be written."""
        caches, sandbox = self.plan.caches, self.plan.sandbox
        network = self.plan.test_network or not sandbox.has_mounts
        environment = self._environment("test", caches.build, network=network)
        if sandbox.kind != "none" and not self.index:
            environment = {**environment, **_NO_INDEX}
        view = self._view(
            environment,
            readable=[caches.modules, caches.build],
            writable=[self._own("test"), self.profile],
            writable_as=self._tree,
            network=network,
        )
        return GoStep(environment=environment, view=view)

    @property
    def _copy(self) -> Path:
        return self.place / "copy"

    @property
    def _clones(self) -> Path:
        return self._own("modules") / "vcs"

    @property
    def _tree(self) -> Mapping[Path, Path]:
        return {self.plan.source: self._copy if self.plan.sandbox.has_mounts else self.plan.source}

    def _own(self, step: str) -> Path:
        return self.place / step

    def _environment(
        self, step: str, build: Path, *, downloads: Downloads | None = None, network: bool = False
    ) -> Mapping[str, str]:
        return go_environment(
            self.toolchain,
            GoPlaces(own=self._own(step), build=build, modules=self.plan.caches.modules),
            flags=self.plan.go_flags,
            workspace=self.plan.workspace,
            downloads=downloads,
            network=network or downloads is not None,
            cgo=self.plan.cgo,
        )

    def _view(
        self,
        environment: Mapping[str, str],
        *,
        writable: list[Path],
        readable: list[Path] | None = None,
        readable_as: Mapping[Path, Path] | None = None,
        writable_as: Mapping[Path, Path] | None = None,
        network: bool = False,
    ) -> View:
        named = [environment[name] for name in (*TRUST, "NETRC") if name in environment]
        proxies = re.findall(r"file://([^,|]+)", environment.get("GOPROXY", ""))
        return View(
            cwd=self.plan.module_dir,
            scratch=self.place,
            readable=[self.toolchain.go.parents[1], *map(Path, named), *map(Path, proxies), *(readable or ())],
            writable=writable,
            network=network,
            readable_as=readable_as or {},
            writable_as=writable_as or {},
        )
