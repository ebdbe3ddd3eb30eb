"""The measurement of one project of a tree: its tests are run as a worker runs them, or a profile is taken, and scored."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import attrs
import msgspec

from gctd.cli.builds.checking.working_copy import WorkingCopy
from gctd.domain.analysis import Blob, Metadata, PackageProblem, Summary, analysis_id
from gctd.domain.options import covers_others, parse_crap_args, parse_go_flags
from gctd.domain.repo.config import ProjectConfig, go_test_flags
from gctd.domain.repo.project import Project
from gctd.domain.upload import UploadedProfile
from gctd.engines.engine import EngineInput
from gctd.engines.native import NativeEngine
from gctd.engines.report import Report
from gctd.engines.score import shortened
from gctd.exports.coverage import statements_covered
from gctd.readmodel.views import AnalysisView
from gctd.scan.errors import NeedsNewerGo
from gctd.scan.go.coverage_run.building import tags_of
from gctd.scan.go.coverage_run.plan import GoTestRun, NothingBuilt, Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.discovery import nested_modules
from gctd.scan.go.toolchain import GoCaches, builds_c
from gctd.scan.go.toolchains import Toolchains
from gctd.scan.go.versions import parse_version
from gctd.scan.isolation.output import OnLog
from gctd.scan.isolation.sandbox import Sandbox, find_sandbox
from gctd.scan.policy import module_downloads
from gctd.settings import Settings
from gctd.worker.identity import host_platform
from gctd.worker.scans.measuring import MeasuredRun, measured_now, told, uncovered_of
from gctd.worker.scans.opening import open_toolchains
from gctd.worker.scans.uploaded import measured_by

SOURCE = "gctd check"
"""The name in place of a task in the results."""


@attrs.frozen(kw_only=True)
class MeasuredProject:
    """A measured project: the analysis as the tracker shows it, its report, and the covered statements in per cent.

    `coverage_complete` is false if packages with tests are not part of the coverage.
    """

    analysis: AnalysisView
    report: Report
    coverage: float | None
    coverage_complete: bool = True


@attrs.frozen(kw_only=True)
class Measuring:
    """The means of a measurement: settings of the user, toolchains, sandbox, a cache directory, and a folder for this run."""

    settings: Settings
    config: ProjectConfig
    toolchains: Toolchains
    sandbox: Sandbox
    cache: Path
    job: Path
    on_log: OnLog

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: Settings, config: ProjectConfig, on_log: OnLog) -> AsyncIterator[Measuring]:
        """Provide the means; the folder is removed at the end. Raises NoToolchain, NoSandbox."""
        cache = settings.cache_directory.absolute() / "check"
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        toolchains = await open_toolchains(settings)
        sandbox = await find_sandbox(settings.sandbox, cache)
        with tempfile.TemporaryDirectory(prefix="job-", dir=cache, ignore_cleanup_errors=True) as job:
            yield cls(
                settings=settings,
                config=config,
                toolchains=toolchains,
                sandbox=sandbox,
                cache=cache,
                job=Path(job),
                on_log=on_log,
            )

    async def tested(self, copy: WorkingCopy, project: Project, projects: Sequence[Project]) -> MeasuredProject:
        """Run the tests of a project and score it, also if no package can be built. Raises ScanError, EngineFailed, BadInput."""
        try:
            run = await self._run(copy, project)
        except NothingBuilt as error:
            run = error.run
        return await self._scored(copy, project, projects, measured_now(run, self.sandbox.kind), "tests")

    async def of_commit(self, copy: WorkingCopy, project: Project, projects: Sequence[Project]) -> MeasuredProject:
        """As `tested`, for a tree that is exactly its commit: measured once, and kept unless a package could not be tested."""
        version = self.toolchains.name(self.toolchains.version_for(project))
        host = (self.sandbox.kind, self.settings.test_network, builds_c(self.settings.cgo))
        described = (copy.commit, project, NativeEngine().version, version, host, self.config)
        kept = self.cache / "bases" / f"{sha256(repr(described).encode()).hexdigest()[:32]}.json"
        if (known := _known(kept)) is not None:
            return known
        run = await self._run(copy, project)
        scored = await self._scored(copy, project, projects, measured_now(run, self.sandbox.kind), "tests")
        if not run.repeatable or any(package.outcome not in ("ok", "no tests") for package in run.packages):
            return scored  # the next run may have the network, the time, or the luck, that this one lacked
        kept.parent.mkdir(exist_ok=True)
        new = self.job / kept.name
        new.write_bytes(msgspec.json.encode(scored))
        new.replace(kept)
        return scored

    async def of_profile(
        self, copy: WorkingCopy, project: Project, projects: Sequence[Project], profile: bytes
    ) -> MeasuredProject:
        """Score a project by a coverage profile of this tree, which is checked against the source. Raises as `tested`.

        The profile counts as one of a test run with the flags of the configuration.
        """
        of_test = (flag for flag in go_test_flags(self.config, "native") if not flag.startswith("-timeout="))
        flags = (*parse_go_flags(self.config.go_flags or ""), *of_test)
        upload = UploadedProfile(
            flag="profile",
            profile=Blob(digest="", size=len(profile)),
            go_version=self.toolchains.name(self.toolchains.version_for(project)),
            platform=host_platform(),
            tags=tags_of(flags) or (),
            scope="module" if covers_others(flags) else "own",
        )
        run = await measured_by([upload], [profile], copy.root / project.name, project)
        run = attrs.evolve(run, flags=told(flags, workspace=project.in_workspace))
        return await self._scored(copy, project, projects, run, "upload")

    async def _run(self, copy: WorkingCopy, project: Project) -> GoTestRun:
        version = self.toolchains.version_for(project)
        while True:
            try:
                async with self.toolchains.using(version, self.on_log) as toolchain:
                    return await run_tests(toolchain, self._plan(copy, project), _no_stage, self.on_log)
            except NeedsNewerGo as needed:
                newer = self.toolchains.newer(parse_version(needed.version))
                if newer is None or (version is not None and newer <= version):
                    raise
                version = newer

    def _plan(self, copy: WorkingCopy, project: Project) -> Plan:
        caches = GoCaches.below(self.cache / "go")
        for directory in (caches.modules, caches.index, caches.build, caches.built):
            directory.mkdir(parents=True, exist_ok=True)
        return Plan(
            source=copy.root,
            project=project.name,
            job=self.job,
            caches=caches,
            timeout=self.settings.task_timeout,
            test_args=go_test_flags(self.config, "native"),
            go_flags=parse_go_flags(self.config.go_flags or ""),
            workspace=project.in_workspace,
            cgo=self.settings.cgo_wanted,
            downloads=module_downloads(self.settings),
            sandbox=self.sandbox,
            test_network=self.settings.test_network,
        )

    async def _scored(
        self, copy: WorkingCopy, project: Project, projects: Sequence[Project], run: MeasuredRun, source: str
    ) -> MeasuredProject:
        options = parse_crap_args(self.config.crap_args or ())
        profile = None
        if run.profile is not None:
            profile = Path(tempfile.mkdtemp(prefix="profile-", dir=self.job)) / "cover.out"
            profile.write_bytes(run.profile)
        given = EngineInput(
            module_dir=copy.root / project.name,
            repository=copy.root,
            module_path=project.module_path,
            profile=profile,
            nested=nested_modules(project.name, tuple(other.name for other in projects)),
            options=options.unshortened(),
            tests=run.tests,
            uploaded=source == "upload",
        )
        whole = await asyncio.to_thread(NativeEngine().analyse, given)
        report, uncovered = shortened(whole, options), uncovered_of(run, whole, project)
        if profile is not None:
            shutil.rmtree(profile.parent)
        analysis = _analysis(copy, project, run, report, uncovered, options.argv(), source)
        coverage = await asyncio.to_thread(statements_covered, run.profile, uncovered)
        return MeasuredProject(analysis=analysis, report=report, coverage=coverage.percent, coverage_complete=coverage.complete)


def _known(kept: Path) -> MeasuredProject | None:
    """Return a kept measurement; None if there is none that this version can read."""
    try:
        return msgspec.json.decode(kept.read_bytes(), type=MeasuredProject)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _analysis(
    copy: WorkingCopy,
    project: Project,
    run: MeasuredRun,
    report: Report,
    uncovered: tuple[PackageProblem, ...],
    scoring: Sequence[str],
    source: str,
) -> AnalysisView:
    """Return the analysis in the form of the tracker's, so that the same rules and exports apply."""
    return AnalysisView(
        analysis_id=analysis_id(copy.url, project.name),
        task_id=SOURCE,
        repo_id=copy.url,
        repo_url=copy.url,
        project=project.name,
        ref="",
        commit_sha=copy.commit,
        summary=Summary(**msgspec.structs.asdict(report.summary)),
        engine=report.engine,
        engine_version=report.engine_version,
        crap_version=report.crap_version,
        go_version=run.go_version,
        flags=(*run.flags, *scoring),
        report_digest="",
        report_size=0,
        profile_digest=None,
        profile_path=None,
        metadata=Metadata(),
        uncovered=uncovered,
        analyzed_at=datetime.now(UTC).isoformat(),
        duration_ms=0,
        sequence=0,
        rescored_from=None,
        measured=0,
        sandbox=run.sandbox,
        known=Summary(**msgspec.structs.asdict(report.measured)),
        states=dict(report.states),
        platform="" if run.tests is None else run.tests.platforms,
        source=source,
        baseline=False,
        sources_digest=None,
        store_source="",
    )


async def _no_stage(stage: str) -> None:
    """The stages are lines of the log here."""
