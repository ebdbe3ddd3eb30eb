"""Names of categories, and problems as answers."""

from __future__ import annotations

import itertools
from typing import Any

NAMES = itertools.count(1)


def name() -> str:
    """Return an unused name for a category."""
    return f"category {next(NAMES)}"


def problem(answer: Any, status: int, text: str = "") -> None:
    """An error as every one is: a problem document with the key `error`."""
    assert answer.status == status, answer
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert answer.body["error"] == answer.body["detail"]
    assert text in answer.body["error"], answer.body
