"""Analyses of a project as requests name them."""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager, nullcontext

from gctd.domain.errors import BadInput, NotFound
from gctd.domain.remote.refs import parse_ref
from gctd.http.services import Services
from gctd.readmodel.views import AnalysisView
from httpkit.routes import Call

BASE = "a branch (what `to` added since it left that), a tag or a commit to compare with"
POINT = "a task, a commit by at least 7 of its hex digits, or a ref whose last analysis is meant"

_TASK = re.compile(r"task-[0-9]{1,30}")
_COMMIT = re.compile(r"[0-9A-Fa-f]{7,64}")


def one_moment(call: Call[Services], *, remote: bool) -> AbstractAsyncContextManager[object]:
    """Let the queries of a block see one moment of the tables, unless the block asks a `remote` repository, which takes long.

    The rows of analyses do not change; only the choice between several depends on the moment.
    """
    return nullcontext() if remote else call.services.snapshots.one()


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


async def base_of(after: AnalysisView, base: str | None, call: Call[Services]) -> AnalysisView | None:
    """Return the base of an analysis: never an analysis of the same commit. None if the usual base is missing.

    `base` names a branch, a tag or a commit. Raises BadInput. Raises NotFound if a named base has no analysis.
    """
    if base is not None:
        found = await call.services.baselines.of(after, base)
        if found.analysis is None:
            raise NotFound(f"base: {found.reason}")
        return found.analysis
    queries = call.services.queries
    for commit in await queries.commits_before(after.analysis_id, after.ref, after.commit_sha, limit=1):
        # The repository may be removed since the first question.
        if analyses := await queries.analyses_at(after.analysis_id, commit):
            return analyses[-1]
    return None
