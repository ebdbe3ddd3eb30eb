"""The engines by name."""

from __future__ import annotations

from gctd.domain.errors import BadInput
from gctd.engines.engine import Engine
from gctd.engines.native import NativeEngine

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (NativeEngine(), NativeEngine(compat=True))}
"""All engines that a task can have."""
NAMES = tuple(ENGINES)


def engine_named(name: str) -> Engine:
    """Return an engine. Raises BadInput, which names the engines."""
    if name not in ENGINES:
        raise BadInput("engine", f"no engine is called {name!r}; there are {', '.join(sorted(NAMES))}")
    return ENGINES[name]
