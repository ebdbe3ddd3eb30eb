"""Every call, setting, query and metric of a user is in the documentation, and the targets of its links exist."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from reference.commands import contexts

from eventlog import Position
from eventlog.jetstream.connection import Counters
from eventlog.jetstream.fence import WriteHealth
from eventlog.support.tracing import Timings
from gctd.cli.root import PROGRAM as GCTD
from gctd.http.api import TABLE
from gctd.http.figures import Figures
from gctd.http.tasks.outcomes import Outcomes
from gctd.readmodel import MODEL
from gctd.settings import SETTINGS, Settings
from graphql_fn.cli.root import PROGRAM as GRAPHQL
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.hello import HELLO
from graphql_fn.http.gateway import Gateway
from graphql_fn.http.routes import TABLE as GRAPHQL_TABLE
from graphql_fn.http.routes import pages as graphql_pages
from graphql_fn.serve import read_model_figures
from graphql_fn.settings import SETTINGS as GRAPHQL_SETTINGS
from graphql_fn.settings import Settings as GraphqlSettings
from httpkit.application import METRICS, OPENAPI
from httpkit.edge import Edge
from httpkit.messages.fields import attributes_of
from httpkit.server.guard import Guard
from httpkit.sse.stream import Frame
from pantry.cli.root import PROGRAM as PANTRY
from pantry.http.api import TABLE as PANTRY_TABLE
from pantry.settings import SETTINGS as PANTRY_SETTINGS
from pantry.settings import Settings as PantrySettings
from projections.cli import PROGRAM as PROJECTIONS
from servicekit.parts import Part, ProcessParts
from servicekit.read_side import ReadSide
from terminalkit.failure import ExitCode
from tests.support import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def text(*names: str) -> str:
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)


def missing(words: Iterable[str], where: str) -> list[str]:
    """Return the words that are not in the text as a whole."""
    return [word for word in words if not re.search(rf"(?<![\w/]){re.escape(word)}(?![\w/{{]|-\w)", where)]


def commands(group: click.Group, name: str) -> Iterator[str]:
    """The full names of all commands that do something."""
    return (context.command_path for context in contexts(click.Context(group, info_name=name)))


def test_every_test_that_proves_a_mechanism_exists() -> None:
    page = text("docs/explanation/faults.md")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)
    assert len(named) >= 50
    assert [f"{file}::{name}" for file, name in named if not _has(ROOT / "tests" / file, name)] == []
    names = set(re.findall(r"`(test_\w+)`", page))
    files = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))
    assert names - set(re.findall(r"def (test_\w+)\(", files)) == set()


def _has(file: Path, name: str) -> bool:
    return file.is_file() and re.search(rf"(?:def|class) {name}\b", file.read_text(encoding="utf-8")) is not None


def test_the_functions_of_the_way_of_a_request_are_in_their_modules() -> None:
    section = text("docs/explanation/architecture.md").partition("\n## One request\n")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w.]+)`(?: and `(\w+)`)? \(\[([\w/]+\.py)\]", section.replace("\n  ", ""))
    functions = [(file, name) for *names, file in named for name in names if name]
    assert len(functions) >= 14
    assert [f"{file}: {name}" for file, name in functions if name not in _definitions(ROOT / file)] == []


def _definitions(file: Path) -> set[str]:
    """The functions and methods of a module."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return functions | {f"{cls.name}.{node.name}" for cls in classes for node in cls.body if hasattr(node, "name")}


def test_every_command_is_shown() -> None:
    names = [*commands(GCTD.group, "gctd"), *commands(PROJECTIONS.group, "projections")]
    assert len(names) >= 25
    assert missing(names, text("docs/reference/cli.md", "docs/guides/operation.md")) == []
    assert missing(commands(PANTRY.group, "pantry"), text("docs/guides/pantry.md")) == []


def test_every_exit_code_is_explained() -> None:
    table = "\n".join(line for line in text("docs/reference/cli.md").splitlines() if re.match(r"\| \d", line))
    assert missing([str(int(code)) for code in ExitCode], table) == []


