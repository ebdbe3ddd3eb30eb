"""Parameters of requests that are times."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from httpkit.messages.fields import query
from httpkit.messages.primitives import parse_time


def _moment(text: str) -> datetime:
    return parse_time(text.replace(" ", "+"))  # the plus of an offset, if it was not escaped


def moment(*, name: str | None = None, description: str, empty: bool = False) -> Any:
    """A query parameter that is a time, with its offset from UTC. `empty`: see `query`."""
    schema = {"type": "string", "format": "date-time"}
    return query(name=name, default=None, parse=_moment, schema=schema, description=f"{description}; RFC 3339", empty=empty)
