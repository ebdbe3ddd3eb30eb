"""Projects of Go whose tests are run, and their outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from gctd.scan.go.coverage_run.plan import GoTestRun, Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.toolchain import GoCaches, Toolchain
from tests.support.tracker import go_repo as gorepo


@attrs.frozen
class Project:
    """A Go module on the disk, and how its tests are run."""

    source: Path
    project: str
    job: Path
    cache: Path
    toolchain: Toolchain
    stages: list[str] = attrs.field(factory=list)
    log: list[str] = attrs.field(factory=list)

    @property
    def directory(self) -> Path:
        return self.source / self.project

    def plan(self, **options: Any) -> Plan:
        given = {"source": self.source, "project": self.project, "job": self.job, "caches": GoCaches.below(self.cache)}
        return Plan(**{"timeout": 100.0, **given, **options})

    async def run(self, **options: Any) -> GoTestRun:
        return await run_tests(self.toolchain, self.plan(**options), self._stage, self.log.append)

    async def _stage(self, name: str) -> None:
        self.stages.append(name)


def outcomes(run: GoTestRun) -> dict[str, str]:
    return {package.path.rpartition("/")[2]: package.outcome for package in run.packages}


def reasons(run: GoTestRun) -> dict[str, str]:
    return {package.path.rpartition("/")[2]: package.reason for package in run.packages}


def module(body: str, *imports: str) -> dict[str, str]:
    """A module of one package whose test has these statements."""
    return {"go.mod": gorepo.module("example.com/one"), **gorepo.with_test("one", body, *imports)}
