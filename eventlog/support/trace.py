"""W3C Trace Context (https://www.w3.org/TR/trace-context/): the ids under which the results of a request are found."""

from __future__ import annotations

import re

import attrs

from eventlog.support.ids import hex_digits

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
