"""Tests on the event loop that the services run on: its transports buffer and close in their own way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from terminalkit.coroutine import run_busy

P = ParamSpec("P")


def on_uvloop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test to its end on uvloop."""

    @functools.wraps(test)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        run_busy(test(*args, **kwargs))

    return wrapper
