"""Metadata comes from a host's API if it answers; nothing that the host does fails or holds up a scan."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from aiohttp import web
from identify.vendor.licenses import LICENSES

from gctd.domain.analysis import Metadata
from gctd.domain.remote.addresses import PUBLIC_ONLY, AddressPolicy
from gctd.domain.remote.urls import RepoUrl, parse_repo_url
from gctd.scan.hosts import answers
from gctd.scan.hosts.answers import Answers
from gctd.scan.hosts.apis import parse_apis
from gctd.scan.hosts.asking import LARGEST, Hosts
from gctd.scan.hosts.facts import NOTHING, Facts
from gctd.worker.scans.metadata import metadata_of
from tests.support.pace import within

pytestmark = pytest.mark.real

LOOPBACK = AddressPolicy.of(["127.0.0.1", "localhost"])
GITHUB = {
    "stargazers_count": 12,
    "forks_count": 3,
    "language": "Go",
    "license": {"key": "mit", "spdx_id": "MIT"},
    "owner": {"login": "a"},
}
FACTS = Facts(stars=12, forks=3, language="Go", license="MIT")
REPO = parse_repo_url("https://git.example.com/a/b.git")


@attrs.define
class FakeHost:
    """An API whose answer a test decides. `requests` has the method, path and query, and headers of each request."""

    url: str = ""
    status: int = 200
    body: Any = attrs.field(factory=lambda: dict(GITHUB))
    bodies: Mapping[str, Any] = attrs.field(factory=dict)
    headers: Mapping[str, str] = attrs.field(factory=dict)
    delay: float = 0.0
    requests: list[tuple[str, Mapping[str, str]]] = attrs.field(factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((f"{request.method} {request.raw_path}", request.headers))
        await asyncio.sleep(self.delay)
        if self.headers.get("ETag") and request.headers.get("If-None-Match") == self.headers["ETag"]:
            return web.Response(status=304)
        body = self.bodies.get(request.raw_path, self.body)
        return web.Response(
            status=self.status, body=body if isinstance(body, bytes) else json.dumps(body).encode(), headers=self.headers
        )


@pytest_asyncio.fixture
async def host() -> AsyncIterator[FakeHost]:
    fake = FakeHost()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    await runner.cleanup()


Open = Callable[..., Hosts]


@pytest.fixture
def hosts(host: FakeHost, tmp_path: Path) -> Open:
    """The hosts as settings make them: `git.example.com` has its API at the fake's address."""

    def open_(kind: str = "github", *tokens: str, seconds: float = 5.0, addresses: AddressPolicy = LOOPBACK) -> Hosts:
        apis = parse_apis([f"git.example.com={kind}@{host.url}"], tokens, LOOPBACK)
        return Hosts(apis=apis, answers=Answers(tmp_path / "hosts"), addresses=addresses, seconds=seconds)

    return open_


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every answer be old as soon as it is there."""
    monkeypatch.setattr(answers, "FRESH", 0.0)


async def test_github_is_asked_once_about_a_repository(host: FakeHost, hosts: Open) -> None:
    assert await hosts().facts(REPO) == FACTS
    ((request, headers),) = host.requests
    assert request == "GET /repos/a/b"
    assert headers["Accept"] == "application/vnd.github+json"
    assert "Authorization" not in headers
    assert await hosts().facts(REPO) == FACTS
    assert len(host.requests) == 1


async def test_gitlab_is_asked_about_the_project_and_its_languages(host: FakeHost, hosts: Open) -> None:
    project = "/projects/group%2Fsub%2Fname"
    host.bodies = {
        f"{project}?license=true": {"star_count": 5, "forks_count": 2, "license": {"key": "apache-2.0"}},
        f"{project}/languages": {"Shell": 3.2, "Go": 96.8},
    }
    found = await hosts("gitlab").facts(parse_repo_url("https://git.example.com/group/sub/name"))
    assert found == Facts(stars=5, forks=2, language="Go", license="Apache-2.0")
    assert [request for request, _ in host.requests] == [f"GET {project}?license=true", f"GET {project}/languages"]


async def test_a_token_goes_to_its_host_and_nowhere_else(host: FakeHost, hosts: Open) -> None:
    opened = hosts("github", "git.example.com=s3cret", "github.com=other")
    await opened.facts(REPO)
    assert host.requests[0][1]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(opened)


@pytest.mark.usefixtures("later")
async def test_an_answer_that_has_not_changed_is_not_sent_again(host: FakeHost, hosts: Open) -> None:
    host.headers = {"ETag": '"one"'}
    for _ in range(2):
        assert await hosts().facts(REPO) == FACTS
    assert [headers.get("If-None-Match") for _, headers in host.requests] == [None, '"one"']
    host.headers, host.body = {"ETag": '"two"'}, GITHUB | {"stargazers_count": 13}
    assert (await hosts().facts(REPO)).stars == 13


FAILURES: Mapping[str, dict[str, Any]] = {
    "error": {"status": 500},
    "forbidden": {"status": 403},
    "wrong token": {"status": 401},
    "redirect": {"status": 301, "headers": {"Location": "http://127.0.0.1:1/repos/a/b"}},
    "redirect inwards": {"status": 302, "headers": {"Location": "http://169.254.169.254/latest/meta-data"}},
    "no JSON": {"body": b"<html>"},
    "a list": {"body": []},
    "text for a number": {"body": GITHUB | {"stargazers_count": "many"}},
    "below zero": {"body": GITHUB | {"stargazers_count": -1}},
    "beyond all bounds": {"body": GITHUB | {"forks_count": 10**30}},
    "nested without end": {"body": b'{"a":' * 100_000},
    "huge": {"body": b'{"a": "' + b"x" * (LARGEST + 1) + b'"}'},
    "packed": {"headers": {"Content-Encoding": "gzip"}, "body": b"\x1f\x8b\x08\x00junk"},
    "rate limit": {"status": 429, "headers": {"Retry-After": "600"}},
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_host_that_does_not_answer_as_it_should_gives_nothing_and_is_let_alone(
    host: FakeHost, hosts: Open, failure: str
) -> None:
    for name, value in FAILURES[failure].items():
        setattr(host, name, value)
    assert await hosts().facts(REPO) == NOTHING
    assert await hosts().facts(REPO) == NOTHING
    assert len(host.requests) == 1


@pytest.mark.usefixtures("later")
async def test_known_facts_are_given_while_a_host_fails(host: FakeHost, hosts: Open) -> None:
    await hosts().facts(REPO)
    host.status = 500
    assert await hosts().facts(REPO) == FACTS
    assert len(host.requests) == 2


async def test_a_slow_host_is_given_up_in_time(host: FakeHost, hosts: Open) -> None:
    host.delay = 60
    with within(10):
        assert await hosts(seconds=0.3).facts(REPO) == NOTHING


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "600"}, 590, 601),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+1200"}, 1190, 1201),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "+1200"}, 1190, 1201),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+999999"}, 3590, 3601),
        ({"Retry-After": "99999999"}, 3590, 3601),
        ({}, 50, 61),
    ],
)
async def test_a_host_is_let_alone_for_as_long_as_it_says(
    host: FakeHost, hosts: Open, headers: dict[str, str], least: float, most: float
) -> None:
    """But no longer than an hour."""
    host.status = 403
    host.headers = {name: str(int(time.time()) + int(text)) if text[0] == "+" else text for name, text in headers.items()}
    opened = hosts()
    await opened.facts(REPO)
    assert least <= opened.answers.paused_until(host.url) - time.time() <= most


async def test_a_repository_that_the_host_does_not_show_is_not_asked_for_again_soon(host: FakeHost, hosts: Open) -> None:
    """Others of the host are."""
    host.status = 404
    for _ in range(2):
        assert await hosts().facts(REPO) == NOTHING
    assert len(host.requests) == 1
    host.status = 200
    assert await hosts().facts(parse_repo_url("https://git.example.com/a/c")) == FACTS


async def test_a_private_address_is_refused_like_for_git(host: FakeHost, hosts: Open) -> None:
    assert await hosts(addresses=PUBLIC_ONLY).facts(REPO) == NOTHING
    assert host.requests == []


async def test_a_name_that_leads_inside_is_refused(host: FakeHost, tmp_path: Path) -> None:
    """The decision depends on its addresses, not on the text of the name. No connection is made."""
    apis = parse_apis([f"git.example.com=github@{host.url.replace('127.0.0.1', 'localhost')}"], [], LOOPBACK)
    opened = Hosts(apis=apis, answers=Answers(tmp_path), addresses=AddressPolicy.of(["192.0.2.0/24"]))
    assert await opened.facts(REPO) == NOTHING
    assert host.requests == []
    allowed = attrs.evolve(opened, addresses=LOOPBACK, answers=Answers(tmp_path / "other"))
    assert await allowed.facts(REPO) == FACTS


async def test_proxies_of_the_environment_are_not_used(host: FakeHost, hosts: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert await hosts().facts(REPO) == FACTS
    through = attrs.evolve(hosts(), proxy=host.url, answers=Answers(hosts().answers._directory / "other"))
    assert await through.facts(REPO) == FACTS
    assert host.requests[-1][0] == f"GET {host.url}/repos/a/b"


async def test_an_answer_that_cannot_be_kept_is_an_answer(host: FakeHost, hosts: Open, tmp_path: Path) -> None:
    opened = hosts()
    shutil.rmtree(tmp_path / "hosts")
    assert await opened.facts(REPO) == FACTS
    host.status = 500
    assert await opened.facts(REPO) == NOTHING


async def test_a_broken_cache_is_no_cache(host: FakeHost, hosts: Open, tmp_path: Path) -> None:
    await hosts().facts(REPO)
    for path in (tmp_path / "hosts").iterdir():
        path.write_bytes(b"\xff{")
    assert await hosts().facts(REPO) == FACTS
    assert len(host.requests) == 2


@pytest.mark.parametrize(
    "url",
    [
        RepoUrl(canonical="file:///x", clone_url="file:///x", host="", path="/x", kind="local"),
        parse_repo_url("https://elsewhere.example.com/a/b"),
        parse_repo_url("https://git.example.com/only-one"),
        parse_repo_url("https://git.example.com/one/too/many"),
    ],
)
async def test_a_host_without_an_api_gets_no_request(host: FakeHost, hosts: Open, url: RepoUrl) -> None:
    assert await hosts().facts(url) == NOTHING
    assert host.requests == []


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, Metadata(stars=12, forks=3, language="Go", license="MIT")),
        ({"license": {"spdx_id": "NOASSERTION"}}, Metadata(stars=12, forks=3, language="Go", license="ISC")),
        ({"license": None, "language": None}, Metadata(stars=12, forks=3, language="Python", license="ISC")),
        ({"stargazers_count": None}, Metadata(language="Python", license="ISC")),
    ],
)
async def test_facts_that_the_host_lacks_come_from_the_files(
    host: FakeHost, hosts: Open, tmp_path: Path, told: dict[str, Any], expected: Metadata
) -> None:
    host.body = GITHUB | told
    (tmp_path / "LICENSE").write_text(dict(LICENSES)["ISC"])
    (tmp_path / "a.py").write_text("print()\n")
    assert await metadata_of(hosts(), REPO, tmp_path) == expected
