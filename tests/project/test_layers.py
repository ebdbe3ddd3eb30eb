"""Imports go down and make no circle, a domain is pure, a library belongs to one layer (docs/explanation/architecture.md)."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.layers import PACKAGES, circles, foreign_imports, read_modules, violations


def test_the_modules_keep_the_import_rules() -> None:
    modules = read_modules(ROOT)
    assert len(modules) >= len([package for package in PACKAGES if (ROOT / package / "__init__.py").exists()])
    assert violations(modules) == []


def test_no_modules_import_each_other() -> None:
    assert circles(read_modules(ROOT)) == []


@pytest.mark.parametrize(
    "source",
    ["import a.other", "from a import other", "def f():\n  from a.other import g", "if TYPE_CHECKING:\n  import a.other"],
)
def test_modules_that_import_each_other_are_named(source: str) -> None:
    package = {"a": "import a.one", "a.one": source, "a.other": ""}
    assert circles(package) == []
    circle = circles(package | {"a.other": "import a.one"})
    assert sorted(set(circle)) == ["a.one", "a.other"]


def test_every_library_that_is_imported_is_a_declared_requirement() -> None:
    modules = read_modules(ROOT)
    kits = {name: source for name, source in modules.items() if ".testing.conformance" in name}
    used = foreign_imports({name: source for name, source in modules.items() if name not in kits})
    assert "attrs" in used
    assert _undeclared(used, "options.install_requires", "options.extras_require.otel") == set()
    files = [file for top in ("tests", "scripts") for file in (ROOT / top).rglob("*.py") if file.parent.name != "peers"]
    programs = {str(file): file.read_text(encoding="utf-8") for file in files}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    ours = (
        {re.split(r"\W", one)[0] for one in build}
        | {part for name in programs for part in (Path(name).stem, Path(name).parent.name)}
        | {"tests"}
    )
    used_by_developers = foreign_imports(kits | programs) - ours
    assert "pytest" in used_by_developers
    assert _undeclared(used_by_developers, "options.install_requires", "options.extras_require.test") == set()


_FACE = "if TYPE_CHECKING:\n  from eventlog.decider import Decider\n  from eventlog.support.timers import tick"


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("eventlog.a", "import projections", "eventlog.a:1: must not import projections"),
        ("eventlog.a", "\nfrom gctd.domain import task", "eventlog.a:2: must not import gctd.domain.task"),
        ("projections.a", "import servicekit.settings", "projections.a:1: must not import servicekit.settings"),
        ("httpkit.a", "import terminalkit.display.table", "httpkit.a:1: must not import terminalkit.display.table"),
        ("projections.a", "import terminalkit", "projections.a:1: must not import terminalkit"),
        ("projections.a", "import httpkit.routes", "projections.a:1: must not import httpkit.routes"),
        ("projections.a", "from projections.cli import main", "projections.a:1: must not import projections.cli"),
        ("projections.a", "from gctd.worker import run", "projections.a:1: must not import gctd.worker"),
        ("httpkit.a", "def f():\n  import gctd", "httpkit.a:2: must not import gctd"),
        ("gctd.a", "import pantry.domain", "gctd.a:1: must not import pantry.domain"),
        ("gctd.worker", "from gctd.http import app", "gctd.worker:1: must not import gctd.http"),
        ("gctd.a", "from gctd import cli", "gctd.a:1: must not import gctd.cli"),
        ("pantry.a", "import gctd", "pantry.a:1: must not import gctd"),
        ("graphql_fn.a", "import eventlog", "graphql_fn.a:1: must not import eventlog"),
        ("graphql_fn.core.a", "import httpkit.sse.hub", "graphql_fn.core.a:1: must not import httpkit.sse.hub"),
        ("graphql_fn.handlers.a", "import graphql_fn.settings", "graphql_fn.handlers.a:1: must not import graphql_fn.settings"),
        ("gctd.domain.a", "from gctd.worker import run", "gctd.domain.a:1: must not import gctd.worker"),
        ("gctd.domain.a", "import eventlog.jetstream", "gctd.domain.a:1: must not import eventlog.jetstream"),
        ("gctd.domain.a", "from eventlog import Decider, tick", "gctd.domain.a:1: must not import eventlog.tick"),
        ("gctd.worker", "from eventlog.port import EventLog", "gctd.worker:1: must not import eventlog.port"),
        ("gctd.http.a", "from httpkit import routes", "gctd.http.a:1: must not import httpkit.routes"),
        ("pantry.cli.a", "import terminalkit.display.table", "pantry.cli.a:1: must not import terminalkit.display.table"),
        ("graphql_fn.a", "def f():\n  from servicekit.parts import A", "graphql_fn.a:2: must not import servicekit.parts"),
        ("examples.a", "if TYPE_CHECKING:\n  import projections.model", "examples.a:2: must not import projections.model"),
        ("gctd.domain.a", "import projections", "gctd.domain.a:1: must not import projections"),
        ("gctd.domain.a", "import asyncio", "gctd.domain.a:1: must not import asyncio"),
        ("gctd.domain.a", "from os import path", "gctd.domain.a:1: must not import os"),
        ("pantry.domain", "from urllib import request", "pantry.domain:1: must not import urllib"),
        ("gctd.domain.a", "import http.client", "gctd.domain.a:1: must not import http.client"),
        ("gctd.domain.a", "import msgspec", "gctd.domain.a:1: must not import msgspec"),
        ("gctd.domain.a", "x = datetime.now(UTC)", "gctd.domain.a:1: must not call now()"),
        ("gctd.domain.a", "open('f')", "gctd.domain.a:1: must not call open()"),
        ("gctd.worker", "if TYPE_CHECKING:\n  import nats.aio", "gctd.worker:2: must not import nats.aio"),
        ("gctd.worker", "from aiohttp import web", "gctd.worker:1: must not import aiohttp"),
        ("gctd.http.a", "import sqlite3", "gctd.http.a:1: must not import sqlite3"),
        ("gctd.a", "from . import b", "gctd.a:1: must not import ."),
        ("eventlogs.a", "import os", "eventlogs.a:1: belongs to no layer"),
    ],
)
def test_a_module_that_breaks_a_rule_is_named_with_the_line(module: str, source: str, complaint: str) -> None:
    others = dict.fromkeys(("gctd", "gctd.cli", "gctd.domain", "gctd.domain.task", "gctd.http", "gctd.worker"), "")
    assert violations(others | {"eventlog": _FACE, "httpkit.routes": "", module: source}) == [complaint]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("eventlog.jetstream.a", "import nats, asyncio\nfrom eventlog.commit import Commit\nfrom eventlog import b"),
        ("gctd.readmodel.a", "from gctd.domain import task\nimport eventlog.jetstream, projections"),
        ("servicekit.a", "import aiohttp, projections.store, eventlog, httpkit.routes"),
        (
            "gctd.domain.a",
            "from datetime import datetime\nfrom urllib.parse import urlsplit\nimport attrs\nfrom eventlog import Decider",
        ),
        (
            "gctd.worker.a",
            "import os\nfrom eventlog.jetstream import ask\nfrom gctd.domain import task\nnow = datetime.now(UTC)",
        ),
        ("gctd.serve", "from gctd.http import app"),
        ("gctd.client.a", "import aiohttp"),
        ("graphql_fn", "import httpkit, gctd.readmodel"),
    ],
)
def test_a_module_that_keeps_the_rules_is_not_named(module: str, source: str) -> None:
    assert violations({module: source, "eventlog": _FACE, "gctd.domain.task": ""}) == []


def _undeclared(imported: Iterable[str], *options: str) -> set[str]:
    """Return the imported libraries whose distribution is missing in these lists of setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = (line for option in options for line in setup[option.rpartition(".")[0]][option.rpartition(".")[2]].split())
    declared = {_normal(re.split(r"[<>=~! ]", line)[0]) for line in lines}
    distributions = packages_distributions()
    return {name for name in imported if declared.isdisjoint(map(_normal, distributions.get(name, (name,))))}


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
