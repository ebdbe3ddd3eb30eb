"""Objects whose modules are slow to import: they are imported when they are wanted, as help and completion do without them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazily(place: str) -> Callable[[], Any]:
    """Return a function that gives the object in a place, `module:NAME`."""
    module, _, name = place.partition(":")
    return lambda: getattr(import_module(module), name)
