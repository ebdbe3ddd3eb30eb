"""The bank of `examples/`: a service of 80 lines has all that a service needs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio
import structlog
from openapi_spec_validator import validate
from playwright.async_api import Browser, Page, Route, expect

from eventlog.testing.scenario import given
from examples.bank.service import ACCOUNT, BANK, MoneyMoved, Refused
from httpkit import Call, Frame, Nothing, encode
from httpkit import Route as HttpRoute
from projections.errors import Behind
from projections.projector.projector import Projector
from servicekit import EventChange, Running, ServiceSettings
from tests.httpkit.eventsource import EventSource
from tests.support import ROOT
from tests.support.programs import warm
from tests.support.waiting import wait_until
from tests.support.web.browser import chromium

MODEL = "examples.bank.service:MODEL"


@attrs.frozen
class Forgotten:
    """An event that no registry has."""


class Bank:
    """A bank that listens, and a client of it."""

    def __init__(self, http: aiohttp.ClientSession, settings: ServiceSettings) -> None:
        self.http = http
        self.settings = settings

    async def ask(self, method: str, path: str, document: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """Status, document and headers of an answer."""
        async with self.http.request(method, path, json=document, headers=headers) as response:
            return response.status, await response.json(content_type=None), response.headers

    async def deposit(self, id_: str, cents: int, **headers: str) -> tuple[int, Any, Any]:
        return await self.ask("POST", f"/api/accounts/{id_}/deposits", {"cents": cents}, **headers)

    async def transfer(self, id_: str, to: str, cents: int) -> tuple[int, Any, Any]:
        return await self.ask("POST", f"/api/accounts/{id_}/transfers", {"to": to, "cents": cents})

    async def balances(self) -> dict[str, int]:
        _, found, _ = await self.ask("GET", "/api/accounts")
        return {one["id"]: one["cents"] for one in found}


@asynccontextmanager
async def listening(settings: ServiceSettings) -> AsyncIterator[Bank]:
    async with BANK.listening(settings) as address, aiohttp.ClientSession(address.url) as http:
        yield Bank(http, settings)


@pytest.fixture
def settings(nats_url: str, tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(port=0, nats_url=nats_url, database_url=f"sqlite:{tmp_path / 'bank.db'}")


@pytest.fixture(params=["sqlite", "postgres"])
def settings_of_either_store(request: pytest.FixtureRequest, settings: ServiceSettings) -> ServiceSettings:
    if request.param == "sqlite":
        return settings
    url: str = request.getfixturevalue("postgres_url")
    return ServiceSettings(port=0, nats_url=settings.nats_url, database_url=url)


@pytest_asyncio.fixture
async def bank(settings: ServiceSettings) -> AsyncIterator[Bank]:
    async with listening(settings) as bank:
        yield bank


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in a new profile."""
    page = await browser.new_page()
    yield page
    await page.close()


def test_the_rules() -> None:
    given(ACCOUNT, registry=BANK.model.registry).when(MoneyMoved(5)).then(MoneyMoved(5))
    given(ACCOUNT).when(MoneyMoved(-1)).then_refused(Refused, match="the balance is 0 cents")
    given(ACCOUNT, MoneyMoved(5)).when(MoneyMoved(-5)).then(MoneyMoved(-5))


def test_it_has_at_most_80_lines_of_python() -> None:
    texts = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "examples" / "bank").rglob("*.py"))]
    assert sum(1 for text in texts for line in text.splitlines() if line.strip()) <= 80


async def test_a_deposit_can_be_read_when_it_is_answered_and_counts_once(bank: Bank) -> None:
    status, balance, headers = await bank.deposit("anna", 500, **{"Idempotency-Key": "k1"})
    assert (status, balance) == (200, {"id": "anna", "cents": 500})
    assert await bank.balances() == {"anna": 500}
    assert headers["Event-Sequence"] == "1"
    status, balance, headers = await bank.deposit("anna", 500, **{"Idempotency-Key": "k1"})
    assert (status, balance, headers["Idempotent-Replayed"]) == (200, {"id": "anna", "cents": 500}, "true")
    assert await bank.balances() == {"anna": 500}


