"""Personal tokens and sessions of the tracker and the pantry: scope, revocation, the caller in events, secrets nowhere."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio

from eventlog.embedded.nats import free_port
from tests.support.pace import within
from tests.support.pantry.system import pantry_system
from tests.support.programs import warm
from tests.support.tracker.system import FAKE_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until
from tests.support.web.graphql import gateway

pytestmark = pytest.mark.real

REPO = "https://example.com/owner/name"
ASK = {"GCTD_REQUIRE_TOKENS": "true"}


@attrs.frozen
class Made:
    """A token that the command line created."""

    id: str
    text: str

    @property
    def header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.text}"}


async def program(module: str, environment: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    """Exit code and output of a program."""
    done = await asyncio.to_thread(warm.run, module, *arguments, environment=environment)
    return done.returncode, done.stdout, done.stderr


async def create(environment: Mapping[str, str], name: str, scope: str, *more: str, module: str = "gctd") -> Made:
    """A token, created by the command line."""
    code, out, err = await program(module, environment, "token", "create", name, "--scope", scope, "--json", *more)
    assert code == 0, err
    document = json.loads(out)
    return Made(document["id"], document["token"])


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[TrackerSystem]:
    async with tracker_system(tmp_path, **ASK) as system:
        yield system


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TrackerSystem]:
    """A system for tests that count neither its tokens nor its events."""
    async with tracker_system(tmp_path_factory.mktemp("shared"), **ASK) as system:
        yield system


async def has_event(system: TrackerSystem, subject: str, type_: str) -> bool:
    """Whether an aggregate has an event of a type."""
    return any(event.type == type_ for event in await system.events(subject))


@asynccontextmanager
async def second(system: TrackerSystem) -> AsyncIterator[str]:
    """A second process of the service, with other tables; its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    database = f"sqlite:{system.directory / 'second.db'}"
    started = await system.start("second", "gctd", "serve", GCTD_PORT=str(port), GCTD_DATABASE_URL=database)

    async def ready() -> bool:
        assert started.process.returncode is None, started.log.read_text()[-2000:]
        try:
            async with system.http.get(f"{url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    await wait_until(ready, timeout=60, every=0.05)
    yield url
    await started.stop()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_scope_opens_its_routes_and_no_others(shared: TrackerSystem) -> None:
    made = {scope: await create(shared.environment, f"its-{scope}", scope) for scope in ("read", "write", "admin")}
    asked = {
        "read": ("/api/tasks", "GET", None),
        "write": ("/api/repos", "POST", {"repo_url": REPO}),
        "admin": ("/api/workers/nobody/pause", "POST", None),
    }
    for mine, token in made.items():
        for needed, (path, method, document) in asked.items():
            status, answer = await shared.status(path, method, json=document, headers=token.header)
            covered = list(made).index(mine) >= list(made).index(needed)
            assert (status == 403) == (not covered), (mine, needed, status, answer)
            if not covered:
                assert answer["type"] == "urn:problem:not-permitted"
                assert f"this needs {needed}" in answer["message"]
    assert (await shared.status("/api/tasks"))[0] == 401
    forged = made["admin"].text[:-1] + ("0" if made["admin"].text[-1] != "0" else "1")
    assert (await shared.status("/api/tasks", headers={"Authorization": f"Bearer {forged}"}))[0] == 401
    assert (await shared.status("/readyz"))[0] == 200
    document = (await shared.status("/api/openapi.json", headers=made["read"].header))[1]
    assert document["paths"]["/api/workers/{id}/pause"]["post"]["security"] == [{"token": ["admin"]}, {"session": ["admin"]}]


async def test_the_caller_is_in_the_event_and_in_the_log_of_the_api(system: TrackerSystem) -> None:
    anna = await create(system.environment, "anna", "write")
    async with system.http.post(f"{system.url}/api/repos", json={"repo_url": REPO}, headers=anna.header) as answer:
        assert answer.status == 202
    await system.start("worker", *FAKE_WORKER, GCTD_WORKER_ID="worker-1")
    await wait_until(lambda: has_event(system, "gctd.worker.worker-1", "WorkerStarted"), timeout=30, every=0.05)
    status, page = await system.status("/api/log?limit=1000", headers=anna.header)
    assert status == 200
    actors = {event["type"]: event["actor"] for event in reversed(page["events"])}
    assert actors["RepoRegistered"] == f"token:{anna.id}:anna"
    assert actors["WorkerStarted"] == "worker:worker-1"
    assert actors["TokenIssued"].startswith("operator:")
    [registered] = [event for event in await system.events() if event.type == "RepoRegistered"]
    assert registered.context.actor == f"token:{anna.id}:anna"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_revoked_token_is_refused_within_a_second_by_every_process_and_its_streams_end(shared: TrackerSystem) -> None:
    token = await create(shared.environment, "phone", "read")
    async with second(shared) as other:
        for url in (shared.url, other):
            async with shared.http.get(f"{url}/api/tasks", headers=token.header) as answer:
                assert answer.status == 200, url
        streams = [
            await shared.http.get(f"{url}/api/sse", headers=token.header, timeout=aiohttp.ClientTimeout(total=None))
            for url in (shared.url, other)
        ]
        assert [stream.status for stream in streams] == [200, 200]
        code, _, err = await program("gctd", shared.environment, "token", "revoke", token.id)
        assert (code, "phone" in err) == (0, True), err
        with within(1.5):
            for stream in streams:
                await until_its_end(stream)
            for url in (shared.url, other):
                async with shared.http.get(f"{url}/api/tasks", headers=token.header) as answer:
                    assert answer.status == 401, url


async def until_its_end(stream: aiohttp.ClientResponse) -> None:
    """Read a stream until it ends, in order or not."""
    with suppress(aiohttp.ClientError):
        while await stream.content.readany():
            pass
    stream.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_session_is_ended_by_sign_out_and_by_revocation_on_every_process(shared: TrackerSystem) -> None:
    token = await create(shared.environment, "browser", "write")
    async with second(shared) as other:

        async def sign_in() -> dict[str, str]:
            async with shared.http.post(f"{shared.url}/api/session", headers=token.header) as answer:
                cookie = answer.headers["Set-Cookie"]
                assert answer.status == 204
            assert "; HttpOnly; SameSite=Strict" in cookie
            assert cookie.startswith("gctd_session=")
            assert token.text.split("_")[2] not in cookie
            return {"Cookie": cookie.partition(";")[0]}

        async def statuses(headers: Mapping[str, str]) -> list[int]:
            found = []
            for url in (shared.url, other):
                async with shared.http.get(f"{url}/api/tasks", headers=headers) as answer:
                    found.append(answer.status)
            return found

        first, kept = await sign_in(), await sign_in()
        assert await statuses(first) == await statuses(kept) == [200, 200]
        async with shared.http.get(f"{other}/api/session", headers=first) as answer:
            assert await answer.json() == {
                "actor": f"token:{token.id}:browser",
                "scope": "write",
                "name": "browser",
                "session": True,
            }
        async with shared.http.post(f"{other}/api/session", headers=first) as answer:
            assert answer.status == 401, "a session buys no other session"
        async with shared.http.delete(f"{other}/api/session", headers=first) as answer:
            assert (answer.status, "Max-Age=0" in answer.headers["Set-Cookie"]) == (204, True)
        await until_refused(lambda: statuses(first))
        assert await statuses(kept) == [200, 200]
        assert (await program("gctd", shared.environment, "token", "revoke", token.id))[0] == 0
        await until_refused(lambda: statuses(kept))


async def until_refused(statuses: Callable[[], Awaitable[list[int]]]) -> None:
    """Wait until every process refuses, within the promised time."""

    async def refused() -> bool:
        return await statuses() == [401, 401]

    with within(1.0):
        await wait_until(refused, timeout=30, every=0.02)


async def test_no_secret_is_in_the_log_the_tables_the_stores_or_the_output(system: TrackerSystem) -> None:
    token = await create(system.environment, "ci", "admin")
    async with system.http.post(f"{system.url}/api/session", headers=token.header) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    async with system.http.get(f"{system.url}/api/tasks", headers=token.header) as answer:
        assert answer.status == 200

    await wait_until(lambda: has_event(system, f"gctd.token.{token.id}", "TokenUsed"), timeout=10, every=0.05)
    secrets = [token.text.split("_")[2][:43].encode(), cookie.split(".")[2].encode()]
    digests = json.loads((await program("gctd", system.environment, "token", "list", "--json"))[1])
    assert [(one["name"], one["state"], one["used_at"] is not None, one["sessions"]) for one in digests] == [
        ("ci", "valid", True, 1)
    ]
    assert system.serve is not None
    await system.serve.stop()
    files = [file for file in system.directory.rglob("*") if file.is_file()]
    assert any(token.id.encode() in file.read_bytes() for file in files), "the search finds what is there"
    for file in files:
        assert not any(secret in file.read_bytes() for secret in secrets), file


async def test_while_the_broker_is_away_the_tables_know_the_tokens(system: TrackerSystem) -> None:
    token = await create(system.environment, "reader", "read")
    revoked = await create(system.environment, "gone", "read")
    assert (await program("gctd", system.environment, "token", "revoke", revoked.id))[0] == 0
    await wait_until(lambda: ok(system, token), timeout=10, every=0.05)
    await system.nats.stop()
    await asyncio.sleep(0.5)  # longer than an answer is remembered
    for made, status in ((token, 200), (revoked, 401)):
        assert (await system.status("/api/tasks", headers=made.header))[0] == status
    await system.nats.start()


async def ok(system: TrackerSystem, token: Made) -> bool:
    """Whether the tables have all that is in the log."""
    async with system.log() as log:
        last = (await log.head()).last
    return (await system.status(f"/api/tasks?min_seq={last}", headers=token.header))[0] == 200


async def test_the_setting_auth_token_goes_on_opening_everything_and_a_personal_token_in_it_does_not(tmp_path: Path) -> None:
    async with tracker_system(tmp_path, GCTD_AUTH_TOKEN="t0p-secret") as system:
        shared = {"Authorization": "Bearer t0p-secret"}
        assert (await system.status("/api/tasks"))[0] == 401
        assert (await system.status("/api/workers/nobody/pause", "POST", headers=shared))[0] == 404
        async with system.http.post(f"{system.url}/api/session", headers=shared) as answer:
            cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        assert (await system.status("/api/tasks", headers=cookie))[0] == 200
        assert json.loads((await program("gctd", system.environment, "token", "list", "--json"))[1]) == []
        code, _, err = await program("gctd", system.environment, "token", "revoke", "auth_token")
        assert (code != 0, "is revoked" in err, "setting" in err) == (True, False, True), "it opens everything as before"
        assert (await system.status("/api/session", "POST", headers=shared))[0] == 204
        assert (await system.status("/api/session", "DELETE", headers=cookie))[0] == 204
        await asyncio.sleep(0.5)
        assert (await system.status("/api/tasks", headers=cookie))[0] == 401
        token = await create(system.environment, "mine", "read")
        assert system.serve is not None
        await system.serve.stop()
        again = await system.start("again", "gctd", "serve", GCTD_AUTH_TOKEN=token.text, GCTD_REQUIRE_TOKENS="true")
        system.serve = again
        await system.ready()
        assert (await system.status("/api/repos", "POST", json={"repo_url": REPO}, headers=token.header))[0] == 403
        assert (await system.status("/api/tasks", headers=shared))[0] == 401


@pytest.mark.parametrize("module", ["gctd", "pantry"])
async def test_a_service_that_others_reach_starts_with_a_token_or_with_insecure_only(module: str, tmp_path: Path) -> None:
    host = {"gctd": "GCTD_HOST", "pantry": "PANTRY_SERVER_HOST"}[module]
    opened: Any = tracker_system(tmp_path) if module == "gctd" else pantry_system(tmp_path)
    async with opened as running:
        own = running.environment if module == "gctd" else running.servers[0].environment
        environment = {**own, host: "0.0.0.0", host.replace("HOST", "PORT"): "0"}
        environment |= {f"{module.upper()}_DATABASE_URL": f"sqlite:{tmp_path / 'other.db'}"}
        code, out, err = await program(module, environment, "serve")
        assert (code, out) == (2, "")
        assert f"{module} token create" in err
        assert "0.0.0.0" in err
        assert await starts(module, environment, "--insecure")
        await create(environment, "ops", "admin", module=module)
        assert await starts(module, environment)


async def starts(module: str, environment: Mapping[str, str], *arguments: str) -> bool:
    """Whether `serve` comes to answer requests."""
    (output, end), nothing = os.pipe(), os.open(os.devnull, os.O_WRONLY)
    process = await warm.fork(module, "serve", *arguments, environment=environment, streams=(None, end, nothing))
    os.close(end)
    os.close(nothing)
    reader, transport = await warm.stream(output)
    line = await reader.readline()
    process.terminate()
    await process.wait()
    transport.close()
    return line.startswith(b"listening on ")


async def test_on_loopback_nothing_is_asked_and_a_token_that_is_given_counts(tmp_path: Path) -> None:
    async with tracker_system(tmp_path) as system:
        assert (await system.get("/api/session"))["actor"] == "local"
        token = await create(system.environment, "reader", "read")
        assert (await system.status("/api/repos", "POST", json={"repo_url": REPO}, headers=token.header))[0] == 403
        assert (await system.status("/api/tasks", headers={"Authorization": "Bearer of-another-service"}))[0] == 200
        assert (await program("gctd", system.environment, "token", "revoke", token.id))[0] == 0
        await asyncio.sleep(0.5)
        assert (await system.status("/api/tasks", headers=token.header))[0] == 401
        assert (await system.status("/api/tasks", headers={"Cookie": "gctd_session=stale"}))[0] == 200


async def test_the_gateway_takes_the_tokens_of_the_service_whose_data_it_shows(tmp_path: Path) -> None:
    apart = tmp_path / "pantry"
    apart.mkdir()
    async with tracker_system(tmp_path, **ASK) as system, pantry_system(apart) as ledger:
        tracker = await create(system.environment, "dashboard", "read")
        pantry = await create(ledger.one.environment, "kitchen", "read", module="pantry")
        settings = {
            "GRAPHQL_REQUIRE_TOKENS": "true",
            "GRAPHQL_TRACKER_DATABASE": f"sqlite:{system.database}",
            "GRAPHQL_PANTRY_DATABASE": f"sqlite:{ledger.one.database}",
        }
        await wait_until(lambda: ok(system, tracker), timeout=10, every=0.05)
        async with gateway(tmp_path, **settings) as served:

            async def status(function: str, token: Made) -> int:
                headers = {**token.header, "Content-Type": "application/json"}
                return (
                    await served.ask("POST", f"/function/{function}", data='{"query":"{__typename}"}', headers=headers)
                ).status

            assert (await served.post("{ hello }")).status == 401
            found = {(name, token.id): await status(name, token) for name in ("tracker", "pantry") for token in (tracker, pantry)}
            assert found == {
                ("tracker", tracker.id): 200,
                ("tracker", pantry.id): 403,
                ("pantry", tracker.id): 403,
                ("pantry", pantry.id): 200,
            }
            assert (await program("gctd", system.environment, "token", "revoke", tracker.id))[0] == 0

            async def refused() -> bool:
                return await status("tracker", tracker) == 401

            with within(1.0):
                await wait_until(refused, timeout=30, every=0.02)


async def test_the_pantry_has_the_same_tokens(tmp_path: Path) -> None:
    async with pantry_system(tmp_path, PANTRY_SERVER_REQUIRETOKENS="true") as system:
        server = system.servers[0]
        writer = await create(server.environment, "kitchen", "write", module="pantry")
        other = writer.text.replace("pantry_", "gctd_")
        assert (await server.ask("GET", "/api/v1/products")).status == 401
        for text, status in ((other, 401), (writer.text, 200)):
            answer = await server.ask("GET", "/api/v1/products", headers={"Authorization": f"Bearer {text}"})
            assert answer.status == status
        erased = await server.ask("POST", "/api/v1/people:erase", {"name": "anna"}, headers=writer.header)
        assert (erased.status, "this needs admin" in erased.body["error"]) == (403, True)
        code, out, _ = await program("pantry", server.environment, "token", "list")
        assert code == 0
        assert "kitchen" in out
        assert writer.text not in out
        assert (await program("pantry", server.environment, "token", "revoke", "000000000000"))[0] == 3
