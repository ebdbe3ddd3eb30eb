"""The import rules of the code base (docs/explanation/architecture.md), checked by reading the modules, not by importing them.

A pattern is a module's name, `name.*` for it and everything below it, or `*.name.*` for this in every package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import attrs
from house import FACES

SERVICES = ("graphql_fn", "gctd", "pantry")
CORE = ("servicekit", "projections", "terminalkit", "httpkit", "eventlog")
"""From the top down: a package imports only those behind it."""
EXAMPLES = "examples"
PACKAGES = (EXAMPLES, *SERVICES, *CORE)

_VALUES = ("eventlog.commit", "eventlog.decider", "eventlog.errors", "eventlog.privacy", "eventlog.commit")
"""Modules whose names a domain may import from `eventlog`."""
_READMODELS = tuple(f"{service}.{part}.*" for service in ("gctd", "pantry") for part in ("domain", "readmodel"))
_COMPARISONS = ("gctd.engines", "gctd.engines.report", "gctd.engines.changes.*")
"""Pure functions on stored reports."""
_CORE = tuple(f"{package}.*" for package in CORE)


@attrs.frozen
class Layer:
    """Modules that match a pattern, the project's modules that they may import besides their own layer, and exceptions."""

    modules: str
    may_import: tuple[str, ...]
    but_not: tuple[str, ...] = ()


LAYERS = (  # the first that matches counts
    Layer(f"{EXAMPLES}.*", FACES),
    Layer("servicekit.program", _CORE),  # a service's program has the commands of `projections`
    *(Layer(f"projections.{top}", _CORE[1:]) for top in ("cli.*", "__main__")),
    Layer("projections.*", ("eventlog.*",), ("projections.cli.*",)),
    *(Layer(f"{package}.*", _CORE[place + 1 :], ("projections.cli.*",)) for place, package in enumerate(CORE)),
    Layer("graphql_fn.core.*", ()),  # this and the next are deployed without the rest
    Layer("graphql_fn.handlers.*", ("graphql_fn.core.*",)),
    Layer("graphql_fn.*", (*FACES, *_READMODELS, *_COMPARISONS, "gctd.broker.blobs"), ("eventlog.*",)),
    *(
        layer
        for service in ("gctd", "pantry")
        for layer in (
            Layer(f"{service}.domain.*", ("eventlog",)),
            Layer(f"{service}.readmodel.*", (f"{service}.domain.*", f"{service}.broker.blobs", *FACES)),
            *(Layer(f"{service}.{top}", (f"{service}.*", *FACES)) for top in ("cli.*", "up.*", "__main__")),
            Layer(f"{service}.http.*", (f"{service}.*", *FACES), (f"{service}.cli.*",)),
            Layer(f"{service}.serve", (f"{service}.*", *FACES), (f"{service}.cli.*",)),
            Layer(f"{service}.*", (f"{service}.*", *FACES), tuple(f"{service}.{top}.*" for top in ("cli", "http", "serve"))),
        )
    ),
)

RESERVED = {
    "nats": ("eventlog.*",),
    "aiohttp": (
        *("httpkit.*", "servicekit.*", "terminalkit.client.*", "*.http.*", "*.client.*", "*.cli.*"),
        *("gctd.scan.hosts.*", "gctd.control.forges.api", "gctd.scan.go.pinned"),
    ),
    "aiohttp_sse": ("httpkit.*", "*.http.*"),
    "click": ("terminalkit.*", "*.cli.*", "servicekit.program", "servicekit.issued_tokens"),
    "rich": ("terminalkit.*", "*.cli.*"),
    "asyncpg": ("projections.stores.*",),
    "sqlite3": ("projections.*",),
    "sqlite_utils": ("projections.*",),
}
"""Libraries that are one layer's business, and the modules that may import them."""

DOMAIN = "*.domain.*"

