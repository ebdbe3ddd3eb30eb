"""One scan of a project, in its checkout: measure, score, store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import attrs
import msgspec

from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Analysis, Blob, Metadata, PackageProblem, Summary, analysis_id, profile_path
from gctd.domain.options import parse_crap_args, parse_go_flags
from gctd.domain.repo.config import go_test_flags
from gctd.domain.repo.project import Project
from gctd.domain.task.events import Progress
from gctd.domain.task.state import Task
from gctd.engines import report as report_format
from gctd.engines.engine import Engine, EngineInput
from gctd.engines.measurement import encode_facts
from gctd.engines.report import Report
from gctd.engines.score import shortened
from gctd.scan.errors import NeedsNewerGo
from gctd.scan.git.checkout import Checkout, Checkouts
from gctd.scan.go.coverage_run.plan import BeginStage, GoTestRun, Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.discovery import nested_modules
from gctd.scan.go.downloading import DownloadStage
from gctd.scan.go.toolchain import Downloads, GoCaches, Toolchain, builds_c
from gctd.scan.go.toolchains import Toolchains
from gctd.scan.go.versions import GoVersion, parse_version
from gctd.scan.hosts.asking import Hosts
from gctd.scan.isolation.output import OnLog
from gctd.scan.isolation.sandbox import Sandbox
from gctd.settings import Settings
from gctd.worker.identity import host_platform
from gctd.worker.scans.earlier import Circumstances, Earlier
from gctd.worker.scans.measuring import MeasuredRun, measured_before, measured_now, uncovered_of
from gctd.worker.scans.scoring import parse_cache, score
from gctd.worker.scans.sources import read_unless_never, stored_sources
from gctd.worker.scans.uploaded import measured_elsewhere
from gctd.worker.work import OnStage


@attrs.frozen(kw_only=True)
class ScanTools:
    """The tools of a worker's scans."""

    settings: Settings
    checkouts: Checkouts
    toolchains: Toolchains
    downloads: Downloads
    blobs: Blobs
    hosts: Hosts
    sandbox: Sandbox


