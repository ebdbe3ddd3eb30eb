"""Metrics of one application, in a registry of its own, in the Prometheus text format."""

from __future__ import annotations

import attrs
from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


@attrs.frozen
class _Series:
    """The counters of one method, route and status."""

    count: Counter
    seconds: Histogram


class Metrics:
    """Requests by route template, and what the process uses. Services add their own collectors to `registry`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation there
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter("http_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry)
        self._seconds = Histogram(
            "http_request_duration_seconds",
            "Time from the first byte of a request to its answer; event streams are not in it.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "http_requests_in_flight", "Requests being answered, streams and probes not counted.", registry=self.registry
        )
        self.refused = Counter(
            "http_requests_refused", "Requests refused before a handler saw them.", ("reason",), registry=self.registry
        )
        self._series: dict[tuple[str, str, int], _Series] = {}

    def observe(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count an answered request. `route` is the template of its path, `seconds` None for a stream."""
        series = self._series.get((method, route, status))
        if series is None:
            known = method if method in _METHODS else "OTHER"
            series = _Series(self._requests.labels(known, route, str(status)), self._seconds.labels(known, route))
            if known == method:
                self._series[method, route, status] = series
        series.count.inc()
        if seconds is not None:
            series.seconds.observe(seconds)

    def text(self) -> bytes:
        """All series, in the text format."""
        return generate_latest(self.registry)

    async def answer(self, _: web.Request) -> web.Response:
        """Handler of `/metrics`."""
        return web.Response(body=self.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})
