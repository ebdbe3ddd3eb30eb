"""Parameters of requests that are times."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from httpkit.messages.fields import query


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))  # the plus of an offset, where it was not escaped
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or "T" not in text.upper():
        raise ValueError("must be a time in RFC 3339 form, with its offset from UTC")
    return found


def moment(*, name: str | None = None, description: str) -> Any:
    """A query parameter that is a time, with its offset from UTC."""
    schema = {"type": "string", "format": "date-time"}
    return query(name=name, default=None, parse=_moment, schema=schema, description=f"{description}; RFC 3339")
