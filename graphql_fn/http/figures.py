"""Metrics of the functions: outcomes of requests, documents that are remembered, open event streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.result import QueryOutcome
from httpkit.sse.single import Streams

_NOTHING_RUN = "unreadable"


@attrs.frozen(eq=False)
class Requests(Collector):
    """The outcomes of requests."""

    _outcomes: Mapping[tuple[str, QueryOutcome | None], int]

    def collect(self) -> Sequence[CounterMetricFamily]:
        text = "Requests of functions, by outcome."
        found = CounterMetricFamily("graphql_requests", text, labels=["function", "outcome"])
        for (name, outcome), count in self._outcomes.items():
            found.add_metric([name, outcome.value if outcome else _NOTHING_RUN], count)
        return [found]


@attrs.frozen(eq=False)
class Caches(Collector):
    """The documents that functions cache."""

    _evaluators: Mapping[str, Evaluator]

    def collect(self) -> Sequence[CounterMetricFamily | GaugeMetricFamily]:
        kept = GaugeMetricFamily("graphql_documents", "Documents that are remembered.", labels=["function"])
        asked = CounterMetricFamily("graphql_document_lookups", "Documents looked up.", labels=["function", "result"])
        for name, evaluator in self._evaluators.items():
            documents = evaluator.documents
            kept.add_metric([name], len(documents))
            asked.add_metric([name, "hit"], documents.hits)
            asked.add_metric([name, "miss"], documents.misses)
        return [kept, asked]


@attrs.frozen(eq=False)
class Subscribers(Collector):
    """The count of open event streams."""

    _streams: Streams

    def collect(self) -> Sequence[GaugeMetricFamily]:
        return [GaugeMetricFamily("graphql_subscribers", "Open event streams.", value=self._streams.open)]
