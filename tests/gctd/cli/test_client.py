"""The client of the API: its requests, its results and its errors."""

from __future__ import annotations

import asyncio

import pytest

from gctd.client.api import Client
from terminalkit.client.transport import (
    ClientError,
    Conflicting,
    NotAllowed,
    NotFound,
    OtherService,
    Rejected,
    TimedOut,
    Unavailable,
)
from terminalkit.failure import ExitCode
from tests.support.tracker.fake_api import REPO_URL, FakeApi, Reply, analysis_document, problem, repo_document, task_document


@pytest.mark.real
async def test_values_are_read_from_answers_and_keep_the_whole_document() -> None:
    async with FakeApi() as api, Client(api.url) as client:
        api.repos[REPO_URL] = repo_document(projects=[".", "cmd/tool"], Extra=1)
        api.tasks["task-1"] = task_document(1, "completed", analysis_id="aa")
        api.results["task-1"] = analysis_document()
        repo = await client.repo(REPO_URL)
        assert [project.name for project in repo.projects] == [".", "cmd/tool"]
        assert repo.document["Extra"] == 1
        task = await client.task("task-1")
        assert (task.completed, task.ended, task.updated_at.year) == (True, True, 2026)
        analysis = await client.result("task-1", entries=5)
        assert [(entry.function, entry.coverage) for entry in analysis.entries] == [("Parse", None), ("Get", 66.7)]
        assert api.requests[-1].query == {"entries": "5"}
        [worker] = await client.workers()
        assert (worker.memory, worker.tasks) == (256 * 1024**2, ["task-1"])


@pytest.mark.real
async def test_only_given_options_are_sent() -> None:
    async with FakeApi() as api, Client(api.url) as client:
        await client.analyze(REPO_URL)
        await client.analyze(REPO_URL, project="cmd/tool", ref="v1", engine="native-compat")
        bodies = [request.body for request in api.seen("POST", "/api/repos/analyze")]
        assert bodies == [
            {"repo_url": REPO_URL},
            {"repo_url": REPO_URL, "project": "cmd/tool", "ref": "v1", "engine": "native-compat"},
        ]


@pytest.mark.real
async def test_values_with_special_characters_arrive_as_they_are() -> None:
    async with FakeApi() as api, Client(api.url) as client:
        url = "https://h/a b?c=d&e=f#+%2F/é"
        with pytest.raises(NotFound):
            await client.repo(url)
        assert api.requests[-1].query == {"url": url}
        with pytest.raises(NotFound):
            await client.task("a/b?c#d%2F..")
        assert api.requests[-1].path == "/api/tasks/a/b?c#d%2F.."
        assert api.requests[-1].query == {}
        for id_ in ("", ".", ".."):
            with pytest.raises(Rejected):
                await client.task(id_)


@pytest.mark.real
@pytest.mark.parametrize(("limit", "found", "pages"), [(None, 7, 4), (5, 5, 3), (7, 7, 4), (1, 1, 1), (100, 7, 4)])
async def test_lists_are_read_page_by_page(limit: int | None, found: int, pages: int) -> None:
    async with FakeApi() as api, Client(api.url) as client:
        api.page = 2
        api.tasks = {f"task-{number}": task_document(number) for number in range(7)}
        tasks = await client.tasks(limit=limit)
        assert [task.id for task in tasks] == [f"task-{number}" for number in range(found)]
        assert len(api.requests) == pages


@pytest.mark.real
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, Rejected, ExitCode.USAGE),
        (401, NotAllowed, ExitCode.NOT_ALLOWED),
        (403, NotAllowed, ExitCode.NOT_ALLOWED),
        (404, NotFound, ExitCode.NOT_FOUND),
        (409, Conflicting, ExitCode.CONFLICT),
        (412, Conflicting, ExitCode.CONFLICT),
        (422, Rejected, ExitCode.USAGE),
        (429, Unavailable, ExitCode.UNAVAILABLE),
        (500, ClientError, ExitCode.FAILURE),
        (502, Unavailable, ExitCode.UNAVAILABLE),
        (503, Unavailable, ExitCode.UNAVAILABLE),
        (504, Unavailable, ExitCode.UNAVAILABLE),
    ],
)
async def test_each_status_is_an_error_of_its_kind_in_the_server_s_words(
    status: int, kind: type[ClientError], code: ExitCode
) -> None:
    async with FakeApi() as api, Client(api.url) as client:
        errors = [{"pointer": "#/repo_url", "detail": "is no address"}]
        api.always["GET", "/api/workers"] = problem(status, "it cannot be done", errors=errors)
        with pytest.raises(ClientError) as caught:
            await client.workers()
        assert (type(caught.value), caught.value.exit_code, caught.value.status) == (kind, code, status)
        assert str(caught.value).endswith("it cannot be done; repo_url: is no address")


