"""The work itself: check out, find the projects, run the tests, score the functions, store what came out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from eventlog.blobs import Blobs
from gctd.domain.analysis import Analysis, Blob, Metadata, PackageProblem, Summary, analysis_id, profile_path
from gctd.domain.errors import BadInput
from gctd.domain.options import parse_duration, parse_go_flags, parse_test_args
from gctd.domain.project import Project
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.engines import report as report_format
from gctd.engines.engine import EngineInput
from gctd.engines.registry import engine_named
from gctd.engines.report import Report
from gctd.policy import repo_policy
from gctd.scan.checkout import Checkout, Checkouts
from gctd.scan.discovery import discover, nested_modules
from gctd.scan.errors import ScanError
from gctd.scan.git import Git, GitSettings
from gctd.scan.gotest import GoTestRun, Plan, run_tests
from gctd.scan.gotestevents import PackageResult
from gctd.scan.staging import staged
from gctd.scan.toolchain import Toolchain, find_toolchain
from gctd.settings import Settings
from gctd.worker.scoring import score
from gctd.worker.work import Discovered, OnStage, WorkFailed


@asynccontextmanager
async def open_work(settings: Settings, blobs: Blobs) -> AsyncIterator[Scanning]:
    """The work of a worker with these settings; what an earlier process left in the cache is removed first.

    Raises NoToolchain.
    """
    policy = repo_policy(settings)
    git = Git(GitSettings(addresses=policy.addresses))
    checkouts = Checkouts(settings.cache_directory, git, parse_url=policy.parse_url)
    await checkouts.sweep()
    toolchain = await find_toolchain(settings.cache_directory)
    yield Scanning(settings, checkouts, toolchain, blobs)


class Scanning:
    """Discovers and scans (see `gctd.worker.work.Work`)."""

    def __init__(
        self,
        settings: Settings,
        checkouts: Checkouts,
        toolchain: Toolchain,
        blobs: Blobs,
    ) -> None:
        self._settings = settings
        self._checkouts = checkouts
        self._toolchain = toolchain
        self._blobs = blobs

    async def discover(self, repo: Repo) -> Discovered:
        """Find the projects of a repository, at the head of its default branch or of the ref that its root is set to."""
        config = repo.configs.get("")
        try:
            url = repo_policy(self._settings).parse_url(repo.clone_url)
            async with self._checkouts.checkout(
                url,
                config.ref if config else None,
                submodules=bool(config and config.submodules),
                git_timeout=self._seconds(config.git_timeout if config else None, self._settings.git_timeout),
            ) as checkout:
                projects = await asyncio.to_thread(
                    discover,
                    checkout.path,
                    submodules=bool(config and config.submodules),
                    refused_links=checkout.refused_links,
                )
        except ScanError as error:
            raise WorkFailed(str(error), permanent=error.permanent) from error
        except BadInput as error:
            raise WorkFailed(str(error), permanent=True) from error
        return Discovered(commit_sha=checkout.commit_sha, default_ref=checkout.ref, projects=projects)

    async def scan(self, task: Task, on_stage: OnStage) -> Analysis:
        """Analyse a project."""
        limit = self._seconds(task.config.timeout, self._settings.task_timeout)
        try:
            async with asyncio.timeout(limit):
                return await self._scan(task, on_stage, limit)
        except TimeoutError as error:
            raise WorkFailed(f"it took longer than {limit:.0f} s") from error
        except ScanError as error:
            raise WorkFailed(str(error), permanent=error.permanent) from error
        except BadInput as error:
            raise WorkFailed(str(error), permanent=True) from error

    async def _scan(self, task: Task, on_stage: OnStage, limit: float) -> Analysis:
        started, config = time.monotonic(), task.config
        engine = engine_named(task.engine).name
        await on_stage("clone")
        async with self._checkouts.checkout(
            repo_policy(self._settings).parse_url(task.repo_url),
            task.ref or None,
            submodules=bool(config.submodules),
            git_timeout=self._seconds(config.git_timeout, self._settings.git_timeout),
        ) as checkout:
            projects = await asyncio.to_thread(
                discover, checkout.path, submodules=bool(config.submodules), refused_links=checkout.refused_links
            )
            project = _project(projects, task.project, checkout)
            module_dir = checkout.path / project.name
            with staged(module_dir) as profile:
                left = limit - (time.monotonic() - started)
                run = await run_tests(self._toolchain, self._plan(task, checkout, project, profile, left), on_stage)
                await on_stage("analyse")
                given = EngineInput(
                    module_dir=module_dir,
                    repository=checkout.path,
                    module_path=project.module_path,
                    profile=run.profile,
                    nested=nested_modules(project.name, tuple(other.name for other in projects)),
                )
                report = await score(engine, given, checkout.job, limit - (time.monotonic() - started))
                await on_stage("store")
                return await self._store(task, checkout, run, report, started)

    def _plan(self, task: Task, checkout: Checkout, project: Project, profile: Path, left: float) -> Plan:
        return Plan(
            module_dir=checkout.path / project.name,
            profile=profile,
            job=checkout.job,
            cache=checkout.go_cache,
            timeout=left,
            test_args=parse_test_args(task.config.test_args or ""),
            go_flags=parse_go_flags(task.config.go_flags or ""),
            workspace=project.in_workspace,
        )

    async def _store(self, task: Task, checkout: Checkout, run: GoTestRun, report: Report, started: float) -> Analysis:
        """Store the bodies first: an event only ever names blobs that are there."""
        stored = await self._blobs.put(report_format.encode(report))
        profile, path = None, None
        if run.profile is not None:
            path = profile_path(task.repo_id, task.project, checkout.commit_sha)
            profile = await self._blobs.put(await asyncio.to_thread(run.profile.read_bytes))
            await self._blobs.link(path, profile)
        return Analysis(
            id=analysis_id(task.repo_id, task.project),
            ref=checkout.ref,
            commit_sha=checkout.commit_sha,
            summary=Summary(
                average=report.summary.average,
                combined=report.summary.combined,
                exceeded=report.summary.exceeded,
                total_funcs=report.summary.total_funcs,
            ),
            engine=report.engine,
            engine_version=report.engine_version,
            crap_version=report.crap_version,
            go_version=run.go_version,
            flags=(*run.flags, *(() if run.workspace else ("GOWORK=off",))),
            report=Blob(digest=stored.digest, size=stored.size),
            analyzed_at=datetime.now(UTC),
            duration_ms=round((time.monotonic() - started) * 1000),
            profile=Blob(digest=profile.digest, size=profile.size) if profile else None,
            profile_path=path,
            metadata=Metadata(language="Go"),
            uncovered=tuple(
                PackageProblem(path=package.path, reason=_why(package)) for package in run.packages if package.outcome != "ok"
            ),
        )

    @staticmethod
    def _seconds(text: str | None, default: float) -> float:
        return parse_duration(text) if text is not None else default


def _why(package: PackageResult) -> str:
    """Why a package has no coverage: what became of its tests, and the line that says more where there is one."""
    return package.outcome if package.outcome == "no tests" else f"{package.outcome}: {package.reason}"


def _project(projects: tuple[Project, ...], name: str, checkout: Checkout) -> Project:
    found = next((project for project in projects if project.name == name), None)
    if found is None:
        raise WorkFailed(f"there is no project {name!r} at {checkout.commit_sha[:12]}", permanent=True)
    if found.problem is not None:
        raise WorkFailed(found.problem, permanent=True)
    return found
