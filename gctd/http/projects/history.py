"""Routes of a project's history: all its analyses, and the changes between two of them, function by function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gctd.control.comparing.baselines import Baseline
from gctd.control.comparing.pairs import compared
from gctd.domain.errors import BadInput, NotFound
from gctd.domain.remote.refs import parse_ref
from gctd.http import formats
from gctd.http.projects.comparisons import DiffBody, HistoryBody
from gctd.http.projects.points import BASE, POINT, TIME_LIMIT, point, read_with_base, usual_base
from gctd.http.services import Services
from gctd.http.tasks.routes import PAGE
from gctd.readmodel.views import AnalysisView
from httpkit import Answer, Call, Route, decode_cursor, message, page_of, path, query


@message
class ListHistory:
    """Names a project's analyses, and a page of them."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    ref: str | None = query(
        default=None,
        schema=formats.REF,
        description="only the analyses of this ref, but no bases of comparisons and no commits of pull requests",
    )
    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=formats.POSITION, description="cursor from the `Link` of the previous page")


@message
class Diff:
    """Names a project's analyses and two of them."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    from_: str | None = query(
        default=None, name="from", schema=formats.REF, description=f"{POINT}; the last one of another commit on the ref of `to`"
    )
    base: str | None = query(default=None, schema=formats.REF, min_length=1, description=BASE)
    to: str | None = query(default=None, schema=formats.REF, description=f"{POINT}; the latest")
    limit: int = query(default=PAGE, ge=0, le=1_000_000, description="limit of the functions, the largest change first")


async def project_history(request: ListHistory, call: Call[Services]) -> Answer[Sequence[HistoryBody]]:
    """List the analyses of a project, newest first, each with its differences in the way of measuring from the one before it."""
    found = await call.services.queries.history(
        request.id,
        ref=None if request.ref is None else parse_ref(request.ref),
        before=decode_cursor(request.cursor, tuple[int, int]) if request.cursor is not None else None,
        limit=request.limit + 1,
    )
    if not found and request.cursor is None:
        raise NotFound(f"there is no analysis {request.id}" + (f" of {request.ref}" if request.ref is not None else ""))
    page, more = page_of(found, request.limit, lambda one: (one.measured, one.sequence))
    earlier: list[AnalysisView | None] = [*found[1:], None]
    return Answer([HistoryBody.after(one, older) for one, older in zip(page, earlier, strict=False)], cursor=more)


async def project_diff(request: Diff, call: Call[Services]) -> Answer[DiffBody]:
    """Return the changes from one analysis of a project to another: the new, fixed, worse, better and gone functions."""
    if request.from_ is not None and request.base is not None:
        raise BadInput("base", "only one of from and base can be given")

    async def read(chosen: Mapping[str, Baseline]) -> tuple[AnalysisView, tuple[AnalysisView, AnalysisView] | None]:
        to = await point(request.id, "to", request.to, call)
        if request.from_ is not None:
            return to, (to, await point(request.id, "from", request.from_, call))
        if request.base is None:
            older = await usual_base(to, call)
            if older is None:
                raise NotFound(f"there is no earlier analysis of another commit on {to.ref} than {to.task_id}")
            return to, (to, older)
        if to.commit_sha not in chosen:
            return to, None
        base = await call.services.baselines.of(to, chosen[to.commit_sha])
        if base.analysis is None:
            raise NotFound(f"base: {base.reason}")
        return to, (to, base.analysis)

    (to, older), sequence = await read_with_base(read, request.base, call)
    body = await compared(call.services.blobs, to, older, lambda pair: DiffBody.of(pair, limit=request.limit))
    return Answer(body, sequence=sequence)


ROUTES = (
    Route("GET", "/api/repos/{id}/history", project_history, summary="Analyses of a project", tags=("repos",), errors=(404,)),
    Route(
        "GET",
        "/api/repos/{id}/diff",
        project_diff,
        summary="Compare two analyses",
        tags=("repos",),
        errors=(404,),
        time_limit=TIME_LIMIT,
    ),
)
