"""The engines by name."""

from __future__ import annotations

from collections.abc import Mapping

from gctd.domain.errors import BadInput
from gctd.engines.engine import Engine
from gctd.engines.gocrap import program as gocrap_program
from gctd.engines.native import NativeEngine

NAMES = ("native", "native-compat", gocrap_program.NAME)
"""All engines that a task can have. The last one works only if the program of that name is installed."""


def engines() -> Mapping[str, Engine]:
    """Return the engines that can be used on this host, by their names. Runs the installed programs to learn their versions."""
    program = gocrap_program.installed_gocrap()
    found: tuple[Engine, ...] = (NativeEngine(), NativeEngine(compat=True), *(() if program is None else (program,)))
    return {engine.name: engine for engine in found}


def known(name: str) -> str:
    """Return the name of an engine, whether or not it can be used here. Raises BadInput, which names the engines."""
    if name not in NAMES:
        raise BadInput("engine", f"no engine is called {name!r}; there are {', '.join(sorted(NAMES))}")
    return name


def engine_named(name: str) -> Engine:
    """Return an engine that can be used on this host. Raises BadInput, also if the engine is not installed."""
    if known(name) == gocrap_program.NAME:
        program = gocrap_program.installed_gocrap()
        if program is None:
            raise BadInput("engine", "go-crap is not on this worker's PATH; native-compat gives its numbers without it")
        return program
    return NativeEngine(compat=name != "native")