async def test_an_event_without_registration_is_named_in_the_answer_and_in_the_log(settings: ServiceSettings) -> None:
    careless = attrs.evolve(ACCOUNT, decide=lambda *_: [Forgotten()], evolve=lambda account, _: account)

    async def forget(_: Nothing, call: Call[Running]) -> None:
        await call.services.execute(careless, "anna", MoneyMoved(1), call)

    service = attrs.evolve(BANK, routes=[HttpRoute("POST", "/api/forget", forget, summary="Forget")])
    cause = 'the event class Forgotten is not registered: put `@REGISTRY.event("Forgotten")` above it'
    with structlog.testing.capture_logs() as logs:
        async with service.listening(settings) as address, aiohttp.request("POST", f"{address.url}/api/forget") as response:
            problem = await response.json(content_type=None)
    assert (response.status, problem["detail"]) == (501, cause)
    assert [str(line["exc_info"]) for line in logs if line["event"] == "request failed"] == [cause]


async def test_a_transfer_moves_money_between_two_accounts_or_not_at_all(bank: Bank) -> None:
    await bank.deposit("anna", 500)
    assert (await bank.transfer("anna", "bob", 200))[:2] == (200, {"id": "anna", "cents": 300})
    assert await bank.balances() == {"anna": 300, "bob": 200}
    answers = await asyncio.gather(*(bank.transfer(*way) for way in [("anna", "bob", 200), ("bob", "anna", 300)] * 5))
    assert {status for status, _, _ in answers} == {200, 409}
    assert sum((await bank.balances()).values()) == 500


@pytest.mark.parametrize(
    ("path", "document", "expected", "text"),
    [
        ("new/transfers", {"to": "anna", "cents": 1}, 409, "the balance is 0 cents, 1 were asked for"),
        ("anna/transfers", {"to": "anna", "cents": 1}, 409, "an account cannot pay itself"),
        ("anna/deposits", {"cents": 0}, 400, "cents: must be at least 1"),
        ("anna/deposits", {"cents": "5"}, 400, "cents: "),
        ("anna/deposits", {}, 400, "cents: "),
        ("ANNA/deposits", {"cents": 1}, 404, "id: "),
    ],
)
async def test_a_refusal_is_a_problem_document(bank: Bank, path: str, document: dict[str, Any], expected: int, text: str) -> None:
    status, problem, headers = await bank.ask("POST", f"/api/accounts/{path}", document)
    assert (status, headers["Content-Type"]) == (expected, "application/problem+json")
    assert problem["status"] == expected
    assert text in problem["detail"]
    assert await bank.balances() == {}


async def test_clients_follow_the_balances_and_resume(bank: Bank) -> None:
    stream = EventSource(bank.http, "/api/events")
    async with stream.connected():
        await bank.deposit("anna", 500)
        event = await anext(stream.events())
    assert (event.name, json.loads(event.data), event.id) == ("balance", {"id": "anna", "cents": 500}, "1")
    await bank.transfer("anna", "bob", 200)  # without a listener
    async with stream.connected():
        missed = stream.events()
        found = [json.loads((await anext(missed)).data) for _ in range(2)]
    assert found == [{"id": "anna", "cents": 300}, {"id": "bob", "cents": 200}]


def audited(change: EventChange) -> Iterable[Frame]:
    """Two frames of each event, both at its place. A deposit of one cent has no frame."""
    if abs(change.event.data.cents) > 1:
        yield Frame(change.event.position, "audit", encode(change.event.data.cents))
        yield Frame(change.event.position, "balance", encode(change.after.cents))


