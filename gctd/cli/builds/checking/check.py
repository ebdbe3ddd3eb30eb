"""`gctd check`: measure the projects of a tree and of its base, and judge each."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gctd.cli.builds.checking.judge import ProjectJudgement, judged, stored
from gctd.cli.builds.checking.measure import MeasuredProject, Measuring
from gctd.cli.builds.checking.working_copy import NotAWorkingCopy, WorkingCopy
from gctd.domain.options import threshold_of
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.repo.project import Project
from gctd.domain.verdict import Rules
from gctd.engines.engine import EngineFailed
from gctd.scan.errors import DiscoveryError, ScanError
from gctd.scan.go.discovery import discover
from gctd.settings import Settings


@attrs.frozen(kw_only=True)
class CheckInputs:
    """The things to compare: a `base` of the clone, or a `baseline` file, or none; a `profile` in place of a test run."""

    base: str | None
    baseline: Path | None
    profile: Path | None


async def check_tree(
    settings: Settings,
    directory: Path,
    config: ProjectConfig,
    limits: Mapping[str, Any],
    *,
    compare: CheckInputs,
    only: Sequence[str],
    on_log: Callable[[str], None],
    on_step: Callable[[str], None],
) -> Sequence[ProjectJudgement]:
    """Judge the projects of a working copy; `only` names some of them.

    `limits` are the fields of `Rules` but the threshold. Raises NotAWorkingCopy, ScanError, EngineFailed, BadInput.
    """
    copy = WorkingCopy.at(directory)
    projects = discover(copy.root)
    chosen = _chosen(copy, directory, projects, only)
    rules = Rules(threshold=threshold_of(config.crap_args or ()), **limits)
    if compare.profile is not None and len(chosen) != 1:
        raise NotAWorkingCopy(f"a profile belongs to one module, and there are {len(chosen)}: name one with --project")
    older = stored(compare.baseline) if compare.baseline is not None else {}
    with tempfile.TemporaryDirectory(prefix="gctd-check-") as folder:
        async with Measuring.opened(settings, config, on_log) as measuring:
            base = _Base(copy, compare, older, measuring, Path(folder), on_step) if rules.compares else None
            found = []
            for project in chosen:
                if compare.profile is None:
                    on_step(f"testing {project.name} ...")
                    after = await measuring.tested(copy, project, projects)
                else:
                    profile = await asyncio.to_thread(compare.profile.read_bytes)
                    after = await measuring.of_profile(copy, project, projects, profile)
                before, described, missing = await base.of(project) if base is not None else (None, "", "")
                found.append(judged(rules, after, before, base=described, missing=missing))
    return found


def _chosen(copy: WorkingCopy, directory: Path, projects: Sequence[Project], only: Sequence[str]) -> Sequence[Project]:
    """Return the named projects, else the ones at or below the directory, without modules that have no packages.

    Raises NotAWorkingCopy. Raises ScanError if one of them cannot be analysed.
    """
    names = {project.name: project for project in projects}
    if unknown := [name for name in only if name not in names]:
        raise NotAWorkingCopy(f"there is no module in {', '.join(unknown)}: the modules are {', '.join(names) or 'none'}")
    here = directory.resolve().relative_to(copy.root.resolve()).as_posix()
    below = [one for one in projects if here in (".", one.name) or one.name.startswith(f"{here}/")]
    chosen = [names[name] for name in only] or [one for one in below if one.packages or not one.module_path] or below
    if not chosen:
        raise NotAWorkingCopy(f"{directory.resolve()} has no Go module")
    for project in chosen:
        if project.problem is not None:
            raise ScanError(f"{project.name}: {project.problem}", permanent=True)
    return chosen


class _Base:
    """The measured base of each project, from a file or from a commit that is checked out once."""

    def __init__(
        self,
        copy: WorkingCopy,
        compare: CheckInputs,
        older: Mapping[str, MeasuredProject],
        measuring: Measuring,
        folder: Path,
        on_step: Callable[[str], None],
    ) -> None:
        self._file = compare.baseline
        self._older = older
        self._measuring = measuring
        self._on_step = on_step
        self._tree: WorkingCopy | None = None
        self._projects: Sequence[Project] = ()
        self._problem = ""
        self._kind = ""
        if self._file is None and compare.base is not None:
            base = copy.base(compare.base)
            copy.put(base.commit, folder / "base")
            self._tree = attrs.evolve(copy, root=folder / "base", commit=base.commit, changed=False)
            self._kind = base.kind.value
            try:
                self._projects = discover(self._tree.root)
            except DiscoveryError as error:
                self._problem = f": {error}"

    async def of(self, project: Project) -> tuple[MeasuredProject | None, str, str]:
        """Return the base of a project, its description, and the reason if there is none."""
        if self._tree is None:
            found = self._older.get(project.name)
            commit = f" of {found.analysis.commit_sha[:12]}" if found is not None and found.analysis.commit_sha else ""
            return found, f"{self._file}{commit}", f"{self._file} has no project {project.name}"
        described = f"{self._tree.commit[:12]} {self._kind}"
        older = next((one for one in self._projects if one.name == project.name), None)
        if older is None:
            return None, described, f"{described} has no project {project.name}{self._problem}"
        if older.problem is not None:
            return None, described, older.problem
        self._on_step(f"testing {project.name} of the base {described} ...")
        try:
            return await self._measuring.of_commit(self._tree, older, self._projects), described, ""
        except (ScanError, EngineFailed) as error:
            return None, described, f"{described} cannot be measured: {error}"
