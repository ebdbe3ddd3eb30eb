"""Traces: the context that messages carry, spans, and ids and durations of operations."""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Protocol

import attrs

_BYTES = 16
_AT_A_TIME = 256

_ready: list[str] = []


def hex_digits() -> str:
    """32 random hex digits, as `secrets.token_hex(16)` gives them; from any thread."""
    try:
        return _ready.pop()  # one step for the interpreter: no other thread gets the same
    except IndexError:
        digits = os.urandom(_BYTES * _AT_A_TIME).hex()
        length = 2 * _BYTES
        _ready.extend(digits[start : start + length] for start in range(length, len(digits), length))
        return digits[:length]


os.register_at_fork(after_in_child=_ready.clear)  # or parent and child would make the same ids


BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Timings:
    """Durations in seconds. `bounds` are the upper ends of the classes, in rising order. One more class has no end."""

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """Seconds, all together."""

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """For each class its upper end and how many took no longer; the last end is infinite."""
        return zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True)


_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


@attrs.frozen
class Trace:
    """One span of a trace: 32 hex digits of the trace, 16 of the span, and whether the trace is recorded. Text: `traceparent`."""

    trace_id: str
    span_id: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"

    @classmethod
    def parse(cls, text: str | None) -> Trace | None:
        """The span that a `traceparent` names; None if it names none, so that a new trace begins (section 3.2)."""
        found = _TRACEPARENT.fullmatch(text) if text is not None else None
        if found is None:
            return None
        version, trace_id, span_id, flags, more = found.groups()
        if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
            return None
        return cls(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))

    @classmethod
    def begin(cls) -> Trace:
        """The first span of a new trace, with random ids."""
        return cls(hex_digits(), hex_digits()[:16])

    def child(self) -> Trace:
        """A new span of the same trace."""
        return Trace(self.trace_id, hex_digits()[:16], self.sampled)


MOST_LINKS = 128
"""Links of one span."""

SEND, PROCESS = "send", "process"
"""Operations on messages. The name of such a span is the operation and the stream: `send BANK`."""

_SYSTEM = "messaging.system"
_OPERATION = "messaging.operation.name"
_OPERATION_TYPE = "messaging.operation.type"
_DESTINATION = "messaging.destination.name"
_MESSAGE = "messaging.message.id"
_GROUP = "messaging.consumer.group.name"
_COUNT = "messaging.batch.message_count"

Attributes = Mapping[str, str | int]


class SpanKind(IntEnum):
    """The kinds of spans, with the numbers of OpenTelemetry."""

    INTERNAL = 0
    SERVER = 1
    PRODUCER = 3
    CONSUMER = 4


class Exporter(Protocol):
    """Takes spans that have ended."""

    def export(
        self,
        name: str,
        span: Trace,
        kind: SpanKind,
        times: tuple[int, int],
        *,
        parent: Trace | None,
        links: Iterable[Trace],
        attributes: Attributes,
        failed: str | None,
    ) -> None:
        """Take a span; `times` are its begin and its end in nanoseconds since 1970."""

    def stop(self) -> None:
        """Send the last spans."""


_exporter: Exporter | None = None
_started = 0.0


def export_to(exporter: Exporter | None) -> None:
    """Give the spans that end from now on to this exporter; None switches the export off."""
    global _exporter, _started
    _exporter, _started = exporter, time.time()


def recording_spans() -> bool:
    """Return whether spans are exported."""
    return _exporter is not None


def began_before(at: float) -> bool:
    """Return whether the time (seconds since 1970) is older than this process. Such commits are replayed, and make no spans."""
    return at < _started


def record_span(
    name: str,
    span: Trace,
    kind: SpanKind,
    began: int,
    *,
    parent: Trace | None = None,
    links: Iterable[Trace] = (),
    attributes: Attributes | None = None,
    failed: str | None = None,
) -> None:
    """Export a span that ends now, unless its trace is not sampled.

    `began` is its begin in nanoseconds since 1970, `failed` the reason if its work did not succeed.
    """
    if _exporter is not None and span.sampled:
        times = (began, time.time_ns())
        _exporter.export(name, span, kind, times, parent=parent, links=links, attributes=attributes or {}, failed=failed)


def message_attributes(
    operation: str, stream: str, *, message_id: str | None = None, count: int | None = None, group: str | None = None
) -> Attributes:
    """Return the attributes of an operation on messages of a stream."""
    known: dict[str, str | int | None] = {
        _SYSTEM: "nats",
        _OPERATION: operation,
        _OPERATION_TYPE: operation,
        _DESTINATION: stream,
        _MESSAGE: message_id,
        _COUNT: count,
        _GROUP: group,
    }
    return {name: value for name, value in known.items() if value is not None}


class Stages:
    """The stages of a work as spans: each ends as the next one begins."""

    def __init__(self, parent: Trace | None) -> None:
        self._parent = parent
        self._name = ""
        self._began = 0

    def enter(self, name: str) -> None:
        """Begin a stage, and end the one before."""
        self.end()
        self._name, self._began = name, time.time_ns()

    def end(self, failed: str | None = None) -> None:
        """End the stage, if one has begun."""
        if self._name and self._parent is not None:
            record_span(self._name, self._parent.child(), SpanKind.INTERNAL, self._began, parent=self._parent, failed=failed)
        self._name = ""
