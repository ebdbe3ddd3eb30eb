"""Fixtures of the tests of the evaluation core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """The lines of the log, as values."""
    with capture_logs() as lines:
        yield lines
