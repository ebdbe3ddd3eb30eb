"""The API's own description, on a running system that has done some work: it is sound, and the service keeps to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.tracker.go_repo import make
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.web.contract import schemathesis

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

FILES = {"go.mod": "module example.com/sums\n\ngo 1.21\n", "sums.go": "package sums\n\nfunc Add(a, b int) int { return a + b }\n"}
ANALYSES = {
    "first": MadeUp(commit_sha="1" * 40, functions={"sums.go:Add": 2.0}),
    "second": MadeUp(commit_sha="2" * 40, functions={"sums.go:Add": 40.0, "sums.go:Sums.Sub": 1.0}, flags=("-short",)),
}
ALSO = {
    "POST /api/hooks/github": (403,),
    "POST /api/hooks/gitlab": (403,),
    "POST /api/tasks/{id}/cancel": (409,),
    "POST /api/tasks/{id}/retry": (409,),
    "GET /api/tasks/{id}/profile": (404,),
    "GET /api/tasks/{id}/attempts/{attempt}/log": (404,),
    "GET /api/log/state": (404,),
    "POST /api/repos/{id}/gate": (404,),
    "POST /api/session": (401,),
    "POST /api/repos/{id}/coverage": (400,),
}
"""Further answers to sound requests: completed work is not cancelled; made-up work has neither profile nor log nor report."""
CONFIGURATION = """
[[operations]]
include-path-regex = "^/api/tasks/[^/]+/(result|profile|attempts|export)$"
parameters = {{ "path.id" = "{task}" }}

[[operations]]
include-path-regex = "^/api/repos/[{{]id[}}](|/history|/diff|/gate|/gate[.]md|/badge[.]svg|/functions/[{{]key[}}](|/history))$"
include-method = "GET"
parameters = {{ "path.id" = "{analysis}" }}

[[operations]]
include-path = "/api/repos/registered"
include-method = "DELETE"
parameters = {{ "query.url" = "https://example.com/not/registered" }}
"""


@attrs.frozen
class Busy:
    """A system with a repository and a completed task."""

    system: TrackerSystem
    repo: str
    task: str
    analysis: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def busy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Busy]:
    """Two analyses of a project, so that there is something to compare."""
    directory = tmp_path_factory.mktemp("description")
    repo = make(directory / "source", files=FILES)
    async with tracker_system(directory) as system:
        await system.start_worker(1, FAKE_ANALYSES=str(directory / "analyses"))
        await system.register(repo.url)
        completed: dict[str, Any] = {}
        for ref, made_up in ANALYSES.items():
            repo.git("branch", ref)
            made_up.write(directory / "analyses", ref)
            (task,) = await system.post("/api/repos/analyze", {"repo_url": repo.url, "ref": ref})
            completed = await system.until_task(task["id"], "completed")
        yield Busy(system, repo.url, completed["id"], completed["analysis_id"])


async def test_the_document_is_sound_and_each_operation_has_a_summary_and_its_errors(busy: Busy) -> None:
    document = await busy.system.get("/api/openapi.json")
    OpenAPIV31SpecValidator(document).validate()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["tags"], where
            assert {"400", "500", "503"} <= operation["responses"].keys(), where
            problem = operation["responses"]["503"]["content"]["application/problem+json"]
            assert problem["schema"] == {"$ref": "#/components/schemas/Problem"}, where


def declared(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each operation, in the order GET, POST, DELETE; streams, which never end, are left out."""
    found = [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if "text/event-stream" not in operation["responses"].get("200", {}).get("content", {})
    ]
    last = ("DELETE", "/api/repos/registered")  # removes the repository of the other requests
    yield from sorted(found, key=lambda one: (one[:2] == last, ("GET", "POST", "DELETE").index(one[0])))


def request(busy: Busy, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    """A sound request for an operation, of the examples that the document has: path, parameters, body."""
    ids = {"/api/tasks": busy.task, "/api/workers": "worker-1", "/api/repos": busy.analysis}
    query: dict[str, Any] = {}
    for parameter in operation.get("parameters", ()):
        schema, name = parameter["schema"], parameter["name"]
        if name == "id":
            path = path.replace("{id}", ids["/".join(path.split("/")[:3])])
        elif parameter["required"]:
            examples = {"repository-url": [busy.repo]}.get(schema.get("format"), schema.get("examples"))
            assert examples, f"{name} of {path} has no example"
            where = f"{{{name}}}"
            path, query = (path.replace(where, str(examples[0])), query) if where in path else (path, query | {name: examples[0]})
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return {"path": path, "params": query}
    members = content["schema"]["properties"]
    body = {name: member["examples"][0] for name, member in members.items() if "examples" in member}
    body |= {name: busy.repo for name, member in members.items() if member.get("format") == "repository-url"}
    return {"path": path, "params": query, "json": body}


async def test_each_operation_answers_as_the_document_says(busy: Busy) -> None:
    document = await busy.system.get("/api/openapi.json")
    asked = 0
    for method, path, operation in declared(document):
        made = request(busy, path, operation)
        async with busy.system.http.request(method, busy.system.url + made.pop("path"), **made) as answer:
            where = f"{method} {answer.url}: {answer.status} {(await answer.text())[:2000]}"
            assert answer.status < 300 or answer.status in ALSO.get(f"{method} {path}", ()), where
            described = operation["responses"].get(str(answer.status))
            assert described is not None, where
            for name, header in described.get("headers", {}).items():
                assert name in answer.headers or not header.get("required"), where
            if "content" in described:
                schema = described["content"][answer.content_type].get("schema", {})
                if "json" in answer.content_type:
                    found = list(
                        OAS31Validator(schema | {"components": document["components"]}).iter_errors(
                            await answer.json(content_type=None)
                        )
                    )
                    assert found == [], where
            else:
                assert await answer.read() == b"", where
        asked += 1
    assert asked >= 20


@pytest.mark.parametrize("fuzzing", [pytest.param(False, id="limits"), pytest.param(True, id="fuzzing", marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
async def test_schemathesis_finds_nothing(busy: Busy, tmp_path: Path, fuzzing: bool, seed: int) -> None:
    """All checks, on sound and unsound requests. Event streams, which do not end, are left out."""
    await schemathesis(
        f"{busy.system.url}/api/openapi.json",
        tmp_path,
        seed=seed if fuzzing else None,
        hooks="tests.support.tracker.formats",
        streams="/sse$",
        configuration=CONFIGURATION.format(task=busy.task, analysis=busy.analysis),
        known={"KNOWN_REPOSITORY": busy.repo},
        without="ensure_resource_availability",  # it takes the id of a new repository for the id of its analyses
    )
    assert (await busy.system.status("/readyz"))[0] == 200
