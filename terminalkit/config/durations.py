"""Durations as people write them (`15s`, `10m`, `1h30m`, `250ms`): Go's notation."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")
_LONGEST = 10 * 365 * 24 * 3600.0

SCHEMA = {"type": "string", "pattern": r"^([0-9]{1,12}(\.[0-9]{1,9})?(h|ms|m|s|us|µs|ns))+$", "examples": ["15s", "10m", "1h30m"]}
"""The texts that `parse` takes, in JSON Schema."""


def parse(text: object) -> float:
    """The seconds that a text means. Raises ValueError with a text for the user; ten years is the longest."""
    parts = _PART.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"must be a duration like 15s, 10m or 1h30m, not {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LONGEST:
        raise ValueError("must be at most ten years")
    return seconds


def show(seconds: float) -> str:
    """The shortest text for a duration, to the millisecond."""
    rest = round(seconds * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
