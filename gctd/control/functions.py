"""One function of an analysis, with its source, its blocks and its history, from the bodies in the blob store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import attrs
import msgspec

from eventlog import BlobMissing
from gctd.broker.blobs import Blobs
from gctd.domain.errors import NotFound
from gctd.domain.options import threshold_of
from gctd.domain.repo.config import ProjectConfig, effective
from gctd.engines.functions.blocks import CountedBlock, blocks_of_file, counts_runs
from gctd.engines.functions.explained import Explained, explain
from gctd.engines.functions.history import Change, LastChange, changed_at, changes_of, found_again, last_change
from gctd.engines.functions.keys import find_key, key_among
from gctd.engines.functions.sources import KeptSources, SourceDamaged, decode_sources, inflated
from gctd.engines.module import profile_path
from gctd.engines.state import State
from gctd.readmodel.reports import FunctionView, ReportMissing, Reports
from gctd.readmodel.views import AnalysisView, RepoView

MOST_BEFORE = 200
"""Earlier analyses that a history looks at."""
_MOST_FUNCTIONS = 1_000_000
"""Functions of all reports that one history reads."""

NEVER = "the setting store_source of the project is never: its source is not kept, and not shown"
GONE = "the stored source of this analysis is gone: analyse the commit again"


@attrs.frozen(kw_only=True)
class FunctionDetail:
    """A function of an analysis. `source_reason` is empty if its source is there. `counts`: the blocks have numbers of runs."""

    analysis: AnalysisView
    entry: FunctionView
    key: str
    others: tuple[str, ...]
    threshold: float
    explained: Explained
    source_reason: str
    counts: bool


@attrs.frozen(kw_only=True)
class FunctionPoint:
    """A function in one analysis of its history, and its changes from the analysis before; None if that one is not known."""

    analysis: AnalysisView
    entry: FunctionView
    key: str
    changes: tuple[Change, ...] | None = None


@attrs.frozen(kw_only=True)
class FunctionHistory:
    """The values of a function, newest first, and the last change of its code. `cut`: there are older analyses."""

    points: tuple[FunctionPoint, ...]
    last_change: LastChange
    cut: bool


class FunctionLookup:
    """Looks at functions of analyses. `defaults` are the settings of the server."""

    def __init__(self, blobs: Blobs, reports: Reports, defaults: ProjectConfig) -> None:
        self._blobs = blobs
        self._defaults = defaults
        self._reports = reports

    async def look(self, analysis: AnalysisView, repo: RepoView | None, key: str, *, around: int | None) -> FunctionDetail:
        """Return a function with `around` lines before and after it, None for the whole file.

        `repo` is the repository as it is now.

        Raises NotFound, ReportMissing, Unavailable.
        """
        entry, named, others = await self._found(analysis, key)
        content, reason = await self._content(analysis, repo, entry.file)
        blocks = await self._blocks_of(analysis, repo, entry.file)
        threshold = threshold_of(analysis.flags)
        explained = await asyncio.to_thread(
            lambda: explain(entry, blocks.found, content=content, threshold=threshold, around=around, no_blocks=blocks.reason)
        )
        return FunctionDetail(
            analysis=analysis,
            entry=entry,
            key=named,
            others=others,
            threshold=threshold,
            explained=explained,
            source_reason=reason,
            counts=blocks.counts,
        )

    async def history(
        self, analysis: AnalysisView, repo: RepoView | None, before: Sequence[AnalysisView], key: str, *, limit: int
    ) -> FunctionHistory:
        """Return at most `limit` values of a function: of this analysis, and of the commits before it on the same branch.

        `repo` is the repository as it is now. `before` are the analyses before this one: `MOST_BEFORE` of them, and one more
        if there are more.

        Raises NotFound, ReportMissing, Unavailable.
        """
        entry, named, _ = await self._found(analysis, key)
        line = _line(analysis, before[:MOST_BEFORE])
        chain, absent, cut = [FunctionPoint(analysis=analysis, entry=entry, key=named)], None, len(before) > MOST_BEFORE
        read = 0
        for older in line:
            functions = await self._functions(older) if len(chain) < limit and read < _MOST_FUNCTIONS else None
            earlier = None if functions is None else found_again(chain[-1].entry, functions)
            # A shortened report may merely hide the function.
            if functions is None or (earlier is None and len(functions) < older.summary.total_funcs):
                cut = True
                break
            if earlier is None:
                absent = older
                break
            read += len(functions)
            chain.append(FunctionPoint(analysis=older, entry=earlier, key=key_among(earlier, functions)))
        points = [attrs.evolve(seen, changes=changes_of(seen.entry, earlier.entry)) for seen, earlier in pairwise(chain)]
        points.append(attrs.evolve(chain[-1], changes=("added",) if absent else None))
        changed = await self._last_change(repo, chain, absent)
        return FunctionHistory(points=tuple(points), last_change=changed, cut=cut and absent is None)

    async def _last_change(
        self, repo: RepoView | None, chain: Sequence[FunctionPoint], absent: AnalysisView | None
    ) -> LastChange:
        known: list[tuple[str, FunctionView | None]] = [(seen.analysis.commit_sha, seen.entry) for seen in chain]
        if absent is not None:
            known.append((absent.commit_sha, None))
        at = changed_at(known)
        facts = None
        if at is not None and not self._is_hidden(chain[at].analysis, repo):
            sources = await self._sources(chain[at].analysis)
            facts = None if sources is None else sources.commit
        return last_change(known, facts)

    async def _found(self, analysis: AnalysisView, key: str) -> tuple[FunctionView, str, tuple[str, ...]]:
        functions = await self._reports.functions(analysis.report_digest)
        named = find_key(functions, key, known=lambda entry: State(entry.state).known)
        if named is None:
            raise NotFound(f"the analysis of {analysis.commit_sha[:12]} has no function {key}")
        return functions[named.index], named.key, named.others

    async def _functions(self, analysis: AnalysisView) -> Sequence[FunctionView] | None:
        """Return the functions of an analysis, None if its report is gone."""
        try:
            return await self._reports.functions(analysis.report_digest)
        except ReportMissing:
            return None

    def _is_hidden(self, analysis: AnalysisView, repo: RepoView | None) -> bool:
        """Whether the source of a project is not shown: by its present settings, or since it was never kept."""
        config = ProjectConfig() if repo is None else effective(repo.configs, analysis.project)
        return "never" in (config.store_source or self._defaults.store_source, analysis.store_source)

    async def _sources(self, analysis: AnalysisView) -> KeptSources | None:
        if analysis.sources_digest is None:
            return None
        try:
            return decode_sources(await self._blobs.get(analysis.sources_digest))
        except (BlobMissing, msgspec.DecodeError):
            return None

    async def _content(self, analysis: AnalysisView, repo: RepoView | None, file: str) -> tuple[bytes | None, str]:
        """Return the source of a file of an analysis, or None and the reason."""
        if self._is_hidden(analysis, repo):
            return None, NEVER
        sources = await self._sources(analysis)
        if sources is None:
            return None, GONE
        kept = sources.files.get(file)
        if kept is None:
            return (
                None,
                f"the source of {file} is not kept: {sources.left_out.get(file, 'the engine names a file of another place')}",
            )
        try:
            body = await self._blobs.get(kept.blob)
            return await asyncio.to_thread(inflated, body, kept), ""
        except BlobMissing:
            return None, GONE
        except SourceDamaged as damage:
            return None, f"{damage}: analyse the commit again"

    async def _blocks_of(self, analysis: AnalysisView, repo: RepoView | None, file: str) -> _Blocks:
        """Return the blocks of a file, or why there are none."""
        if analysis.profile_digest is None:
            return _Blocks(reason="the analysis has no coverage profile")
        project = next((one for one in repo.projects if one.name == analysis.project), None) if repo else None
        if project is None:
            return _Blocks(reason="the repository does not have the project any more, so its module path is not known")
        try:
            profile = await self._blobs.get(analysis.profile_digest)
        except BlobMissing:
            return _Blocks(reason="the stored coverage profile is gone: analyse the commit again")
        found = await asyncio.to_thread(blocks_of_file, profile, profile_path(project.module_path, file))
        return _Blocks(found, counts_runs(profile))


@attrs.frozen
class _Blocks:
    """Blocks of a file, whether their counts are numbers of runs, and the reason if there are none."""

    found: Sequence[CountedBlock] = ()
    counts: bool = False
    reason: str = ""


def _line(analysis: AnalysisView, before: Sequence[AnalysisView]) -> list[AnalysisView]:
    """Return the latest analysis of each earlier commit among the analyses `before` on the same ref, newest first."""
    found: dict[str, AnalysisView] = {}
    for one in before:
        if one.commit_sha != analysis.commit_sha:
            found.setdefault(one.commit_sha, one)
    return list(found.values())
