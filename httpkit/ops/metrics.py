"""Metrics of one application, in a private registry, in the Prometheus text format."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from math import nan

import attrs
from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from httpkit.ops.bounded import BoundedQuestion, Unanswered

NOT_KNOWN = nan
"""The value of a figure that is not known now."""
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)
_BOUNDS = (*map(str, _BUCKETS), "+Inf")
_PATIENCE = 1.0
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


@attrs.define
class _Times:
    """How long the requests of a method and route took: how many ended within each bucket and not before, and the sum."""

    buckets: list[int] = attrs.field(factory=lambda: [0] * (len(_BUCKETS) + 1))
    total: float = 0.0


class _Requests(Collector):
    """Requests by route template, as plain numbers, since the library's counters take ten times longer for each request."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._times: dict[tuple[str, str], _Times] = {}

    def add(self, method: str, route: str, status: int, seconds: float | None) -> None:
        series = (method, route, status)
        self._counts[series] = self._counts.get(series, 0) + 1
        if seconds is not None:
            times = self._times.get((method, route))
            if times is None:
                times = self._times[method, route] = _Times()
            times.buckets[bisect_left(_BUCKETS, seconds)] += 1
            times.total += seconds

    def collect(self) -> Iterator[Metric]:
        answered = CounterMetricFamily("http_requests", "Requests answered.", labels=["method", "route", "status"])
        for (method, route, status), count in self._counts.items():
            answered.add_metric([method, route, str(status)], count)
        yield answered
        text = "Time from the first byte of a request to its answer; event streams are not in it."
        took = HistogramMetricFamily("http_request_duration_seconds", text, labels=["method", "route"])
        for (method, route), times in self._times.items():
            buckets = list(zip(_BOUNDS, map(float, accumulate(times.buckets)), strict=True))
            took.add_metric([method, route], buckets, sum_value=times.total)
        yield took


class Metrics:
    """Requests by route template, and resources of the process. Services add their own collectors to `registry`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation there
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = _Requests()
        self.registry.register(self._requests)
        self.in_flight = Gauge(
            "http_requests_in_flight", "Requests being answered, streams and probes not counted.", registry=self.registry
        )
        self.refused = Counter(
            "http_requests_refused", "Requests refused before a handler saw them.", ("reason",), registry=self.registry
        )
        self._asking: list[BoundedQuestion] = []

    def ask(self, figures: Callable[[], Awaitable[object]]) -> None:
        """Fetch these figures before each answer, for a second at most. A collector handles a figure that is missing by then."""
        self._asking.append(BoundedQuestion(figures, _PATIENCE))

    def observe(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count an answered request. `route` is the template of its path, `seconds` None for a stream."""
        self._requests.add(method if method in _METHODS else "OTHER", route, status, seconds)

    def text(self) -> bytes:
        """All series, in the text format."""
        return generate_latest(self.registry)

    async def answer(self, _: web.Request) -> web.Response:
        """Handler of `/metrics`."""
        with suppress(Unanswered):
            await asyncio.gather(*(figures.ask() for figures in self._asking))
        return web.Response(body=self.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def gauge(name: str, text: str, value: float | None) -> Metric:
    """A figure that goes up and down; None: it is not known."""
    return GaugeMetricFamily(name, text, value=NOT_KNOWN if value is None else float(value))


def gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """A figure for each value of a label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, figure in values.items():
        family.add_metric([value], float(figure))
    return family


def total(name: str, text: str, value: float) -> Metric:
    """A figure that only grows."""
    return CounterMetricFamily(name, text, value=float(value))
