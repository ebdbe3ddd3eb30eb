"""The work itself: check out, find the projects, run the tests, score the functions, store what came out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Analysis
from gctd.domain.errors import BadInput
from gctd.domain.options import parse_crap_args, parse_duration, parse_go_flags
from gctd.domain.repo.config import ROOT, effective, go_test_flags
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task.events import Progress
from gctd.domain.task.state import Task
from gctd.engines.engine import Engine, EngineInput
from gctd.engines.registry import ENGINES, engine_named
from gctd.engines.score import shortened
from gctd.scan.errors import NeedsNewerGo, ScanError
from gctd.scan.git.checkout import Checkout, Checkouts
from gctd.scan.go.coverage_run.plan import BeginStage, GoTestRun, Plan
from gctd.scan.go.coverage_run.run_tests import run_tests
from gctd.scan.go.discovery import discover, nested_modules
from gctd.scan.go.downloading import DownloadStage
from gctd.scan.go.toolchain import Downloads, GoCaches, Toolchain, builds_c
from gctd.scan.go.toolchains import Toolchains
from gctd.scan.go.versions import GoVersion, parse_version
from gctd.scan.hosts.asking import Hosts
from gctd.scan.isolation.output import OnLog
from gctd.scan.isolation.sandbox import Sandbox
from gctd.scan.policy import repo_policy
from gctd.settings import Settings
from gctd.worker.identity import host_platform
from gctd.worker.scans.earlier import Circumstances, Earlier
from gctd.worker.scans.measuring import MeasuredRun, measured_before, measured_now, uncovered_of
from gctd.worker.scans.metadata import metadata_of
from gctd.worker.scans.scoring import parse_cache, score
from gctd.worker.scans.sources import read_unless_never, stored_sources
from gctd.worker.scans.storing import store_analysis
from gctd.worker.scans.uploaded import measured_elsewhere
from gctd.worker.work import Discovered, Equipment, OnStage, ResolvedRef, WorkFailed


@attrs.frozen
class Scanning:
    """Discovers and scans (see `gctd.worker.work.Work`)."""

    _settings: Settings
    _checkouts: Checkouts
    _toolchains: Toolchains
    _downloads: Downloads
    _blobs: Blobs
    _hosts: Hosts
    _sandbox: Sandbox

    @property
    def equipment(self) -> Equipment:
        """Return the versions and the platform of the scans."""
        return Equipment(
            engines={name: engine.version for name, engine in ENGINES.items()},
            go_version=self._toolchains.name(None),
            sandbox=self._sandbox.kind,
            fetches_go=self._toolchains.fetches,
            platform=host_platform(),
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
            projects = await self._toolchains.checked(projects)
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
        engine = engine_named(task.engine)
        options = parse_crap_args(config.crap_args or ())
        store_source = config.store_source or self._settings.store_source
        if config.coverpkg and engine.name != "native":
            on_log(f"coverpkg has no effect: {engine.name} gives the numbers of go-crap, which counts the own tests of a package")
        await on_stage("clone")
        url = repo_policy(self._settings).parse_url(task.clone_url)
        async with self._checkouts.checkout(
            url,
            task.ref or None,
            commit=task.commit,
            submodules=bool(config.submodules),
            git_timeout=self._seconds(config.git_timeout, self._settings.git_timeout),
            on_log=on_log,
        ) as checkout:
            if task.commit is None:
                await on_stage("clone", ResolvedRef(ref=checkout.ref, commit_sha=checkout.commit_sha))
            projects = await asyncio.to_thread(discover, checkout.path, refused_links=checkout.refused_links)
            names, project = tuple(one.name for one in projects), _project(projects, task.project, checkout)
            module_dir = checkout.path / project.name
            before = task.rescores
            version = self._toolchains.version_for(project)
            circumstances = self._circumstances(engine, self._toolchains.name(version), store_source)
            earlier = await Earlier(self._blobs).find(task, checkout.commit_sha, circumstances)
            if earlier is not None:
                on_log(f"{checkout.commit_sha[:12]} was analysed in the same way by {earlier.reused_from}: no test is run")
                await on_stage("store")
                return attrs.evolve(earlier, ref=checkout.ref, projects=names)
            metadata = before.metadata if before else await metadata_of(self._hosts, url, checkout.path)
            left = limit - (time.monotonic() - started)
            on_log(f"project {project.name}: module {project.module_path}, {self._toolchains.name(version)}")
            nested = nested_modules(project.name, names)
            given = EngineInput(
                module_dir=module_dir,
                repository=checkout.path,
                module_path=project.module_path,
                nested=nested,
                options=options.unshortened(),
                cache=parse_cache(self._settings.cache_directory, task.repo_id, task.project),
                uploaded=bool(task.uploads),
            )
            sources = await read_unless_never(given, store_source)  # before any test can have written
            run = await self._measured(task, checkout, project, given, version, left, on_stage, on_log)
            await on_stage("analyse")
            left = limit - (time.monotonic() - started)
            given = attrs.evolve(given, tests=run.tests)
            whole = await score(engine, given, run.profile, checkout.job, left, self._sandbox, on_log)
            report, uncovered = shortened(whole, options), uncovered_of(run, whole, project)
            summary = report.summary
            on_log(f"{engine.name}: {summary.total_funcs} functions, {summary.exceeded} of them over the threshold")
            on_log(f"coverage of the functions: {', '.join(f'{n} {s}' for s, n in report.states.items()) or 'not known'}")
            await on_stage("store")
            files = {entry.file for entry in report.entries}
            kept = await stored_sources(sources, files, checkout.facts, self._blobs)
            analysis = await store_analysis(
                self._blobs,
                task,
                checkout,
                run,
                report,
                uncovered,
                metadata,
                started,
                sources=kept,
                store_source=store_source,
                projects=names,
            )
            if before is None and not task.uploads and run.repeatable:
                await Earlier(self._blobs).keep(task, circumstances, analysis)
            return analysis

    async def _measured(
        self,
        task: Task,
        checkout: Checkout,
        project: Project,
        given: EngineInput,
        version: GoVersion | None,
        left: float,
        on_stage: OnStage,
        on_log: OnLog,
    ) -> MeasuredRun:
        """Return the test run to score: of uploaded profiles, of an earlier task, or a new one."""
        if task.uploads:
            names = ", ".join(upload.flag for upload in task.uploads)
            on_log(f"scoring {len(task.uploads)} uploaded profiles: {names}")
            return await measured_elsewhere(task.uploads, self._blobs, given.module_dir, project)
        if task.rescores is not None:
            on_log("scoring the coverage profile of an earlier task again")
            return await measured_before(task.rescores, self._blobs)
        make = partial(self._plan, task, checkout, project)
        return measured_now(await self._tested(version, make, left, on_stage, on_log), self._sandbox.kind)

    def _circumstances(self, engine: Engine, go_version: str, store_source: str) -> Circumstances:
        return Circumstances(
            engine=engine.name,
            engine_version=engine.version,
            go_version=go_version,
            platform=host_platform(),
            cgo=builds_c(self._settings.cgo),
            sandbox=self._sandbox.kind,
            test_network=self._settings.test_network,
            store_source=store_source,
        )

    async def _tested(
        self,
        version: GoVersion | None,
        make: Callable[[Toolchain, float], Plan],
        left: float,
        on_stage: OnStage,
        on_log: OnLog,
    ) -> GoTestRun:
        """Run the tests with the toolchain that the module asks for, and again if a dependency needs a newer one."""
        until = time.monotonic() + left

        stage = ""

        async def on_entered(name: str) -> None:
            nonlocal stage
            stage = name
            await on_stage(name)

        async def on_progress(progress: Progress) -> None:
            await on_stage(stage, progress)

        download = DownloadStage(on_entered, on_progress)

        while True:
            try:
                async with self._toolchains.using(version, on_log, download) as toolchain:
                    plan = make(toolchain, until - time.monotonic())
                    return await run_tests(toolchain, plan, on_entered, on_log, on_progress)
            except NeedsNewerGo as needed:
                newer = self._toolchains.newer(parse_version(needed.version))
                if newer is None or (version is not None and newer <= version):
                    raise
                version = newer

    def _plan(self, task: Task, checkout: Checkout, project: Project, toolchain: Toolchain, left: float) -> Plan:
        test_args, go_flags = go_test_flags(task.config, task.engine), parse_go_flags(task.config.go_flags or "")

        async def restore(packages: Sequence[str], seconds: float, begin: BeginStage) -> None:
            flags = (*go_flags, *test_args)
            await self._checkouts.stdlib(toolchain).restore(
                packages, checkout.go_caches, checkout.job, flags=flags, seconds=seconds, begin=begin
            )

        return Plan(
            source=checkout.path,
            project=project.name,
            commit=checkout.commit_sha,
            job=checkout.job,
            caches=GoCaches.below(checkout.go_caches),
            timeout=left,
            test_args=test_args,
            go_flags=go_flags,
            workspace=project.in_workspace,
            cgo=self._settings.cgo_wanted,
            downloads=self._downloads,
            sandbox=self._sandbox,
            test_network=self._settings.test_network,
            restore=restore,
        )

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
