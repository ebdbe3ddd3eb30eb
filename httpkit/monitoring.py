"""Probes and metrics of one application: questions with a bound, readiness, and figures in the Prometheus text format."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from http import HTTPStatus
from itertools import accumulate
from math import nan

import attrs
import structlog
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

from httpkit.errors import HttpkitError
from httpkit.messages.encoding import encode
from httpkit.problems import status_of, text_of


class Unanswered(HttpkitError):
    """A question about the state of the process is not answered in time."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class BoundedQuestion:
    """Asks a function, at most once at a time, and waits no longer than `bound` seconds for its answer.

    A function that is cancelled may take long to end, because it tells a server that hangs. A caller does not wait for that end.
    Until then, each question has the same result: no answer.
    """

    def __init__(self, function: Callable[[], Awaitable[object]], bound: float) -> None:
        self._function = function
        self._bound = bound
        self._task: asyncio.Task[object] | None = None
        self._begun = 0.0
        self._askers = 0

    async def ask(self) -> object:
        """Return the answer of the function. Raises what the function raises, and Unanswered."""
        while True:
            task = self._task or self._begin()
            await self._wait(task)
            if not task.done():
                raise Unanswered(self._silence())
            if not task.cancelled():
                return task.result()
            if not task.cancelling():
                raise Unanswered("it was cut off")
            # Its other callers were cancelled, and it with them: ask it again.

    def _begin(self) -> asyncio.Task[object]:
        self._begun = asyncio.get_running_loop().time()
        task = self._task = asyncio.create_task(self._run())
        task.add_done_callback(self._end)
        return task

    async def _run(self) -> object:
        return await self._function()

    async def _wait(self, task: asyncio.Task[object]) -> None:
        self._askers += 1
        try:
            await asyncio.wait({task}, timeout=max(0.0, self._bound - self._elapsed()))
        finally:
            self._askers -= 1
            if not self._askers and not task.cancelling():
                task.cancel()

    def _end(self, task: asyncio.Task[object]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # else the event loop reports it if no caller is left

    def _silence(self) -> str:
        seconds = self._elapsed()
        return f"no answer within {self._bound:g} s" if seconds < self._bound + 1 else f"no answer for {seconds:.0f} s"

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._begun


log = structlog.get_logger(__name__)

Check = Callable[[], Awaitable[object]]
"""Raises if its subject is not well, and returns Unknown if it cannot look. With any other result the subject is well."""


@attrs.frozen
class Unknown:
    """The result of a check that could not look, with the `reason`."""

    reason: str


class Concern(StrEnum):
    """The part of the service that a check is about, if it is not about all."""

    READS = "reads"
    WRITES = "writes"


@attrs.frozen
class HealthFindings:
    """The findings of the checks, by name: `wrong` are reasons for not being ready, `unknown` are checks that could not look."""

    wrong: Mapping[str, str]
    unknown: Mapping[str, str]


class Health:
    """Named checks, each bounded in time. The error of a check is the reason why the service is not ready.

    The texts of exceptions with a `status` are shown, since they are written for users; others are logged, and named by type.
    """

    def __init__(
        self,
        checks: Mapping[str, Check],
        *,
        bound: float = 1.0,
        note: Callable[[], str | None] = lambda: None,
        concerns: Mapping[str, Concern] | None = None,
    ) -> None:
        """`note` describes a problem of a service that is ready.

        `concerns`: the checks that are about reads or writes only, by name. The others are about both. None: the service does
        not distinguish reads from writes.
        """
        self._checks = {name: BoundedQuestion(check, bound) for name, check in checks.items()}
        self._note = note
        self._concerns = concerns
        self._last: str | None = None
        self._was_ready = False

    async def reason(self) -> str | None:
        """Why the service is not ready, or None. Takes no longer than the bound of one check, in seconds."""
        return _joined((await self._look()).wrong)

    async def _look(self) -> HealthFindings:
        results = dict(zip(self._checks, await asyncio.gather(*map(self._run, self._checks)), strict=True))
        wrong = {name: result for name, result in results.items() if isinstance(result, str)}
        reason = _joined(wrong)
        if reason != self._last:
            if reason is None:
                log.info("ready")
            else:
                (log.warning if self._was_ready else log.info)("not ready", reason=reason)  # a start is no reason to worry
            self._last = reason
        self._was_ready = self._was_ready or reason is None
        return HealthFindings(wrong, {name: result.reason for name, result in results.items() if isinstance(result, Unknown)})

    async def _run(self, name: str) -> str | Unknown | None:
        try:
            result = await self._checks[name].ask()
        except Exception as error:
            if status_of(error) is not None:
                return text_of(error)
            log.debug("readiness check failed", check=name, exc_info=error)
            return type(error).__name__
        return result if isinstance(result, Unknown) else None

    def _of(self, concern: Concern, results: Mapping[str, str]) -> dict[str, str]:
        assert self._concerns is not None
        return {name: text for name, text in results.items() if self._concerns.get(name, concern) is concern}

    async def live(self, _: web.Request) -> web.Response:
        """Handler of `/livez`."""
        return _answer(HTTPStatus.OK, {"status": "ok"})

    async def ready(self, request: web.Request) -> web.Response:
        """Handler of `/readyz`: 200, or 503 with the reason; with `?for=reads` or `?for=writes` the status is of these alone."""
        findings, note = await self._look(), self._note()
        wrong = dict(findings.wrong)
        members: dict[str, str] = {}
        if self._concerns is not None:
            asked = request.query.get("for")
            for concern in Concern:
                bad = self._of(concern, wrong)
                members[concern] = _joined(bad) or _unknown(self._of(concern, findings.unknown)) or "ok"
            if asked in set(Concern):
                wrong = self._of(Concern(asked), wrong)
        if note is not None:
            members["note"] = note
        reason = _joined(wrong)
        if reason is None:
            return _answer(HTTPStatus.OK, {"status": "ok"} | members)
        return _answer(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "error", "reason": reason} | members)


def _joined(found: Mapping[str, str]) -> str | None:
    return "; ".join(f"{name}: {text}" for name, text in found.items()) or None


def _unknown(found: Mapping[str, str]) -> str | None:
    reasons = _joined(found)
    return None if reasons is None else f"unknown: {reasons}"


def _answer(status: int, members: dict[str, str]) -> web.Response:
    headers = {} if status == HTTPStatus.OK else {"Retry-After": "1"}
    return web.Response(body=encode(members), status=status, headers=headers, content_type="application/json")


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
