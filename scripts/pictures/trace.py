#!/usr/bin/env python3
"""Draw the trace of an analysis: receive spans on loopback as a collector does, and write a picture of the first whole trace.

    .venv/bin/python scripts/pictures/trace.py docs/images/trace.svg &
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 ./scripts/up --demo

The spans come over OTLP/HTTP. It ends after the picture is written.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Self

import attrs
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

REQUEST, LAST = "POST /api/repos/analyze", "process crap_jobs_scan"
SETTLED = 3.0
"""Seconds after the end of the work in which its last spans arrive."""

_WIDTH, _LEFT, _ROW = 900, 300, 24
_COLOURS = {1: "#7a5195", 2: "#2f6db3", 4: "#c2570c", 5: "#2c7a4b"}
"""By kind of span, as OTLP numbers them: internal, server, producer, consumer."""


@attrs.frozen(kw_only=True)
class Span:
    """A span as the collector got it: ids in hexadecimal digits, times in nanoseconds since 1970."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    links: Sequence[str]
    kind: int
    begin: int
    end: int
    attributes: Mapping[str, str]


class Collector:
    """A collector of spans on a loopback port: `async with Collector() as collector`. 0 is a free port."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.spans: list[Span] = []

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The address for OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._port}"

    def of(self, trace: str) -> list[Span]:
        """Return the spans of a trace, and the spans that are linked to one of them, by their begin."""
        ours = {span.id for span in self.spans if span.trace == trace}
        found = [span for span in self.spans if span.trace == trace or ours.intersection(span.links)]
        return sorted(found, key=lambda span: span.begin)

    async def _take(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await request.read())
        for resource in message.resource_spans:
            about = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.spans += [
                Span(
                    service=about.get("service.name", ""),
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    links=[link.span_id.hex() for link in span.links],
                    kind=span.kind,
                    begin=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes={one.key: one.value.string_value or str(one.value.int_value) for one in span.attributes},
                )
                for scope in resource.scope_spans
                for span in scope.spans
            ]
        return web.Response(body=ExportTraceServiceResponse().SerializeToString(), content_type="application/x-protobuf")


def picture(spans: Sequence[Span]) -> str:
    """Return an SVG of the spans of one trace: a row for each, indented below its parent, its time as a bar."""
    rows = list(_tree(spans))
    begin, end = min(span.begin for span in spans), max(span.end for span in spans)
    height = _ROW * (len(rows) + 1) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for row, (depth, span) in enumerate(rows):
        y = _ROW * row + 8
        left = _LEFT + (span.begin - begin) / (end - begin) * (_WIDTH - _LEFT - 90)
        width = max((span.end - span.begin) / (end - begin) * (_WIDTH - _LEFT - 90), 2)
        parts += [
            f'<text x="{10 + 14 * depth}" y="{y + 13}" fill="#222">{escape(span.name)}</text>',
            f'<rect x="{left:.1f}" y="{y + 3}" width="{width:.1f}" height="13" rx="2" fill="{_COLOURS.get(span.kind, "#555")}"/>',
            f'<text x="{left + width + 5:.1f}" y="{y + 13}" fill="#555">{_length(span.end - span.begin)}</text>',
        ]
    named = {2: "request", 4: "send", 5: "process", 1: "stage"}
    for number, (kind, word) in enumerate(named.items()):
        x, y = 10 + 90 * number, height - 18
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" rx="2" fill="{_COLOURS[kind]}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 10}" fill="#222">{word}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _tree(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Each span with its depth, below its parent, or below the first span that it is linked to."""
    ids = {span.id for span in spans}
    children: dict[str, list[Span]] = {}
    for span in spans:
        above = span.parent if span.parent in ids else next((link for link in span.links if link in ids), "")
        children.setdefault(above, []).append(span)

    def below(id_: str, depth: int) -> Iterator[tuple[int, Span]]:
        for span in children.get(id_, []):
            yield depth, span
            yield from below(span.id, depth + 1)

    return below("", 0)


def _length(nanoseconds: int) -> str:
    milliseconds = nanoseconds / 1e6
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 1000 else f"{milliseconds:.1f} ms"


async def draw(port: int) -> str:
    """Wait for the first whole trace of an analysis, and return its picture."""
    async with Collector(port) as collector:
        print(f"waiting for spans on {collector.url}", flush=True)
        while True:
            await asyncio.sleep(SETTLED)
            asked = {span.trace for span in collector.spans if span.name == REQUEST}
            done = [span.trace for span in collector.spans if span.name == LAST and span.trace in asked]
            if done:
                await asyncio.sleep(SETTLED)
                return picture(collector.of(done[0]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path, help="file to write, an SVG")
    parser.add_argument("--port", type=int, default=4318, help="port to listen on, on 127.0.0.1")
    given = parser.parse_args()
    given.target.write_text(asyncio.run(draw(given.port)), encoding="utf-8")
