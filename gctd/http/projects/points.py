"""Analyses of a project as requests name them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from gctd.control.comparing.baselines import Baseline
from gctd.domain.errors import BadInput, NotFound
from gctd.domain.remote.refs import parse_ref
from gctd.http.services import Services
from gctd.readmodel.views import AnalysisView
from httpkit import Call

T = TypeVar("T")

BASE = "a branch (what `to` added since it left that), a tag or a commit to compare with"
POINT = "a task, a commit by at least 7 of its hex digits, or a ref whose last analysis is meant"

_TASK = re.compile(r"task-[0-9]{1,30}")
_COMMIT = re.compile(r"[0-9A-Fa-f]{7,64}")


TIME_LIMIT = 150.0
"""Seconds for an answer that needs the remote repository."""


async def read_with_base(
    read: Callable[[Mapping[str, Baseline]], Awaitable[tuple[AnalysisView, T | None]]], base: str | None, call: Call[Services]
) -> tuple[T, int]:
    """Return the result of `read`, all of it from one moment of the tables, and the sequence of that moment.

    `read` gets chosen bases by the commits for which they were chosen. It gives the analysis that is compared, and the result:
    None if it needs a base for that analysis. Then the remote repository is asked, outside of a moment, and `read` is called
    again.
    """
    chosen: dict[str, Baseline] = {}
    while True:
        async with call.services.snapshots.moment() as sequence:
            after, result = await read(chosen)
        if result is not None:
            return result, sequence
        assert base is not None, "the usual base needs no remote repository"
        chosen[after.commit_sha] = await call.services.baselines.choose(after, base)


async def point(analysis_id: str, field: str, text: str | None, call: Call[Services]) -> AnalysisView:
    """Return the analysis of a task, a commit or a ref, the latest if `text` is None. Raises BadInput, NotFound."""
    queries = call.services.queries
    if text is None:
        latest = await queries.analysis(analysis_id)
        if latest is not None:
            return latest
        if await queries.history(analysis_id, limit=1):
            raise NotFound("the ref that the project tracks has no analysis yet; the history has analyses of other refs")
        raise NotFound(f"there is no analysis {analysis_id}")
    if _TASK.fullmatch(text):
        analysis = await queries.analysis_of_task(text)
        if analysis is None or analysis.analysis_id != analysis_id:
            raise NotFound(f"{field}: no analysis of this project comes from {text}")
        return analysis
    found = await queries.analyses_of_commit(analysis_id, text.lower(), limit=2) if _COMMIT.fullmatch(text) else ()
    if len(found) > 1:
        raise BadInput(field, f"several commits begin with {text}: give more digits")
    of_ref = None if found else await queries.analysis_of_ref(analysis_id, parse_ref(text, field=field))
    if not found and of_ref is None:
        raise NotFound(f"{field}: no analysis of this project is of a commit or a ref {text}")
    return of_ref or found[0]


async def usual_base(after: AnalysisView, call: Call[Services]) -> AnalysisView | None:
    """Return the usual base of an analysis: never an analysis of the same commit. None if it is missing."""
    queries = call.services.queries
    for commit in await queries.commits_before(after.analysis_id, after.ref, after.commit_sha, limit=1):
        # The repository may be removed since the first question.
        if analyses := await queries.analyses_at(after.analysis_id, commit):
            return analyses[-1]
    return None
