"""The engines by name."""

from __future__ import annotations

from collections.abc import Mapping

from gctd.domain.errors import BadInput
from gctd.engines.engine import Engine
from gctd.engines.native import NativeEngine


def engines() -> Mapping[str, Engine]:
    """All engines by their names."""
    found: tuple[Engine, ...] = (NativeEngine(), NativeEngine(compat=True))
    return {engine.name: engine for engine in found}


def engine_named(name: str) -> Engine:
    """An engine by its name. Raises BadInput, which names the engines that there are."""
    known = engines()
    if name not in known:
        raise BadInput("engine", f"no engine is called {name!r}; there are {', '.join(sorted(known))}")
    return known[name]
