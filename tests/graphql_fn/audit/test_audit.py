"""All functions under two audits: GraphQL over HTTP by the npm package graphql-http, weaknesses by the checks of graphql-cop."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import ROOT
from tests.support.web.graphql import Answer, Gateway, gateway
from tests.support.web.node import install, node

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

AUDIT = Path(__file__).parent
FUNCTIONS = ["graphql", "pantry", "tracker"]
functions = pytest.mark.parametrize("function", FUNCTIONS)


def tables(directory: Path) -> dict[str, str]:
    """Settings with which all functions are served. No audit reads a table, so the databases need not exist."""
    names = {"GRAPHQL_PANTRY_DATABASE": "pantry", "GRAPHQL_TRACKER_DATABASE": "tracker"}
    return {setting: f"sqlite:{directory / name}.db" for setting, name in names.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def complete(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """A gateway with all functions and its defaults."""
    directory = tmp_path_factory.mktemp("complete")
    async with gateway(directory, **tables(directory)) as running:
        yield running


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the script that audits, with its packages."""
    directory = tmp_path_factory.mktemp("audit") / "audit"
    shutil.copytree(AUDIT, directory, ignore=shutil.ignore_patterns("node_modules"))
    install(directory)
    return directory


@functions
@pytest.mark.long
async def test_every_audit_of_graphql_http_passes(complete: Gateway, script: Path, function: str) -> None:
    address = f"{complete.url}/function/{function}"
    results = json.loads(await asyncio.to_thread(node, ["audit.js", address], script))
    assert [result for result in results if result["status"] != "ok"] == []
    assert len(results) == 61


# The checks of graphql-cop. Its releases are not in the index of Python packages, so its questions are asked here.


def _data(answer: Answer, name: str) -> Any:
    """A member of the data of a result, if there is one."""
    return (answer.body.get("data") or {}).get(name) if isinstance(answer.body, dict) else None


def _errors(answer: Answer) -> list[Any]:
    return answer.body.get("errors", []) if isinstance(answer.body, dict) else []


_CIRCLES = "type { fields { " * 4 + "type { name }" + " } }" * 4
QUERIES: dict[str, tuple[str, Callable[[Answer], Any]]] = {
    "Field Suggestions": ("{ __schema { directive } }", lambda answer: "Did you mean" in str(_errors(answer)[:1])),
    "Introspection": ("{ __schema { types { name fields { name } } } }", lambda answer: _data(answer, "__schema")),
    "Alias Overloading": (
        "{" + "".join(f"alias{number}: __typename\n" for number in range(101)) + "}",
        lambda answer: _data(answer, "alias100"),
    ),
    "Field Duplication": ("{" + "__typename\n" * 500 + "}", lambda answer: _data(answer, "__typename")),
    "Directive Overloading": ("{ __typename " + "@aa" * 10 + " }", lambda answer: len(_errors(answer)) >= 10),
    "Introspection-based Circular Query": (
        f"{{ __schema {{ types {{ fields {{ {_CIRCLES} }} }} }} }}",
        lambda answer: _data(answer, "__schema"),
    ),
    "Trace Mode": ("{ __typename }", lambda answer: "tracing" in str(answer.body).lower()),
    "Unhandled Errors Detection": ("qwerty cop { abc }", lambda answer: "exception" in str(answer.body).lower()),
}
"""The title of a finding: a query, and whether its answer is the finding."""
MEANT = {"Field Suggestions", "Introspection", "GET Method Query Support"}


async def findings(served: Gateway, function: str) -> set[str]:
    """The titles of the findings on a function."""
    path = f"/function/{function}"
    found = set()
    for title, (query, is_finding) in QUERIES.items():
        answer = await served.ask("POST", path, json={"query": query})
        assert answer.status in {200, 400}
        if is_finding(answer):
            found.add(title)
    page = await served.ask("GET", path, headers={"Accept": "text/html"})
    assert page.status == 200
    if any(name in page.body for name in ("graphiql.min.css", "GraphQL Playground", "GraphiQL", "graphql-playground")):
        found.add("GraphQL IDE")
    others = {
        "Array-based Query Batching": served.ask("POST", path, json=[{"query": "{ __typename }"}] * 10),
        "POST based url-encoded query": served.ask("POST", path, data={"query": "{ __typename }"}),
        "GET Method Query Support": served.ask("GET", path, params={"query": "{ __typename }"}),
        "Mutation is allowed over GET": served.ask("GET", path, params={"query": "mutation { __typename }"}),
    }
    for title, asked in others.items():
        answer = await asked
        if isinstance(answer.body, list) or _data(answer, "__typename"):
            found.add(title)
    return found


@functions
async def test_graphql_cop_finds_only_deliberate_choices_of_the_guide(complete: Gateway, function: str) -> None:
    assert await findings(complete, function) == MEANT
    guide = (ROOT / "docs" / "guides" / "graphql.md").read_text(encoding="utf-8")
    listed = [
        line.split("|")[1].strip() for line in guide.partition("## Audits")[2].partition("\n## ")[0].splitlines() if "|" in line
    ]
    assert set(listed) - {"finding", "---"} == MEANT


async def test_a_closed_schema_leaves_one_finding(tmp_path: Path) -> None:
    async with gateway(tmp_path, GRAPHQL_INTROSPECTION="false", **tables(tmp_path)) as closed:
        assert [await findings(closed, function) for function in FUNCTIONS] == [{"GET Method Query Support"}] * 3


@functions
async def test_a_query_of_a_page_of_another_origin_is_refused(complete: Gateway, function: str) -> None:
    """The weakness behind the finding about GET: a page that has the browser of another person ask."""
    elsewhere = {"Origin": "https://other.example", "Sec-Fetch-Site": "cross-site"}
    path = f"/function/{function}"
    for answer in (
        await complete.ask("GET", path, params={"query": "{ __typename }"}, headers=elsewhere),
        await complete.ask("POST", path, data={"query": "{ __typename }"}, headers=elsewhere),
        await complete.ask("POST", path, data=b"{ __typename }", headers={"Content-Type": "text/plain", **elsewhere}),
    ):
        assert answer.status == 403
