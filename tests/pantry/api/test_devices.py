"""A phone signs in by a code, on any server: once, with a session that is seen and ended, and no secret in any log."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
import pytest_asyncio

from httpkit.routes import Scope
from pantry.readmodel.model import ACCESS
from servicekit.access.tokens import TokenOffice
from tests.support.pantry.system import API, FLOUR, Answer, PantrySystem, Server, log_of, pantry_system
from tests.support.programs.cli import pantry, running_on_terminal
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


@attrs.frozen
class Household:
    """Two servers that want tokens, and the texts of tokens by their scope."""

    system: PantrySystem
    tokens: dict[str, str]
    ids: dict[str, str]

    @property
    def one(self) -> Server:
        return self.system.servers[0]

    @property
    def two(self) -> Server:
        return self.system.servers[1]

    def as_(self, scope: str) -> dict[str, str]:
        """The headers of the holder of a token."""
        return {"Authorization": f"Bearer {self.tokens[scope]}"}

    async def pair(self, holder: str = "write", **fields: Any) -> Answer:
        """The answer to a request for a code."""
        return await self.one.post("/pairings", {"name": "phone", **fields}, **self.as_(holder))

    async def phone(self, holder: str = "write", **fields: Any) -> tuple[str, dict[str, str]]:
        """The id of a session of a phone that signed in on the second server, and its headers."""
        made = await self.pair(holder, **fields)
        claimed = await self.two.post("/pairings:claim", {"code": code_of(made)})
        assert claimed.status == 200, claimed
        return claimed.body["id"], cookie_of(claimed)


def code_of(answer: Answer) -> str:
    """The code in the link of an answer."""
    assert answer.status == 201, answer
    return str(urlsplit(answer.body["link"]).fragment.removeprefix("pair="))


def cookie_of(answer: Answer) -> dict[str, str]:
    """The header with the cookie that an answer sets."""
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def household(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Household]:
    """A household with a token of each scope."""
    async with pantry_system(
        tmp_path_factory.mktemp("devices"), servers=2, PANTRY_SERVER_REQUIRETOKENS="true", PANTRY_LOG_LEVEL="debug"
    ) as system:
        async with log_of(system.nats) as log:
            office = TokenOffice(ACCESS, log, actor="operator:test")
            made = {scope.value: await office.issue(f"anna-{scope.value}", scope, timedelta(days=30)) for scope in Scope}
        tokens = {scope: new.text for scope, new in made.items()}
        yield Household(system, tokens, {scope: new.token.id for scope, new in made.items()})


async def test_a_code_of_one_server_signs_a_phone_in_on_another_once(household: Household) -> None:
    made = await household.pair(scope="read")
    assert made.body["scope"] == "read"
    address = urlsplit(made.body["link"])
    assert (address.scheme, address.netloc, address.path) == ("http", f"127.0.0.1:{household.one.port}", "/")
    claims = await asyncio.gather(
        *(server.post("/pairings:claim", {"code": code_of(made)}) for server in household.system.servers * 3)
    )
    assert sorted(claim.status for claim in claims) == [200, *[403] * 5]
    [claimed] = [claim for claim in claims if claim.status == 200]
    assert {"HttpOnly", "SameSite=Strict"} <= set(claimed.headers["Set-Cookie"].split("; "))
    phone = cookie_of(claimed)
    for server in household.system.servers:
        assert (await server.ask("GET", f"{API}/products", headers=phone)).status == 200
        refused = await server.post(f"/products/{FLOUR}", {"name": "Flour", "unit": "kg"}, **phone, Origin=server.url)
        assert refused.status == 403
        assert "this session of the token 'anna-write' has the scope read" in refused.body["error"]
    again = await household.one.post("/pairings:claim", {"code": code_of(made)})
    assert (again.status, "used already" in again.body["error"]) == (403, True)
    forged = await household.one.post("/pairings:claim", {"code": "x"}, Origin="https://elsewhere.example")
    assert (forged.status, "origin" in forged.body["error"]) == (403, True)


async def test_the_sessions_of_a_token_are_listed_and_ended_one_by_one(household: Household) -> None:
    first, phone = await household.phone("admin", name="phone of Anna")
    second, tablet = await household.phone("admin", name="tablet", scope="read")
    listed = (await household.one.ask("GET", f"{API}/sessions", headers=phone)).body
    assert [(one["id"], one["name"], one["scope"], one["current"]) for one in listed] == [
        (first, "phone of Anna", "write", True),
        (second, "tablet", "read", False),
    ]
    path = f"{API}/sessions/{first}"
    assert (await household.one.ask("DELETE", path, headers={**tablet, "Origin": household.one.url})).status == 403
    assert (await household.one.ask("DELETE", path, headers=household.as_("write"))).status == 404, "of another token"
    assert (await household.one.ask("DELETE", path, headers=household.as_("admin"))).status == 204
    assert (await household.two.ask("GET", f"{API}/products", headers=tablet)).status == 200
    assert (await household.one.ask("GET", f"{API}/products", headers=phone)).status == 401
    assert (await household.one.ask("DELETE", path, headers=household.as_("admin"))).status == 404


async def test_a_holder_gives_no_more_rights_than_the_token_has(household: Household) -> None:
    assert (await household.pair("read", scope="write")).status == 403
    assert (await household.pair("write", scope="admin")).status == 403
    assert [(await household.pair(scope)).body["scope"] for scope in ("read", "write", "admin")] == ["read", "write", "write"]
    assert (await household.one.post("/pairings", {"name": "phone"})).status == 401
    assert (await household.pair(name="")).status == 422


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://pantry.home:8443", "https://pantry.home:8443/#pair="),
        ("http://192.168.1.5:8080/pantry/?view=shopping#top", "http://192.168.1.5:8080/pantry/#pair="),
        ("http://[fd00::5]/", "http://[fd00::5]/#pair="),
        ("ftp://pantry.home", 422),
        ("pantry.home", 422),
        ("http://[", 422),
    ],
)
async def test_the_address_for_the_phone_is_given_by_the_page(household: Household, address: str, link: str | int) -> None:
    made = await household.pair(address=address)
    if isinstance(link, int):
        assert (made.status, "http:// or https:// address" in made.body["error"]) == (link, True)
    else:
        assert made.body["link"].startswith(link)
        assert "warning" not in made.body


async def test_an_address_of_this_machine_has_a_warning_with_the_remedy(household: Household) -> None:
    for address in ({}, {"address": "http://localhost:1/"}, {"address": "http://[::1]/"}, {"address": "http://0.0.0.0:1/"}):
        made = await household.pair(**address)
        assert "a phone cannot reach" in made.body["warning"], address
        assert "public_url" in made.body["warning"]


async def test_no_secret_is_in_the_log_of_events_the_tables_or_the_log_of_a_server(household: Household) -> None:
    made = await household.pair()
    code = code_of(made)
    claimed = await household.one.post("/pairings:claim", {"code": code})
    secrets = [code.rpartition(".")[2], cookie_of(claimed)["Cookie"].rpartition(".")[2]]
    assert all(len(secret) == 43 for secret in secrets)
    events = repr(await household.system.events())
    assert "PairingOffered" in events
    files = [path.read_bytes() for path in household.one.directory.rglob("*") if path.is_file()]
    written = [events.encode(), *files]
    assert len(files) > 5
    assert not [secret for secret in secrets for content in written if secret.encode() in content]


async def test_a_phone_is_signed_out_when_the_token_is_revoked(household: Household) -> None:
    async with log_of(household.system.nats) as log:
        office = TokenOffice(ACCESS, log, actor="operator:test")
        new = await office.issue("leaving", Scope.WRITE, timedelta(days=1))
        household.tokens["leaving"] = new.text
        _, phone = await household.phone("leaving")
        unused = code_of(await household.pair("leaving"))
        assert (await household.one.ask("GET", f"{API}/products", headers=phone)).status == 200
        await office.revoke(new.token.id)

    async def is_out() -> bool:
        return (await household.one.ask("GET", f"{API}/products", headers=phone)).status == 401

    await wait_until(is_out)
    assert (await household.two.post("/pairings:claim", {"code": unused})).status == 403


def _environment(server: Server, token: str | None) -> dict[str, str]:
    found = {name: value for name, value in server.environment.items() if name.startswith("PANTRY_")}
    return found | ({} if token is None else {"PANTRY_AUTH_TOKEN": token})


async def test_the_command_writes_the_address_to_a_pipe_and_draws_the_code_on_a_terminal(
    household: Household, tmp_path: Path
) -> None:
    env = _environment(household.one, household.tokens["write"])
    piped = await pantry("pair", "tablet", "--scope", "read", home=tmp_path, env=env)
    assert piped.code == 0, piped
    assert re.fullmatch(rf"http://127\.0\.0\.1:{household.one.port}/#pair=[\w.]+\n", piped.out)
    assert "it signs one phone in, until" in piped.err
    assert "warning: a phone cannot reach 127.0.0.1" in piped.err
    claimed = await household.one.post("/pairings:claim", {"code": piped.out.strip().partition("#pair=")[2]})
    assert (claimed.body["name"], claimed.body["scope"]) == ("tablet", "read")
    document = await pantry("pair", "--json", "--address", "https://pantry.home/", home=tmp_path, env=env)
    assert document.json["link"].startswith("https://pantry.home/#pair=")
    async with running_on_terminal("pair", url=None, home=tmp_path, env=env, program="pantry") as run:
        shown = (await run.result()).out.replace("\r", "")
    lines = re.findall("\x1b\\[97;40m([▀▄█ ]+)\x1b\\[0m\n", shown)
    assert len({len(line) for line in lines}) == 1
    assert 2 * len(lines) - len(lines[0]) in {0, 1}, "two rows of modules in each line of a square"
    assert lines[0] == "█" * len(lines[0]), "the margin is light"
    refused = await pantry("pair", "--scope", "admin", home=tmp_path, env=env)
    assert (refused.code, "cannot get the scope admin" in refused.err) == (4, True)
    without = await pantry("pair", home=tmp_path, env=_environment(household.one, None))
    assert (without.code, "PANTRY_AUTH_TOKEN" in without.err) == (4, True)


async def test_without_tokens_the_code_is_the_address(running: PantrySystem, tmp_path: Path) -> None:
    made = await running.one.post("/pairings", {"name": "phone", "address": "http://pantry.home:8080/"})
    assert (made.status, made.body["link"]) == (201, "http://pantry.home:8080/")
    assert made.body.keys() == {"link", "qr"}
    assert await running.one.get("/sessions") == []
    assert (await running.one.ask("DELETE", f"{API}/sessions/0123456789ab")).status == 404
    piped = await pantry("pair", home=tmp_path, env=_environment(running.one, None))
    assert (piped.code, piped.out) == (0, f"{running.one.url}/\n")


async def test_the_setting_public_url_is_the_address_for_phones_and_the_shared_token_pairs_as_well(tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    async with pantry_system(tmp_path, PANTRY_AUTH_TOKEN=token, PANTRY_PUBLIC_URL="https://pantry.home") as system:
        made = await system.one.post("/pairings", {"name": "phone"}, Authorization=f"Bearer {token}")
        assert made.body["link"].startswith("https://pantry.home/#pair=auth_token.")
        assert "warning" not in made.body
        claimed = await system.one.post("/pairings:claim", {"code": code_of(made)})
        phone = cookie_of(claimed)
        assert (await system.one.ask("GET", f"{API}/session", headers=phone)).body["scope"] == "write"
        assert (await system.one.ask("GET", f"{API}/products", headers=phone)).status == 200
