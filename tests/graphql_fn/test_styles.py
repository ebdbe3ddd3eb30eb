"""However the function is called, a query has the same result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema, GraphQLString

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.handlers import callback, event, platform
from tests.graphql_fn.queries import GREETING, TABLE
from tests.support import ROOT
from tests.support.programs import warm
from tests.support.programs.documents import misfits
from tests.support.web.graphql import Gateway

queries = pytest.mark.parametrize("query", TABLE)


class Recorder:
    """The context of the event style: keeps how it was answered."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.succeeded: Any = None
        self.failed: Any = None

    def status(self, code: int, /) -> Recorder:
        self.code = int(code)
        return self

    def succeed(self, value: Any, /) -> None:
        self.succeeded = value

    def fail(self, value: Any, /) -> None:
        self.failed = value


def call_back(handle: Any, context: Any) -> tuple[Exception | None, Any]:
    """Return the arguments of the callback, which is called once."""
    calls: list[tuple[Exception | None, Any]] = []
    handle(context, lambda failure, response: calls.append((failure, response)))
    [found] = calls
    return found


def happened(body: Any) -> Any:
    return SimpleNamespace(body=body, headers={}, method="POST", query={}, path="/")


def run(*arguments: str, text: str | None = None, **added: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **added}
    return warm.run("graphql_fn", *arguments, environment=environment, text=text)


@queries
def test_the_callback_style_gives_the_result(query: str) -> None:
    assert call_back(callback.handle, query) == (None, TABLE[query])
    assert call_back(callback.handle, query.encode()) == (None, TABLE[query])


@queries
@pytest.mark.parametrize("form", ["text", "bytes", "object"])
def test_the_event_style_succeeds_with_the_result(query: str, form: str) -> None:
    context = Recorder()
    event.handle(happened({"text": query, "bytes": query.encode(), "object": {"query": query}}[form]), context)
    assert (context.code, context.succeeded, context.failed) == (200, TABLE[query], None)


