"""The route of exports: an analysis in the forms that other programs take."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from importlib.metadata import version

import msgspec
from aiohttp import web

from gctd.control.comparing.comments import comment_on
from gctd.control.comparing.pairs import compared
from gctd.domain.errors import NotFound
from gctd.domain.options import threshold_of
from gctd.engines import report as report_format
from gctd.exports import markdown, sarif
from gctd.exports.functions import functions_csv
from gctd.http import formats
from gctd.http.projects.points import POINT, point, usual_base
from gctd.http.services import BROKER_TIME_LIMIT, Services
from gctd.http.tasks.results import full_analysis
from gctd.http.tasks.routes import TASK_FORM, TASK_ID
from gctd.readmodel.views import AnalysisView
from httpkit import Call, Route, encode, file_answer, message, path, query


class Format(StrEnum):
    """The form of an export."""

    JSON = "json"
    GO_CRAP = "go-crap"
    CSV = "csv"
    SARIF = "sarif"
    MARKDOWN = "markdown"

    @property
    def media(self) -> str:
        """Its media type."""
        return _MEDIA[self]

    @property
    def suffix(self) -> str:
        """Suffix of the name of such a file."""
        return {Format.GO_CRAP: "go-crap.json", Format.MARKDOWN: "md"}.get(self, self.value)


_MEDIA = {
    Format.JSON: "application/json",
    Format.GO_CRAP: "application/json",
    Format.CSV: "text/csv",
    Format.SARIF: sarif.MEDIA_TYPE,
    Format.MARKDOWN: markdown.MEDIA_TYPE,
}


@message
class Export:
    """Names a task whose analysis is wanted, and the form."""

    id: str = path(pattern=TASK_ID, form=TASK_FORM, max_length=40, example="task-1763635200000000001")
    format: Format = query(
        default=Format.JSON,
        description="`json` as `/result`, `go-crap` as its own report, `csv`, `sarif` 2.1.0, or `markdown` as a comment",
    )
    from_: str | None = query(
        default=None,
        name="from",
        schema=formats.REF,
        description=f"what `markdown` compares with: {POINT}; the last one of another commit on its ref",
    )


async def export_analysis(request: Export, call: Call[Services]) -> web.Response:
    """Return the analysis of a task as a file. It remains available after the removal of the task."""
    async with call.services.snapshots.moment():
        analysis = await call.services.queries.analysis_of_task(request.id)
        if analysis is None:
            raise NotFound(f"{request.id} has no analysis")
        older = None
        if request.from_ is not None:
            older = await point(analysis.analysis_id, "from", request.from_, call)
        elif request.format is Format.MARKDOWN:
            older = await usual_base(analysis, call)
    body = await _body(analysis, older, request.format, call)
    charset = "; charset=utf-8" if request.format.media.startswith("text/") else ""
    name = f"{request.id}.{request.format.suffix}"
    return file_answer(call.http, body, request.format.media + charset, save_as=name)


async def _body(analysis: AnalysisView, older: AnalysisView | None, form: Format, call: Call[Services]) -> bytes:
    if form is Format.MARKDOWN:
        links, dashboard = call.services.links, call.services.dashboard
        return await compared(call.services.blobs, analysis, older, lambda pair: comment_on(pair, links, dashboard).encode())
    if form is Format.JSON:
        whole = await full_analysis(analysis, call)
        return await asyncio.to_thread(encode, whole)
    stored = await call.services.blobs.get(analysis.report_digest)
    return await asyncio.to_thread(_of_report, analysis, stored, form)


def _of_report(analysis: AnalysisView, stored: bytes, form: Format) -> bytes:
    report = report_format.decode(stored)
    if form is Format.CSV:
        return functions_csv(report.entries, threshold_of(analysis.flags))
    if form is Format.GO_CRAP:
        return msgspec.json.encode(report_format.raw_output(report))
    return sarif.sarif(analysis, report, version=version("gctd"))


ROUTES = (
    Route(
        "GET",
        "/api/tasks/{id}/export",
        export_analysis,
        summary="Export an analysis",
        tags=("tasks",),
        errors=(404,),
        produces=tuple(dict.fromkeys(_MEDIA.values())),
        time_limit=BROKER_TIME_LIMIT,
    ),
)
