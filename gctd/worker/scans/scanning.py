"""The work itself: check out, find the projects, scan one of them."""

from __future__ import annotations

import asyncio
import time

import attrs

from gctd.domain.analysis import Analysis
from gctd.domain.errors import BadInput
from gctd.domain.options import parse_duration
from gctd.domain.repo.config import ROOT, effective
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task.state import Task
from gctd.engines.registry import ENGINES, engine_named
from gctd.scan.errors import ScanError
from gctd.scan.git.checkout import Checkout
from gctd.scan.go.discovery import discover
from gctd.scan.isolation.output import OnLog
from gctd.scan.policy import repo_policy
from gctd.worker.identity import host_platform
from gctd.worker.scans.earlier import Earlier
from gctd.worker.scans.metadata import metadata_of
from gctd.worker.scans.scan_run import ScanRun, ScanTools
from gctd.worker.work import Discovered, Equipment, OnStage, ResolvedRef, WorkFailed


@attrs.frozen
class Scanning:
    """Discovers and scans (see `gctd.worker.work.Work`)."""

    _tools: ScanTools

    @property
    def equipment(self) -> Equipment:
        """Return the versions and the platform of the scans."""
        return Equipment(
            engines={name: engine.version for name, engine in ENGINES.items()},
            go_version=self._tools.toolchains.name(None),
            sandbox=self._tools.sandbox.kind,
            fetches_go=self._tools.toolchains.fetches,
            platform=host_platform(),
        )

    async def discover(self, repo: Repo) -> Discovered:
        """Find the projects of a repository, at the head of its default branch or of the ref that its root is set to."""
        config = effective(repo.configs, ROOT)
        seconds = _seconds(config.git_timeout, self._tools.settings.git_timeout)
        try:
            url = repo_policy(self._tools.settings).parse_url(repo.clone_url)
            async with self._tools.checkouts.checkout(
                url, config.ref, submodules=bool(config.submodules), git_timeout=seconds
            ) as checkout:
                projects = await asyncio.to_thread(
                    discover,
                    checkout.path,
                    refused_links=checkout.refused_links,
                )
            projects = await self._tools.toolchains.checked(projects)
            default = await self._tools.checkouts.default_branch(url, git_timeout=seconds) if config.ref else checkout.ref
        except ScanError as error:
            raise WorkFailed(str(error), permanent=error.permanent) from error
        except BadInput as error:
            raise WorkFailed(str(error), permanent=True) from error
        return Discovered(commit_sha=checkout.commit_sha, default_ref=default, projects=projects)

    async def scan(self, task: Task, on_stage: OnStage, on_log: OnLog) -> Analysis:
        """Analyse a project."""
        limit = _seconds(task.config.timeout, self._tools.settings.task_timeout)
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
        tools, config, began = self._tools, task.config, time.monotonic()
        engine = engine_named(task.engine)
        if config.coverpkg and engine.name != "native":
            on_log(f"coverpkg has no effect: {engine.name} gives the numbers of go-crap, which counts the own tests of a package")
        await on_stage("clone")
        url = repo_policy(tools.settings).parse_url(task.clone_url)
        async with tools.checkouts.checkout(
            url,
            task.ref or None,
            commit=task.commit,
            submodules=bool(config.submodules),
            git_timeout=_seconds(config.git_timeout, tools.settings.git_timeout),
            on_log=on_log,
        ) as checkout:
            if task.commit is None:
                await on_stage("clone", ResolvedRef(ref=checkout.ref, commit_sha=checkout.commit_sha))
            projects = await asyncio.to_thread(discover, checkout.path, refused_links=checkout.refused_links)
            run = ScanRun(
                tools=tools,
                task=task,
                checkout=checkout,
                project=_project(projects, task.project, checkout),
                projects=tuple(project.name for project in projects),
                engine=engine,
                store_source=config.store_source or tools.settings.store_source,
                began=began,
                limit=limit,
                on_stage=on_stage,
                on_log=on_log,
            )
            earlier = await Earlier(tools.blobs).find(task, checkout.commit_sha, run.circumstances)
            if earlier is not None:
                on_log(f"{checkout.commit_sha[:12]} was analysed in the same way by {earlier.reused_from}: no test is run")
                await on_stage("store")
                return attrs.evolve(earlier, ref=checkout.ref, projects=run.projects)
            before = task.rescores
            return await run.result(before.metadata if before else await metadata_of(tools.hosts, url, checkout.path))


def _seconds(text: str | None, default: float) -> float:
    return parse_duration(text) if text is not None else default


def _project(projects: tuple[Project, ...], name: str, checkout: Checkout) -> Project:
    found = next((project for project in projects if project.name == name), None)
    if found is None:
        raise WorkFailed(f"there is no project {name!r} at {checkout.commit_sha[:12]}", permanent=True)
    if found.problem is not None:
        raise WorkFailed(found.problem, permanent=True)
    return found
