"""The route of badges: figures of a project as pictures, for pages elsewhere."""

from __future__ import annotations

from aiohttp import web

from eventlog import BlobMissing
from gctd.domain.analysis import analysis_id
from gctd.domain.options import threshold_of
from gctd.domain.remote.refs import parse_subdir
from gctd.exports.badge import BadgeFigures, Metric, badge
from gctd.http import formats
from gctd.http.services import BROKER_TIME_LIMIT, Services
from gctd.readmodel.views import AnalysisView
from httpkit import Call, Route, file_answer, message, path, query

CACHE = "max-age=60"
"""A minute, after which the entity tag is checked."""


@message
class BadgeOf:
    """Names a project and one of its figures."""

    id: str = path(
        pattern=formats.ID, form=formats.ID_FORM, max_length=64, description="of the project's analyses, or of the repository"
    )
    metric: Metric = query(default=Metric.AVERAGE, description="the figure of the badge")
    project: str | None = query(
        default=None, schema=formats.PROJECT, description="the project, if `id` is a repository's id; default: `.`"
    )
    label: str | None = query(default=None, min_length=1, max_length=60, description="the text on the left")


async def project_badge(request: BadgeOf, call: Call[Services]) -> web.Response:
    """Return a figure of the latest analysis of a project as an SVG picture; `unknown` without an analysis, for any id."""
    queries = call.services.queries
    project = parse_subdir(request.project, field="project") if request.project is not None else "."
    async with call.services.snapshots.moment():
        analysis = await queries.analysis(request.id) or await queries.analysis(analysis_id(request.id, project))
    figures = None if analysis is None else await _figures(analysis, request.metric, call)
    made = badge(request.metric, figures, request.label)
    return file_answer(call.http, made.svg(), "image/svg+xml; charset=utf-8", cache=CACHE, public=True)


async def _figures(analysis: AnalysisView, metric: Metric, call: Call[Services]) -> BadgeFigures:
    coverage = None
    if metric is Metric.COVERAGE:
        try:
            coverage = (await call.services.coverages.of(analysis)).percent
        except BlobMissing:  # a picture has no place for a reason
            coverage = None
    return BadgeFigures(
        summary=analysis.known,
        threshold=threshold_of(analysis.flags),
        coverage=coverage,
        partial=any(package.tested for package in analysis.uncovered),
        unmeasured=analysis.summary.total_funcs - analysis.known.total_funcs,
    )


ROUTES = (
    Route(
        "GET",
        "/api/repos/{id}/badge.svg",
        project_badge,
        summary="Badge of a project",
        tags=("repos",),
        produces=("image/svg+xml",),
        time_limit=BROKER_TIME_LIMIT,
    ),
)