PURE_LIBRARIES = re.compile(
    r"__future__|abc|attrs|base64|bisect|collections|collections\.abc|dataclasses|datetime|decimal|enum|fractions|functools|hashlib"
    r"|heapq|http|ipaddress|itertools|json|math|operator|posixpath|re|re2|string|textwrap|types|typing|unicodedata|urllib\.parse"
)
"""Libraries that a domain may import: without I/O, clock or random, but for the calls below."""

IMPURE_CALLS = frozenset({"now", "utcnow", "today", "fromtimestamp", "open", "print", "input", "exec", "eval", "__import__"})
"""Calls, by their last name, that a domain must not make: the clock and the time zone behind `datetime`, and built-in I/O."""


def read_modules(root: Path) -> dict[str, str]:
    """Name and source of every module of the packages below a directory."""
    return {
        _name(file.relative_to(root)): file.read_text(encoding="utf-8")
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
    }


def violations(modules: Mapping[str, str]) -> list[str]:
    """Return the violations in these modules (source by name), one line for each place: `module:line: what`."""
    found: list[str] = []
    pure = _pure_names(modules)
    for name, source in modules.items():
        layer = next((layer for layer in LAYERS if _matches(name, (layer.modules,))), None)
        if layer is None:
            found.append(f"{name}:1: belongs to no layer")
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                bad = (target for target in _targets(node, modules) if not _may_import(name, layer, target))
                found += (f"{name}:{node.lineno}: must not import {target}" for target in bad)
            if isinstance(node, ast.ImportFrom) and _matches(name, (DOMAIN,)) and node.module == "eventlog":
                impure = (alias.name for alias in node.names if alias.name not in pure)
                found += (f"{name}:{node.lineno}: must not import eventlog.{alias}" for alias in impure)
            if isinstance(node, ast.Call) and _matches(name, (DOMAIN,)) and (called := _last_name(node.func)) in IMPURE_CALLS:
                found.append(f"{name}:{node.lineno}: must not call {called}()")
    return found


def _pure_names(modules: Mapping[str, str]) -> set[str]:
    """The names of `eventlog` that a domain may import."""
    nodes = ast.walk(ast.parse(modules.get("eventlog", "")))
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module in _VALUES for alias in node.names}


def circles(modules: Mapping[str, str]) -> list[str]:
    """Return the names of the first circle of modules that import each other, also inside functions; empty if there is none.

    The last name is the first one. A module does not count as importing the package that holds it.
    """
    imports = {name: [target for target in _imported(source, modules) if target in modules] for name, source in modules.items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def foreign_imports(modules: Mapping[str, str]) -> set[str]:
    """The top-level names of the third-party libraries that these modules import."""
    imported = (target.partition(".")[0] for source in modules.values() for target in _imported(source, modules))
    return {top for top in imported if top and top not in PACKAGES and top not in sys.stdlib_module_names}


def _may_import(name: str, layer: Layer, target: str) -> bool:
    top = target.partition(".")[0]
    if not top:  # relative: our modules go by their full names
        return False
    if top in PACKAGES:
        return _matches(target, (layer.modules, *layer.may_import)) and not _matches(target, layer.but_not)
    if _matches(name, (DOMAIN,)):
        return PURE_LIBRARIES.fullmatch(target) is not None
    return _matches(name, RESERVED.get(top, ("*",)))


def _imported(source: str, modules: Container[str]) -> Iterator[str]:
    """Yield the modules that a source imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _targets(node, modules)


def _targets(node: ast.Import | ast.ImportFrom, modules: Container[str]) -> Sequence[str]:
    """The modules that a statement imports, by the names that it has for them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = "." * node.level + (node.module or "")
    return [full if (full := f"{base}.{alias.name}") in modules else base for alias in node.names]


def _last_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(
        fnmatchcase(f"{name}.", f"{pattern.removesuffix('.*')}.{'*' if pattern.endswith('*') else ''}") for pattern in patterns
    )


def _name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")
