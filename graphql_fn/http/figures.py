"""Metrics of the functions: outcomes of requests, documents that are remembered, open event streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.result import QueryOutcome
from httpkit import Streams

_NOTHING_RUN = "unreadable"


@attrs.frozen(eq=False)
class FunctionFigures(Collector):
    """The outcomes of requests by function, the documents that functions cache, and the count of open event streams."""

    _outcomes: Mapping[tuple[str, QueryOutcome | None], int]
    _evaluators: Mapping[str, Evaluator]
    _streams: Streams

    def collect(self) -> Sequence[Metric]:
        text = "Requests of functions, by outcome."
        requests = CounterMetricFamily("graphql_requests", text, labels=["function", "outcome"])
        for (name, outcome), count in self._outcomes.items():
            requests.add_metric([name, outcome.value if outcome else _NOTHING_RUN], count)
        kept = GaugeMetricFamily("graphql_documents", "Documents that are remembered.", labels=["function"])
        asked = CounterMetricFamily("graphql_document_lookups", "Documents looked up.", labels=["function", "result"])
        for name, evaluator in self._evaluators.items():
            documents = evaluator.documents
            kept.add_metric([name], len(documents))
            asked.add_metric([name, "hit"], documents.hits)
            asked.add_metric([name, "miss"], documents.misses)
        subscribers = GaugeMetricFamily("graphql_subscribers", "Open event streams.", value=self._streams.open)
        return [requests, kept, asked, subscribers]