@queries
def test_the_platforms_form_gives_status_headers_and_the_result_as_text(query: str) -> None:
    found = platform.handle(happened(query.encode()), None)
    assert (found["statusCode"], found["headers"]["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert json.loads(found["body"]) == TABLE[query]


@pytest.mark.real
@queries
@pytest.mark.asyncio(loop_scope="module")
async def test_the_gateway_answers_with_the_result(served: Gateway, query: str) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/graphql", None):
        answer = await served.post(query, content_type)
        assert (answer.status, answer.body) == (200, TABLE[query])
    assert (await served.post({"query": query}, "application/json")).body == TABLE[query]
    if query:
        assert (await served.ask("GET", "/function/graphql", params={"query": query})).body == TABLE[query]


@pytest.mark.real
@pytest.mark.parametrize("query", ["{ hello }", "{hell}", "", "# größe\n{ hello }"])
def test_the_command_line_prints_the_result_and_fails_where_it_has_errors(query: str) -> None:
    piped = run(text=query)
    assert (json.loads(piped.stdout), piped.returncode) == (TABLE[query], "errors" in TABLE[query])
    assert misfits("graphql-fn", ("query", "--json"), piped.stdout) == []
    assert (run("query", query).stdout if query else piped.stdout) == piped.stdout
    if query.startswith("{"):
        assert run(query).stdout == piped.stdout


@pytest.mark.real
@pytest.mark.parametrize("query", ["{ hello }", "{hell}", "mutation { x }"])
def test_the_classic_watchdog_keeps_the_result(query: str) -> None:
    """It drops the output of a program that fails, and gives the method and headers in the environment."""
    for body, content_type in ((query, "text/plain"), (json.dumps({"query": query}), "application/json")):
        done = run(text=body, Http_Method="POST", Http_Content_Type=content_type)
        assert (done.returncode, json.loads(done.stdout)) == (0, TABLE.get(query) or json.loads(run(text=query).stdout))
    asked = run(text="", Http_Method="GET", Http_Query="query=%7B+hello+%7D")
    assert (asked.returncode, json.loads(asked.stdout)) == (0, TABLE["{ hello }"])
    wrong = run(text='{"query": 1}', Http_Method="POST", Http_Content_Type="application/json")
    assert (wrong.returncode, list(json.loads(wrong.stdout))) == (0, ["errors"])


@pytest.mark.real
def test_the_command_line_takes_variables_and_the_name_of_an_operation() -> None:
    query = "query A { hello } query B($no: Boolean!) { hello @skip(if: $no) }"
    assert json.loads(run(query, "--operation", "B", "--variables", '{"no": true}').stdout) == {"data": {}}
    wrong = run(query, "--operation", "B", "--variables", "{no}")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--variables is not JSON" in wrong.stderr


_PLATFORM = """
import json, sys
from types import SimpleNamespace
from function import handler
import graphql_fn
queries = json.load(sys.stdin)
def ask(query):
    return handler.handle(SimpleNamespace(body=query.encode(), headers={}, method="POST", query={}, path="/"), SimpleNamespace())
print(json.dumps({"where": graphql_fn.__file__, "bodies": {query: ask(query)["body"] for query in queries}}))
"""


@pytest.mark.real
def test_the_folder_for_the_platform_has_all_that_the_function_needs(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    written = run("template", str(folder))
    assert written.returncode == 0, written.stderr
    assert sorted(written.stdout.split()) == sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
    (folder / "graphql").rename(folder / "function")  # as the platform's build calls it
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", _PLATFORM],
        input=json.dumps(list(TABLE)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert Path(found["where"]).is_relative_to(folder)
    assert {query: json.loads(body) for query, body in found["bodies"].items()} == TABLE
    again = run("template", str(folder))
    assert (again.returncode, again.stdout) == (5, "")


@pytest.mark.real
def test_the_folder_names_every_library_that_its_modules_import(tmp_path: Path) -> None:
    run("template", str(tmp_path / "deploy"))
    named = (tmp_path / "deploy" / "graphql" / "requirements.txt").read_text()
    imported = {
        line.split()[1].partition(".")[0]
        for file in (tmp_path / "deploy" / "graphql" / "graphql_fn").rglob("*.py")
        for line in file.read_text().splitlines()
        if line.startswith(("import ", "from "))
    } - sys.stdlib_module_names
    libraries = {"graphql": "graphql-core"}
    assert {libraries.get(name, name) for name in imported - {"graphql_fn"}} == {
        line.partition(">")[0].partition("<")[0] for line in named.split()
    }


class Broken(Exception):
    """The error that the engine raises in a test."""


def broken() -> Evaluator:
    def fail(_: GraphQLRequest) -> None:
        raise Broken("secret")

    schema = GraphQLSchema(GraphQLObjectType("Query", {"hello": GraphQLField(GraphQLString)}))
    return Evaluator(Function(name="broken", schema=schema, context=fail))


def test_an_exception_in_the_engine_is_the_error_of_the_callback() -> None:
    failure, response = call_back(callback.handler(broken()), "{ hello }")
    assert isinstance(failure, Broken)
    assert response is None


def test_an_exception_in_the_engine_is_a_failure_with_status_500_and_tells_nothing() -> None:
    masked = {"errors": [{"message": "internal server error", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}
    context = Recorder()
    event.handler(broken())(happened("{ hello }"), context)
    assert (context.code, context.succeeded, context.failed) == (500, None, masked)
    found = platform.handler(broken())(happened(b"{ hello }"), None)
    assert (found["statusCode"], json.loads(found["body"])) == (500, masked)


FAILING = """
from types import SimpleNamespace
from graphql import GraphQLField, GraphQLObjectType, GraphQLSchema, GraphQLString
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.handlers import platform

def fail(_):
    address = "a client's " + "secret"
    raise RuntimeError("it failed")

schema = GraphQLSchema(GraphQLObjectType("Query", {"hello": GraphQLField(GraphQLString)}))
handle = platform.handler(Evaluator(Function(name="broken", schema=schema, context=fail)))
handle(SimpleNamespace(body=b"{ hello }", headers={}, method="POST", query={}), None)
"""


@pytest.mark.real
def test_an_exception_in_a_handler_is_one_line_of_json_without_values_of_variables() -> None:
    done = subprocess.run([sys.executable, "-c", FAILING], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    [line] = done.stderr.splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["level"], done.stdout) == ("function failed", "error", "")
    assert "RuntimeError: it failed" in entry["exception"]
    assert "a client's secret" not in line


@pytest.mark.parametrize("body", ['{"query": "{ hello }"}', b"\xff", 7, ["{ hello }"]])
def test_a_request_without_a_query_is_refused_in_words(body: Any) -> None:
    context = Recorder()
    event.handle(happened(body), context)
    assert context.code == 400
    assert context.failed["errors"][0]["message"]
    failure, response = call_back(callback.handle, body)
    assert (response, str(failure) != "") == (None, True)


def test_handlers_may_be_called_from_many_threads_at_once() -> None:
    found: list[Mapping[str, Any]] = []

    def ask() -> None:
        found.extend(call_back(callback.handle, "{ hello }")[1] for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"data": {"hello": GREETING}}] * 160