@attrs.frozen(kw_only=True)
class ScanRun:
    """A scan under way: a task, the checkout of its commit, the project, and the names of all projects there.

    `began` is a time of `time.monotonic`, `limit` the seconds from then on.
    """

    tools: ScanTools
    task: Task
    checkout: Checkout
    project: Project
    projects: tuple[str, ...]
    engine: Engine
    store_source: str
    began: float
    limit: float
    on_stage: OnStage
    on_log: OnLog

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.limit - (time.monotonic() - self.began)

    async def result(self, metadata: Metadata) -> Analysis:
        """Return the analysis, with its bodies in the blob store. Raises WorkFailed, ScanError, BadInput."""
        task, project, tools = self.task, self.project, self.tools
        options = parse_crap_args(task.config.crap_args or ())
        version = tools.toolchains.version_for(project)
        self.on_log(f"project {project.name}: module {project.module_path}, {tools.toolchains.name(version)}")
        given = EngineInput(
            module_dir=self.checkout.path / project.name,
            repository=self.checkout.path,
            module_path=project.module_path,
            nested=nested_modules(project.name, self.projects),
            options=options.unshortened(),
            cache=parse_cache(tools.settings.cache_directory, task.repo_id, task.project),
            uploaded=bool(task.uploads),
        )
        sources = await read_unless_never(given, self.store_source)  # before any test can have written
        run = await self._measured(given, version)
        await self.on_stage("analyse")
        given = attrs.evolve(given, tests=run.tests)
        whole = await score(self.engine, given, run.profile, self.checkout.job, self.left, tools.sandbox, self.on_log)
        report = shortened(whole, options)
        summary = report.summary
        self.on_log(f"{self.engine.name}: {summary.total_funcs} functions, {summary.exceeded} of them over the threshold")
        self.on_log(f"coverage of the functions: {', '.join(f'{n} {s}' for s, n in report.states.items()) or 'not known'}")
        await self.on_stage("store")
        files = {entry.file for entry in report.entries}
        kept = await stored_sources(sources, files, self.checkout.facts, tools.blobs)
        analysis = attrs.evolve(
            await self._stored(run, report, uncovered_of(run, whole, project)), metadata=metadata, sources=kept
        )
        if task.rescores is None and not task.uploads and run.repeatable:
            await Earlier(tools.blobs).keep(task, self.circumstances, analysis)
        return analysis

    @property
    def circumstances(self) -> Circumstances:
        """The conditions of the scan."""
        settings, toolchains = self.tools.settings, self.tools.toolchains
        return Circumstances(
            engine=self.engine.name,
            engine_version=self.engine.version,
            go_version=toolchains.name(toolchains.version_for(self.project)),
            platform=host_platform(),
            cgo=builds_c(settings.cgo),
            sandbox=self.tools.sandbox.kind,
            test_network=settings.test_network,
            store_source=self.store_source,
        )

    async def _measured(self, given: EngineInput, version: GoVersion | None) -> MeasuredRun:
        """Return the test run to score: of uploaded profiles, of an earlier task, or a new one."""
        task, blobs = self.task, self.tools.blobs
        if task.uploads:
            names = ", ".join(upload.flag for upload in task.uploads)
            self.on_log(f"scoring {len(task.uploads)} uploaded profiles: {names}")
            return await measured_elsewhere(task.uploads, blobs, given.module_dir, self.project)
        if task.rescores is not None:
            self.on_log("scoring the coverage profile of an earlier task again")
            return await measured_before(task.rescores, blobs)
        return measured_now(await self._tested(version), self.tools.sandbox.kind)

    async def _tested(self, version: GoVersion | None) -> GoTestRun:
        """Run the tests with the toolchain that the module asks for, and again if a dependency needs a newer one."""
        toolchains, stage = self.tools.toolchains, ""

        async def on_entered(name: str) -> None:
            nonlocal stage
            stage = name
            await self.on_stage(name)

        async def on_progress(progress: Progress) -> None:
            await self.on_stage(stage, progress)

        download = DownloadStage(on_entered, on_progress)

        while True:
            try:
                async with toolchains.using(version, self.on_log, download) as toolchain:
                    return await run_tests(toolchain, self._plan(toolchain), on_entered, self.on_log, on_progress)
            except NeedsNewerGo as needed:
                newer = toolchains.newer(parse_version(needed.version))
                if newer is None or (version is not None and newer <= version):
                    raise
                version = newer

    def _plan(self, toolchain: Toolchain) -> Plan:
        task, checkout, project, tools = self.task, self.checkout, self.project, self.tools
        test_args, go_flags = go_test_flags(task.config, task.engine), parse_go_flags(task.config.go_flags or "")

        async def restore(packages: Sequence[str], seconds: float, begin: BeginStage) -> None:
            flags = (*go_flags, *test_args)
            await tools.checkouts.stdlib(toolchain).restore(
                packages, checkout.go_caches, checkout.job, flags=flags, seconds=seconds, begin=begin
            )

        return Plan(
            source=checkout.path,
            project=project.name,
            commit=checkout.commit_sha,
            job=checkout.job,
            caches=GoCaches.below(checkout.go_caches),
            timeout=self.left,
            test_args=test_args,
            go_flags=go_flags,
            workspace=project.in_workspace,
            cgo=tools.settings.cgo_wanted,
            downloads=tools.downloads,
            sandbox=tools.sandbox,
            test_network=tools.settings.test_network,
            restore=restore,
        )

    async def _stored(self, run: MeasuredRun, report: Report, uncovered: tuple[PackageProblem, ...]) -> Analysis:
        """Store the bodies, and return the analysis. The bodies come first: an event only ever names existing blobs."""
        task, checkout, blobs = self.task, self.checkout, self.tools.blobs
        stored = await blobs.put(report_format.encode(report))
        profile, path = await self._profile(run)
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=checkout.ref,
            commit_sha=checkout.commit_sha,
            summary=Summary(**msgspec.structs.asdict(report.summary)),
            engine=report.engine,
            engine_version=report.engine_version,
            crap_version=report.crap_version,
            go_version=run.go_version,
            flags=(*run.flags, *parse_crap_args(task.config.crap_args or ()).argv()),
            report=Blob(digest=stored.digest, size=stored.size),
            analyzed_at=datetime.now(UTC),
            duration_ms=round((time.monotonic() - self.began) * 1000),
            profile=profile,
            profile_path=path,
            uncovered=uncovered,
            sandbox=run.sandbox,
            measured=Summary(**msgspec.structs.asdict(report.measured)),
            states=dict(report.states),
            tests=await self._facts(run),
            platform="" if run.tests is None else run.tests.platforms,
            store_source=self.store_source,
            projects=self.projects,
            source=task.rescores.source if task.rescores else "upload" if task.uploads else "tests",
        )

    async def _facts(self, run: MeasuredRun) -> Blob | None:
        """Store the outcome of the tests. Return its blob."""
        if self.task.rescores is not None:
            return self.task.rescores.tests
        if run.tests is None:
            return None
        stored = await self.tools.blobs.put(encode_facts(run.tests))
        return Blob(digest=stored.digest, size=stored.size)

    async def _profile(self, run: MeasuredRun) -> tuple[Blob | None, str | None]:
        """Store the coverage profile. Return its blob and its name in the blob store; None if no profile exists."""
        task, blobs = self.task, self.tools.blobs
        if task.rescores is not None:
            return task.rescores.profile, task.rescores.profile_path
        if run.profile is None:
            return None, None
        path = profile_path(task.repo_id, task.project, self.checkout.commit_sha)
        stored = await blobs.put(run.profile)
        await blobs.link(path, stored)
        return Blob(digest=stored.digest, size=stored.size), path