async def test_an_event_may_have_several_frames_and_a_client_resumes_between_them(nats_url: str, tmp_path: Path) -> None:
    """Each frame comes once, in order: live, from the log, and also of a commit with several events."""
    service = attrs.evolve(BANK, show=audited, events={"audit": int, "balance": int})
    settings = ServiceSettings(port=0, nats_url=nats_url, database_url=f"sqlite:{tmp_path / 'bank.db'}")
    async with service.listening(settings) as address, aiohttp.ClientSession(address.url) as http:
        bank, stream = Bank(http, settings), EventSource(http, "/api/events", last_id="0")
        async with stream.connected():
            await bank.deposit("anna", 500)
            await asyncio.gather(*(bank.deposit("anna", cents) for cents in (5, 1, 7)))
            live = await stream.take(6)
        frames = [(event.name, event.data) for event in live]
        assert frames[:2] == [("audit", "500"), ("balance", "500")]
        assert {frame for frame in frames[2:] if frame[0] == "audit"} == {("audit", "5"), ("audit", "7")}
        assert len({event.id for event in live}) == 6
        for number, event in enumerate(live[:-1], 1):
            again = EventSource(http, "/api/events", last_id=event.id)
            async with again.connected():
                assert await again.take(6 - number) == live[number:]
    async with service.listening(settings) as address, aiohttp.ClientSession(address.url) as http:
        for number, event in enumerate(live[:-1], 1):
            replayed = EventSource(http, "/api/events", last_id=event.id)
            async with replayed.connected():
                assert await replayed.take(6 - number) == live[number:]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_keeps_a_balance_that_came_while_the_list_was_on_its_way(page: Page, settings: ServiceSettings) -> None:
    """The list is older than the event. Accounts without an event are taken from the list."""
    async with listening(settings) as bank:
        await bank.deposit("anna", 500)
        await bank.deposit("bob", 1)

        async def late(route: Route) -> None:
            answer = await route.fetch()
            await bank.deposit("anna", 200)
            await expect(page.locator("#account-anna")).to_have_text("anna700")
            await route.fulfill(response=answer)

        await page.route("**/api/accounts", late)
        await page.goto(str(bank.http._base_url))
        await expect(page.locator("#state")).to_have_text("live")
        assert await page.locator("#balances tr").all_inner_texts() == ["anna\t700", "bob\t1"]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_keeps_a_balance_that_is_newer_than_the_list_of_a_later_connection(
    page: Page, settings: ServiceSettings
) -> None:
    async with listening(settings) as bank:
        await bank.deposit("anna", 500)
        _, older, of_older = await bank.ask("GET", "/api/accounts")
        _, _, newer = await bank.deposit("anna", 200)
        event = f'id: {newer["Event-Sequence"]}\nevent: balance\ndata: {{"id": "anna", "cents": 700}}\n\n'
        streams: list[Route] = []

        async def accounts(route: Route) -> None:
            if len(streams) == 2:
                await route.fulfill(json=older, headers={"Event-Sequence": of_older["Event-Sequence"]})

        async def stream(route: Route) -> None:
            streams.append(route)
            if len(streams) == 1:  # it ends behind the event
                await route.fulfill(content_type="text/event-stream", body=f"retry: 100\n\n{event}")
            else:
                await route.continue_()

        await page.route("**/api/accounts", accounts)
        await page.route("**/api/events", stream)
        await page.goto(str(bank.http._base_url))
        await expect(page.locator("#state")).to_have_text("live")
        assert await page.locator("#balances tr").all_inner_texts() == ["anna\t700"]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_is_not_live_if_its_stream_ended_while_the_list_was_on_its_way(
    page: Page, settings: ServiceSettings
) -> None:
    """The list of the lost connection is left out. The next connection brings another one."""
    async with listening(settings) as bank:
        lists: list[Route] = []
        streams: list[Route] = []

        async def accounts(route: Route) -> None:
            lists.append(route)

        async def stream(route: Route) -> None:
            streams.append(route)
            if len(streams) == 1:  # it ends at once
                await route.fulfill(content_type="text/event-stream", body="retry: 100\n\n")

        await page.route("**/api/accounts", accounts)
        await page.route("**/api/events", stream)
        await page.goto(str(bank.http._base_url))
        await wait_until(lambda: len(streams) == 2 and len(lists) == 1)
        await expect(page.locator("#state")).to_have_text("reconnecting")
        await lists[0].fulfill(json=[{"id": "anna", "cents": 500}])
        await page.wait_for_function("performance.getEntriesByName(location.origin + '/api/accounts').length === 1")
        assert await page.locator("#state").inner_text() == "reconnecting"
        await bank.deposit("anna", 700)
        await streams[1].continue_()
        await wait_until(lambda: len(lists) == 2)
        await lists[1].continue_()
        await expect(page.locator("#state")).to_have_text("live")
        assert await page.locator("#balances tr").all_inner_texts() == ["anna\t700"]


