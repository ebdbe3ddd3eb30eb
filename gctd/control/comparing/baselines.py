"""The base of a comparison: a commit, and its analysis that was made in the same way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import attrs

from eventlog import EventLog
from gctd.domain.errors import BadInput, NotFound
from gctd.domain.remote.refs import is_commit_id, parse_ref
from gctd.domain.repo import REPO
from gctd.domain.upload import minor_of
from gctd.readmodel.breaks import text_of_flags
from gctd.readmodel.queries import TrackerQueries
from gctd.readmodel.views import AnalysisView
from gctd.scan.errors import GitError, ScanError
from gctd.scan.git.commands import Git
from gctd.scan.git.history import Histories
from gctd.scan.policy import RepoPolicy

LONGEST = 60.0
"""Seconds that a question to a remote may take."""
NEAREST = 50
"""Limit of earlier commits in the search for an analysis that was made in the same way."""
_PREFIX = re.compile(r"[0-9a-f]{7,63}")
_NO_INFLUENCE = ("--threshold=", "--min=", "--top=", "--missing=", "-vet=")
"""Flags that change no value whose coverage is known."""


class Kind(StrEnum):
    """The way in which a base was chosen."""

    MERGE_BASE = "merge base"
    PARENT = "first parent"
    COMMIT = "commit"
    TAG = "tag"
    PREVIOUS = "previous commit of the ref"
    NONE = ""


@attrs.frozen(kw_only=True)
class Baseline:
    """The base of a comparison.

    `commit` is empty if no base exists. `analysis` is None if no analysis of that commit was made in the same way. In both
    cases `reason` has the cause.
    """

    kind: Kind = Kind.NONE
    commit: str = ""
    analysis: AnalysisView | None = None
    reason: str = ""


@attrs.frozen
class Baselines:
    """Chooses bases."""

    _log: EventLog
    _queries: TrackerQueries
    _git: Git
    _histories: Histories
    _repos: RepoPolicy

    async def choose(self, after: AnalysisView, base: str) -> Baseline:
        """Return the base for an analysis without the analysis of the base. `base` names a branch, a tag or a commit.

        The remote repository is asked for it, which may take long. The base is never the commit of the analysis itself. A
        failure of the remote becomes the `reason` of the result. Raises BadInput, NotFound.
        """
        name = parse_ref(base, field="base")
        if is_commit_id(name) or _PREFIX.fullmatch(name):
            named = await self._commit(after, name)
            if named is not None:
                return Baseline(kind=Kind.COMMIT, commit=named)
        try:
            kind, commit = await self._asked(after, name)
        except (ScanError, TimeoutError) as error:
            if isinstance(error, GitError) and error.permanent:
                raise NotFound(f"base: {error}") from error
            said = str(error) or "no answer in time"
            return Baseline(reason=f"the history of the repository cannot be asked for: {said}")
        if commit is None and kind is Kind.PARENT:
            return Baseline(reason=f"{after.commit_sha[:12]} is a commit of {name} without a parent: there is nothing before it")
        if commit is None:
            return Baseline(reason=f"{after.commit_sha[:12]} has no commit in common with {name}")
        return Baseline(kind=kind, commit=commit)

    async def of(self, after: AnalysisView, chosen: Baseline) -> Baseline:
        """Return a base that was chosen, with its analysis if one exists now."""
        return await self._found(after, chosen.kind, chosen.commit) if chosen.commit else chosen

    async def again(self, after: AnalysisView, kind: str, commit: str) -> Baseline:
        """Return a base that was chosen before, with its analysis if one exists now."""
        return await self._found(after, Kind(kind), commit)

    async def _commit(self, after: AnalysisView, digits: str) -> str | None:
        """Return the full id of a commit from its digits; None if no analysis has them, because they may name a branch."""
        if is_commit_id(digits):
            if digits == after.commit_sha:
                raise BadInput("base", "the base must be another commit than the one that is judged")
            return digits
        known = await self._queries.analyses_of_commit(after.analysis_id, digits, limit=2)
        if len(known) > 1:
            raise BadInput("base", f"several commits begin with {digits}: give more digits")
        return await self._commit(after, known[0].commit_sha) if known else None

    async def _asked(self, after: AnalysisView, name: str) -> tuple[Kind, str | None]:
        """The commit that a branch or a tag gives. Raises ScanError, TimeoutError, BadInput."""
        repo = await self._log.last(REPO.aggregate(after.repo_id))
        url = self._repos.parse_url(after.repo_url if repo is None else repo.state.clone_url)
        found = await self._git.resolve(url, name, seconds=LONGEST)
        if found.full is not None and found.full.startswith("refs/tags/"):
            if found.commit_sha == after.commit_sha:
                raise BadInput("base", f"{name} is the commit that is judged")
            return Kind.TAG, found.commit_sha
        common = await self._histories.merge_base(url, name, after.commit_sha, seconds=LONGEST)
        if common != after.commit_sha:
            return Kind.MERGE_BASE, common
        # The commit is on that branch already: its own changes are the difference from its parent.
        return Kind.PARENT, await self._histories.first_parent(url, after.commit_sha, seconds=LONGEST)

    async def previous(self, after: AnalysisView) -> Baseline:
        """Return the usual base: the last commit analysed on the ref before the first analysis of this commit."""
        candidates = await self._queries.commits_before(after.analysis_id, after.ref, after.commit_sha, limit=NEAREST)
        if not candidates:
            return Baseline(reason=f"no analysis of another commit on {after.ref} is older: name a base")
        for candidate in candidates:
            found = await self._found(after, Kind.PREVIOUS, candidate)
            if found.analysis is not None:
                return found
        return await self._found(after, Kind.PREVIOUS, candidates[0])

    async def _found(self, after: AnalysisView, kind: Kind, commit: str) -> Baseline:
        """The first analysis of the commit that was made in the same way and measured every package, else the first one."""
        analyses = await self._queries.analyses_at(after.analysis_id, commit)
        ways = [(one, different(one, after)) for one in analyses]
        alike = [one for one, differing in ways if not differing]
        if alike:
            whole = [one for one in alike if not any(package.tested for package in one.uncovered)]
            return Baseline(kind=kind, commit=commit, analysis=(whole or alike)[0])
        reason = f"measured differently: {', '.join(ways[-1][1])}" if ways else "not analysed yet"
        return Baseline(kind=kind, commit=commit, reason=f"the base {commit[:12]} is {reason}")


def different(one: AnalysisView, other: AnalysisView) -> Sequence[str]:
    """Return the differences in the way of measuring. With any difference, values of functions are not comparable."""
    sides = [
        {
            "engine": f"{side.engine} {side.engine_version}",
            "Go": minor_of(side.go_version),
            "flags": text_of_flags(flag for flag in side.flags if not flag.startswith(_NO_INFLUENCE)),
            "platform": side.platform,
        }
        for side in (one, other)
    ]
    before, after = sides
    return [f"{what} {before[what] or 'none'}, not {after[what] or 'none'}" for what in before if before[what] != after[what]]