@pytest.mark.parametrize("name", [field.name for field in attributes_of(Settings)])
def test_every_setting_is_explained_with_its_variable_and_its_default(name: str) -> None:
    about = SETTINGS.describe(name)
    page = text("docs/reference/configuration.md")
    row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` | `{about.env}` |")), None)
    assert row is not None
    default = row.split("|")[3].strip()
    if default.startswith("`") and default.endswith("`"):
        assert default == f"`{about.default}`"
    else:  # said in words: there is none, or it depends on the machine
        assert about.default is not None
        assert about.default == "none" or str(Path.home()) in about.default


@pytest.mark.parametrize("name", [field.name for field in attributes_of(GraphqlSettings)])
def test_every_setting_of_the_gateway_is_explained(name: str) -> None:
    about = GRAPHQL_SETTINGS.describe(name)
    default = "none" if about.default == "none" else f"`{about.default}`"
    assert f"| `{name}` | `{about.env}` | {default} |" in text("docs/guides/graphql.md")


def test_every_route_and_setting_of_the_pantry_is_shown() -> None:
    routes = [f"{route.method} {route.path}" for route in PANTRY_TABLE]
    variables = [PANTRY_SETTINGS.describe(field.name).env for field in attributes_of(PantrySettings)]
    assert missing([*routes, *variables], text("docs/guides/pantry.md")) == []


def test_every_command_route_and_metric_of_the_function_is_shown() -> None:
    registry = CollectorRegistry()
    Gateway([Evaluator(HELLO)], registry, check_origin=Guard().check_origin, page=graphql_pages().by_path["/"])
    registry.register(ProcessParts(Part("read models", collect=partial(read_model_figures, ()))))
    metrics = [f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in registry.collect()]
    routes = [f"{route.method} {route.path}" for route in GRAPHQL_TABLE]
    assert missing([*commands(GRAPHQL.group, "graphql-fn"), *routes, *metrics], text("docs/guides/graphql.md")) == []


def test_every_route_is_shown() -> None:
    edge = Edge(title="", version="", guard=Guard(token="a token"))
    routes = [*TABLE, *edge.guard.routes(edge.session_path)]
    names = [f"{route.method} {route.path}" for route in routes]
    probes = [f"GET {path}" for path in ("/", "/livez", "/health", "/readyz", METRICS, OPENAPI)]
    assert missing([*names, *probes], text("docs/reference/api.md")) == []


def test_every_route_has_an_example() -> None:
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", text("docs/reference/api.md"), re.DOTALL))
    lines = [line for line in re.sub(r"\\\n", " ", shell).splitlines() if "curl" in line]

    def is_of(method: str, path: str, line: str) -> bool:
        given = re.search(r"-X (\w+)", line)
        address = re.escape(path).replace(r"\{id\}", r"(\$\w+|worker-1)").replace(r"\{attempt\}", "[0-9]+")
        address = address.replace(r"\{key\}", "[A-Za-z.:]+")
        return (given[1] if given else "GET") == method and re.search(rf"\$URL{address}[?\"]", line) is not None

    without = [
        f"{route.method} {route.path}" for route in TABLE if not any(is_of(route.method, route.path, line) for line in lines)
    ]
    assert without == []


def test_every_event_of_the_stream_is_explained() -> None:
    [stream] = [route for route in TABLE if route.path == "/api/sse"]
    explained = text("docs/reference/api.md").partition("\n| event | data |\n|---|---|\n")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", explained, re.MULTILINE) == list(stream.events or ())


def test_every_metric_of_the_service_is_explained() -> None:
    page = text("docs/guides/operation.md")
    registry = Edge(title="", version="").metrics.registry
    for collector in _collectors():
        registry.register(collector)
    names = [f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in registry.collect()]
    assert {"projection_lag_seconds", "sse_clients", "http_requests_total"} <= set(names)
    assert missing([name for name in names if not name.startswith("process_")], page) == []


def test_links_and_pictures_lead_somewhere() -> None:
    found = [
        (page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    local = [(page, link) for page, link in found if "://" not in link]
    assert len(local) >= 10
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in local if not (page.parent / link).exists()] == []


def test_files_that_are_named_are_there() -> None:
    """Paths in code spans that begin with a directory of the checkout."""
    tops = "eventlog|projections|httpkit|terminalkit|gctd|pantry|graphql_fn|scripts|tests|docs|requirements"
    spans = [(page, span) for page in PAGES for span in re.findall(r"`([^`\s]+)`", page.read_text(encoding="utf-8"))]
    named = [(page, span) for page, span in spans if re.fullmatch(rf"({tops})/[\w./-]*", span)]
    assert len(named) >= 30
    assert [f"{page.name}: {span}" for page, span in named if not (ROOT / span).exists()] == []


@pytest.mark.parametrize(
    ("word", "where", "is_there"),
    [
        ("gctd task", "`gctd task list`", True),
        ("GET /api/repos", "`GET /api/repos/{id}`", False),
        ("GET /api/repos", "`GET /api/repos` lists", True),
        ("GET /", "`GET /livez`", False),
        ("projections streams plan", "projections streams planned", False),
    ],
)
def test_a_name_is_found_as_a_whole_only(word: str, where: str, is_there: bool) -> None:
    assert (missing([word], where) == []) == is_there


async def _no_replay(after: Position, until: int) -> AsyncGenerator[Sequence[Frame], None]:
    del after, until
    nothing: list[Sequence[Frame]] = []
    for frames in nothing:
        yield frames


def _collectors() -> Sequence[Collector]:
    """Return the collectors of a control plane that has just begun."""
    parts: Any = SimpleNamespace(
        connected=True,
        counters=Counters(),
        timings=Timings(),
        writes=WriteHealth(),
        failed=0,
        group=SimpleNamespace(shared=0),
        replay=_no_replay,
        head=_no_replay,
        dispatched=0,
    )
    side = ReadSide(connection=parts, log=parts, store=parts, model=MODEL, frames=parts, max_lag=1)
    return (side.parts, Figures(parts, parts, parts), Outcomes())