async def test_it_describes_itself_and_says_how_it_is(bank: Bank) -> None:
    await bank.deposit("anna", 500)
    _, document, _ = await bank.ask("GET", "/api/openapi.json")
    validate(document)
    assert {"/api/accounts", "/api/accounts/{id}/deposits", "/api/accounts/{id}/transfers", "/api/events"} <= set(
        document["paths"]
    )
    assert (await bank.ask("GET", "/readyz"))[:2] == (200, {"status": "ok", "reads": "ok", "writes": "ok"})
    _, standing, _ = await bank.ask("GET", "/api/projections")
    assert (standing["read_model"], standing["stream"], standing["head"]) == ("bank", "BANK", 1)
    async with bank.http.get("/metrics") as response:
        assert "\nprojection_position 1" in await response.text()
    async with bank.http.get("/") as response:
        assert "<h1>Balances</h1>" in await response.text()


async def test_the_balances_are_there_after_a_restart(settings_of_either_store: ServiceSettings) -> None:
    async with listening(settings_of_either_store) as bank:
        await bank.deposit("anna", 500)
    async with listening(settings_of_either_store) as bank:
        assert await bank.balances() == {"anna": 500}
        assert (await bank.transfer("anna", "bob", 500))[0] == 200


async def test_projections_verifies_and_rebuilds_its_read_model(settings_of_either_store: ServiceSettings) -> None:
    async with listening(settings_of_either_store) as bank:
        await bank.deposit("anna", 500)
        await bank.transfer("anna", "bob", 200)
        status = await projections(bank, "status", "--model", MODEL)
        assert [one["position"] for one in status["projections"]] == [3, 3]
        assert (await projections(bank, "verify", "--model", MODEL))["equal"] is True
        assert (await projections(bank, "verify", "--model", MODEL))["equal"] is True
        assert await projections(bank, "parked", "--model", MODEL) == []
        assert (await projections(bank, "rebuild", MODEL))["switched"] is True
        assert await bank.balances() == {"anna": 300, "bob": 200}


async def projections(bank: Bank, *arguments: str) -> Any:
    """The document that `projections` prints; its addresses come from the environment."""
    found = {"NATS_URL": bank.settings.nats_url, "BANK_DATABASE_URL": bank.settings.database_url or ""}
    done = await asyncio.to_thread(warm.run, "projections", *arguments, "--json", environment={**os.environ, **found})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.real
async def test_the_answer_to_a_command_waits_once_for_tables_that_are_late(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[int]()

    async def late(_: Projector, sequence: int, __: float) -> None:
        waits.append(sequence)
        raise Behind("the tables are late")

    monkeypatch.setattr(Projector, "wait_for", late)
    async with listening(settings) as bank:
        status, _, headers = await bank.deposit("ann", 100)
    assert (status, waits) == (200, [int(headers["Event-Sequence"])])