@pytest.mark.real
@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, b"<html>"),
        Reply(200, {"a": 1}),
        Reply(200, [1]),
        Reply(200, [{"id": 1}]),
        Reply(200, b"[\xff]"),
        Reply(204),
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_says_so(reply: Reply) -> None:
    async with FakeApi() as api, Client(api.url) as client:
        api.always["GET", "/api/workers"] = reply
        with pytest.raises(ClientError, match="the server"):
            await client.workers()


@pytest.mark.real
async def test_an_error_that_is_no_problem_document_is_named_by_its_status() -> None:
    async with FakeApi() as api, Client(api.url) as client:
        api.always["GET", "/api/workers"] = Reply(502, b"<html>proxy</html>", {"Content-Type": "text/html"})
        with pytest.raises(Unavailable, match="502 Bad Gateway"):
            await client.workers()


@pytest.mark.real
async def test_a_redirect_is_not_followed_with_the_token() -> None:
    async with FakeApi() as api, FakeApi() as other, Client(api.url, token="secret") as client:
        api.always["GET", "/api/workers"] = Reply(307, None, {"Location": f"{other.url}/api/workers"})
        with pytest.raises(ClientError, match="redirect"):
            await client.workers()
        assert other.requests == []


@pytest.mark.real
async def test_the_token_is_sent() -> None:
    async with FakeApi() as api:
        api.token = "secret"
        async with Client(api.url, token="secret") as client:
            await client.workers()
        async with Client(api.url, token="wrong") as client:
            with pytest.raises(NotAllowed, match="token"):
                await client.workers()


@pytest.mark.real
async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with FakeApi() as api:
        url = api.url
    async with Client(url) as client:
        with pytest.raises(Unavailable, match="cannot reach") as caught:
            await client.workers()
    assert not caught.value.sent


@pytest.mark.real
async def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    async with FakeApi() as api, Client(api.url, timeout=0.2) as client:
        api.always["GET", "/api/workers"] = Reply(200, [], delay=30)
        async with asyncio.timeout(60):
            with pytest.raises(TimedOut):
                await client.workers()


@pytest.mark.real
@pytest.mark.parametrize("first", [Reply(cut=True), problem(503, "unknown"), Reply(503, None, {"Retry-After": "0"})])
async def test_a_command_whose_fate_is_unknown_is_repeated_once_under_the_same_key(first: Reply) -> None:
    async with FakeApi() as api, Client(api.url) as client:
        path = "/api/repos/analyze"
        api.replies["POST", path] = [first]
        await client.analyze(REPO_URL)
        keys = [request.headers["Idempotency-Key"] for request in api.seen("POST", path)]
        assert len(keys) == 2
        assert len(set(keys)) == 1
        await client.analyze(REPO_URL)
        assert api.requests[-1].headers["Idempotency-Key"] != keys[0]
        api.always["POST", path] = first
        with pytest.raises(Unavailable):
            await client.analyze(REPO_URL)
        assert len(api.seen("POST", path)) == 5


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8080", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://u:p@h", "http://h?a=b", "http://h#f"],
)
def test_an_address_that_cannot_be_one_is_rejected(url: str) -> None:
    with pytest.raises(Rejected, match=r"address of (a|the) server"):
        Client(url)


@pytest.mark.real
async def test_an_address_may_have_a_path() -> None:
    async with FakeApi() as api, Client(f"{api.url}/behind/a/proxy/") as client:
        with pytest.raises(NotFound):
            await client.task("task-1")
        assert api.requests[-1].path == "/behind/a/proxy/api/tasks/task-1"


@pytest.mark.real
@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"info": {"title": "pantry"}}, "is the address of pantry, not of gctd"),
        (None, "does not answer as gctd does: the server answered 404"),
    ],
)
async def test_the_address_of_another_service_is_named(description: object, expected: str) -> None:
    async with FakeApi() as api, Client(api.url) as client:
        api.always["GET", "/api/repos/status"] = Reply(404, ["not a problem document"])
        if description is not None:
            api.always["GET", "/api/openapi.json"] = Reply(200, description)
        with pytest.raises(NotFound) as missing:
            await client.repo(REPO_URL)
        with pytest.raises(OtherService, match=expected) as other:
            await client.check_service(missing.value)
        assert (other.value.exit_code, other.value.hint) == (ExitCode.USAGE, "set the right address with --url")


@pytest.mark.real
async def test_a_404_of_the_right_service_has_no_other_cause() -> None:
    async with FakeApi() as api, Client(api.url) as client:
        with pytest.raises(NotFound) as missing:
            await client.repo(REPO_URL)
        await client.check_service(missing.value)
        api.always["GET", "/api/openapi.json"] = Reply(200, {"info": {"title": "gctd"}})
        await client.check_service(missing.value)
