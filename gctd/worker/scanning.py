"""The work itself: check out, find the projects, run the tests, score the functions, store what came out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from eventlog.broker.blobs import Blobs
from gctd.domain.analysis import Analysis, Blob, Metadata, Summary, analysis_id, profile_path
from gctd.domain.config import ROOT, effective
from gctd.domain.errors import BadInput
from gctd.domain.options import parse_crap_args, parse_duration, parse_go_flags, parse_test_args
from gctd.domain.project import Project
from gctd.domain.repo import Repo
from gctd.domain.task import Task
from gctd.engines import report as report_format
from gctd.engines.engine import EngineInput
from gctd.engines.registry import engine_named, engines
from gctd.engines.report import Report
from gctd.scan.cache.directory import CacheLimits
from gctd.scan.errors import ScanError
from gctd.scan.git.checkout import Checkout, Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.go.discovery import discover, nested_modules
from gctd.scan.go.run_tests import Plan, run_tests
from gctd.scan.go.staging import staged
from gctd.scan.go.toolchain import Toolchain, find_toolchain
from gctd.scan.hosts.asking import Hosts
from gctd.scan.isolation.output import OnLog
from gctd.scan.isolation.sandbox import Sandbox, find_sandbox
from gctd.settings import Settings, size
from gctd.wiring.policy import git_settings, module_downloads, repo_policy
from gctd.worker.measuring import Measured, measured_before, measured_now
from gctd.worker.metadata import metadata_of, open_hosts
from gctd.worker.scoring import parse_cache, score
from gctd.worker.work import Discovered, Equipment, OnStage, WorkFailed


@asynccontextmanager
async def open_work(settings: Settings, blobs: Blobs) -> AsyncIterator[Scanning]:
    """The work of a worker with these settings; what an earlier process left in the cache is removed first.

    Raises NoToolchain, NoSandbox.
    """
    policy = repo_policy(settings)
    git = Git(git_settings(settings))
    hosts = open_hosts(settings, git.settings)
    limits = CacheLimits(
        clones=size(settings.clones_max_bytes),
        builds=size(settings.builds_max_bytes),
        keep_free=size(settings.keep_free_bytes),
    )
    checkouts = Checkouts(settings.cache_directory, git, cache_limits=limits, parse_url=policy.parse_url)
    await checkouts.upkeep()
    sandbox = await find_sandbox(settings.sandbox, settings.cache_directory)
    toolchain = await find_toolchain(settings.cache_directory)
    yield Scanning(settings, checkouts, toolchain, blobs, hosts, sandbox)


class Scanning:
    """Discovers and scans (see `gctd.worker.work.Work`)."""

    def __init__(
        self,
        settings: Settings,
        checkouts: Checkouts,
        toolchain: Toolchain,
        blobs: Blobs,
        hosts: Hosts,
        sandbox: Sandbox,
    ) -> None:
        self._settings = settings
        self._checkouts = checkouts
        self._toolchain = toolchain
        self._blobs = blobs
        self._hosts = hosts
        self._sandbox = sandbox
        self._downloads = module_downloads(settings)
        self._seeds = checkouts.seeds(toolchain)

    @property
    def equipment(self) -> Equipment:
        """What scans are done with."""
        return Equipment(
            engines={name: engine.version for name, engine in engines().items()},
            go_version=self._toolchain.version,
            sandbox=self._sandbox.kind,
        )

    async def discover(self, repo: Repo) -> Discovered:
        """Find the projects of a repository, at the head of its default branch or of the ref that its root is set to."""
        config = effective(repo.configs, ROOT)
        seconds = self._seconds(config.git_timeout, self._settings.git_timeout)
        try:
            url = repo_policy(self._settings).parse_url(repo.clone_url)
            async with self._checkouts.checkout(
                url, config.ref, submodules=bool(config.submodules), git_timeout=seconds
            ) as checkout:
                projects = await asyncio.to_thread(
                    discover,
                    checkout.path,
                    refused_links=checkout.refused_links,
                )
            default = await self._checkouts.default_branch(url, git_timeout=seconds) if config.ref else checkout.ref
        except ScanError as error:
            raise WorkFailed(str(error), permanent=error.permanent) from error
        except BadInput as error:
            raise WorkFailed(str(error), permanent=True) from error
        return Discovered(commit_sha=checkout.commit_sha, default_ref=default, projects=projects)

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """Analyse a project."""
        limit = self._seconds(task.config.timeout, self._settings.task_timeout)
        try:
            async with asyncio.timeout(limit):
                return await self._scan(task, on_stage, on_log, limit)
        except TimeoutError as error:
            raise WorkFailed(f"it took longer than {limit:.0f} s") from error
        except ScanError as error:
            raise WorkFailed(str(error), permanent=error.permanent) from error
        except BadInput as error:
            raise WorkFailed(str(error), permanent=True) from error

    async def _scan(self, task: Task, on_stage: OnStage, on_log: OnLog, limit: float) -> Analysis:
        started, config = time.monotonic(), task.config
        engine = await asyncio.to_thread(engine_named, task.engine)
        options = parse_crap_args(config.crap_args or ())
        await on_stage("clone")
        url = repo_policy(self._settings).parse_url(task.repo_url)
        async with self._checkouts.checkout(
            url,
            task.ref or None,
            commit=task.commit_sha,
            submodules=bool(config.submodules),
            git_timeout=self._seconds(config.git_timeout, self._settings.git_timeout),
            on_log=on_log,
        ) as checkout:
            projects = await asyncio.to_thread(discover, checkout.path, refused_links=checkout.refused_links)
            project = _project(projects, task.project, checkout)
            module_dir = checkout.path / project.name
            before = task.rescores
            metadata = before.metadata if before else await metadata_of(self._hosts, url, checkout.path)
            with staged(module_dir) as profile:
                left = limit - (time.monotonic() - started)
                on_log(f"project {project.name}: module {project.module_path}, {self._toolchain.version}")
                if before is not None:
                    on_log("scoring the coverage profile of an earlier task again")
                    run = await measured_before(before, self._blobs, profile)
                else:
                    plan = self._plan(task, checkout, project, profile, left)
                    run = measured_now(await run_tests(self._toolchain, plan, on_stage, on_log), self._sandbox.kind)
                await on_stage("analyse")
                given = EngineInput(
                    module_dir=module_dir,
                    repository=checkout.path,
                    module_path=project.module_path,
                    profile=run.profile,
                    nested=nested_modules(project.name, tuple(other.name for other in projects)),
                    options=options,
                    cache=parse_cache(self._settings.cache_directory, task.repo_id, task.project),
                )
                left = limit - (time.monotonic() - started)
                report = await score(engine, given, checkout.job, left, self._sandbox, on_log)
                summary = report.summary
                on_log(f"{engine.name}: {summary.total_funcs} functions, {summary.exceeded} of them over the threshold")
                await on_stage("store")
                return await self._store(task, checkout, run, report, metadata, started)

    def _plan(self, task: Task, checkout: Checkout, project: Project, profile: Path, left: float) -> Plan:
        test_args, go_flags = parse_test_args(task.config.test_args or ""), parse_go_flags(task.config.go_flags or "")

        async def plant(packages: Sequence[str], seconds: float) -> None:
            flags = (*go_flags, *test_args)
            await self._seeds.plant(packages, checkout.go_cache, checkout.job, flags=flags, seconds=seconds)

        return Plan(
            module_dir=checkout.path / project.name,
            profile=profile,
            job=checkout.job,
            cache=checkout.go_cache,
            timeout=left,
            test_args=test_args,
            go_flags=go_flags,
            workspace=project.in_workspace,
            cgo=None if self._settings.cgo == "auto" else self._settings.cgo == "on",
            downloads=self._downloads,
            sandbox=self._sandbox,
            test_network=self._settings.test_network,
            plant=plant,
        )

    async def _store(
        self, task: Task, checkout: Checkout, run: Measured, report: Report, metadata: Metadata, started: float
    ) -> Analysis:
        """Store the bodies first: an event only ever names blobs that are there."""
        stored = await self._blobs.put(report_format.encode(report))
        profile, path = await self._kept(task, checkout, run)
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
            flags=(*run.flags, *parse_crap_args(task.config.crap_args or ()).argv()),
            report=Blob(digest=stored.digest, size=stored.size),
            analyzed_at=datetime.now(UTC),
            duration_ms=round((time.monotonic() - started) * 1000),
            profile=profile,
            profile_path=path,
            metadata=metadata,
            uncovered=run.uncovered,
            sandbox=run.sandbox,
        )

    async def _kept(self, task: Task, checkout: Checkout, run: Measured) -> tuple[Blob | None, str | None]:
        """The coverage profile in the blob store, and the name that it has there; None where there is no profile."""
        if task.rescores is not None:
            return task.rescores.profile, task.rescores.profile_path
        if run.profile is None:
            return None, None
        path = profile_path(task.repo_id, task.project, checkout.commit_sha)
        stored = await self._blobs.put(await asyncio.to_thread(run.profile.read_bytes))
        await self._blobs.link(path, stored)
        return Blob(digest=stored.digest, size=stored.size), path

    @staticmethod
    def _seconds(text: str | None, default: float) -> float:
        return parse_duration(text) if text is not None else default


def _project(projects: tuple[Project, ...], name: str, checkout: Checkout) -> Project:
    found = next((project for project in projects if project.name == name), None)
    if found is None:
        raise WorkFailed(f"there is no project {name!r} at {checkout.commit_sha[:12]}", permanent=True)
    if found.problem is not None:
        raise WorkFailed(found.problem, permanent=True)
    return found
