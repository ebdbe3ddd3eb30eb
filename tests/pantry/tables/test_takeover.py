"""Take-over of a database of the first program with its typical damage: each difference is reported, and the ledger is exact."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio

from pantry.domain.gtin import own_code
from projections.stores.postgres.server import PostgresServer
from tests.support.pantry.system import PantrySystem, log_of, pantry_system
from tests.support.programs.cli import Result, pantry
from tests.support.readside.postgres import fresh_database

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

SCHEMA = """
CREATE TABLE categories (
    id VARCHAR(36) PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE, description TEXT,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE products (
    ean13 CHAR(13) PRIMARY KEY, name VARCHAR(200) NOT NULL, description TEXT, unit VARCHAR(30) NOT NULL,
    min_stock DECIMAL(10,3) NOT NULL DEFAULT 0, current_stock DECIMAL(10,3) NOT NULL DEFAULT 0,
    category_id VARCHAR(36) REFERENCES categories (id), active BOOLEAN NOT NULL DEFAULT TRUE,
    created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE TABLE movements (
    id VARCHAR(36) PRIMARY KEY, product_ean13 CHAR(13) NOT NULL REFERENCES products (ean13),
    type VARCHAR(3) NOT NULL CHECK (type IN ('in', 'out')), quantity DECIMAL(10,3) NOT NULL CHECK (quantity > 0),
    reason VARCHAR(200), notes TEXT, created_by VARCHAR(100), created_at TIMESTAMP NOT NULL);
CREATE TABLE schema_migrations (version BIGINT NOT NULL PRIMARY KEY, dirty BOOLEAN NOT NULL);
INSERT INTO schema_migrations VALUES (4, FALSE);
"""
BEGIN = datetime(2026, 1, 10, 9, 30, 0, 123456)  # noqa: DTZ001 - as the first program has them
SOUND, LOST, BELOW, EMPTY, GONE, NAMELESS, WRONG = (
    *(own_code(number) for number in range(1, 7)),
    "4006381333930",
)


class First:
    """The first program's database."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.random = random.Random(20)
        self.times = 0

    def id(self) -> str:
        """A UUID of version 4, always the same ones."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    async def category(self, name: str) -> str:
        """A category."""
        id_ = self.id()
        await self.connection.execute("INSERT INTO categories VALUES ($1, $2, $3, $4)", id_, name, None, BEGIN)
        return id_

    async def product(self, code: str, stock: str, *, category: str | None = None, **more: Any) -> None:
        """A product with a stored stock."""
        values = {"name": f"Thing {code[-3:]}", "unit": "kg", "min_stock": Decimal("1.5"), "active": True, **more}
        await self.connection.execute(
            "INSERT INTO products VALUES ($1, $2, NULL, $3, $4, $5, $6, $7, $8, $9)",
            *(code, values["name"], values["unit"], values["min_stock"], Decimal(stock), category, values["active"]),
            *(BEGIN, BEGIN + timedelta(days=30)),
        )

    async def move(self, code: str, *changes: str, by: str | None = None) -> list[str]:
        """Movements, a minute apart: `+2` comes in, `-0.5` goes out."""
        ids = []
        for change in changes:
            self.times += 1
            ids.append(self.id())
            amount = Decimal(change)
            type_ = "in" if amount > 0 else "out"
            at = BEGIN + timedelta(minutes=self.times)
            await self.connection.execute(
                "INSERT INTO movements VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                *(ids[-1], code, type_, abs(amount), None, by and "secret", by, at),
            )
        return ids


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(session_postgres_server: PostgresServer) -> AsyncIterator[str]:
    """The first program's database, with lost updates, negative stock and odd rows."""
    async with fresh_database(session_postgres_server) as url:
        connection = await asyncpg.connect(url)
        await connection.execute(SCHEMA)
        first = First(connection)
        baking = await first.category("Baking")
        await first.category("   ")
        await first.product(SOUND, "7.125", category=baking)
        await first.move(SOUND, "+10.3", "-3.175", by="anna")
        await first.product(LOST, "27")  # 200 at once, of which most were lost
        await first.move(LOST, *["+1"] * 200)
        await first.product(BELOW, "6")  # 40 at once, all accepted
        await first.move(BELOW, "+10", *["-1"] * 40)
        await first.product(EMPTY, "3")
        await first.product(GONE, "0", active=False)
        await first.move(GONE, "+2", "-2")
        await first.product(NAMELESS, "0", name=" ", unit="")
        await first.product(WRONG, "1")
        await first.move(WRONG, "+1")
        await connection.close()
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PantrySystem]:
    """A pantry that runs during the take-over."""
    async with pantry_system(tmp_path_factory.mktemp("takeover")) as running:
        yield running


async def take_over(system: PantrySystem, database: str, *arguments: str, home: Path) -> Result:
    """How the command ends."""
    environment = {name: value for name, value in system.one.environment.items() if name.startswith("PANTRY_")}
    return await pantry(
        "takeover", "--from", database, "--zone", "America/Asuncion", *arguments, "--json", env=environment, home=home
    )


async def caught_up(system: PantrySystem) -> None:
    """Wait until the server has all that the log has."""
    async with log_of(system.nats) as log:
        head = (await log.head()).last
    await system.one.get(f"/products?min_seq={head}")


DIFFERENCES: Mapping[str, tuple[float, float, float, float]] = {
    LOST: (27, 200, 0, -173),
    BELOW: (6, -30, 30, 6),
    EMPTY: (3, 0, 0, 3),
}


async def test_a_dry_run_a_take_over_and_its_repetition(system: PantrySystem, database: str, tmp_path: Path) -> None:
    before = len(await system.events())
    dry = await take_over(system, database, home=tmp_path)
    assert (dry.code, len(await system.events())) == (7, before)
    for document in (dry.json, (await take_over(system, database, "--write", home=tmp_path)).json):
        assert (document["categories"], document["products"], document["movements"]) == (2, 6, 245)
        found = {
            one["ean13"]: tuple(one[name] for name in ("stored", "summed", "opening", "correction"))
            for one in document["differences"]
        }
        assert found == DIFFERENCES
        left_out = [problem["row"] for problem in document["problems"] if problem["left_out"]]
        assert left_out == [f"product {WRONG}"]
        assert any(NAMELESS in problem["row"] and "no name" in problem["text"] for problem in document["problems"])
    after = len(await system.events())
    again = (await take_over(system, database, "--write", home=tmp_path)).json
    assert (again["categories"], again["products"], again["movements"]) == (0, 0, 0)
    assert len(await system.events()) == after

    one = system.one
    await caught_up(system)
    stocks = {product["ean13"]: product for product in await one.get("/products")}
    assert {code: stocks[code]["current_stock"] for code in (SOUND, LOST, BELOW, EMPTY, GONE)} == {
        SOUND: 7.125,
        LOST: 27,
        BELOW: 6,
        EMPTY: 3,
        GONE: 0,
    }
    assert [stocks[code]["active"] for code in (SOUND, GONE)] == [True, False]
    assert stocks[SOUND]["created_at"] == "2026-01-10T12:30:00.123456Z"
    movements = await one.get(f"/products/{SOUND}/movements")
    assert [(one["created_by"], one["notes"], one["created_at"]) for one in movements] == [
        ("anna", "secret", "2026-01-10T12:32:00.123456Z"),
        ("anna", "secret", "2026-01-10T12:31:00.123456Z"),
    ]
    assert (await one.get(f"/products/{SOUND}?as_of=2026-01-10T12:31:30Z"))["current_stock"] == 10.3
    below = await one.get(f"/products/{BELOW}/movements?limit=100")
    assert [movement["stock_after"] for movement in below[-2:]] == [40, 30]
    assert (below[0]["reason"], below[-1]["reason"]) == (
        "take-over: stock of the first program",
        "take-over: was missing before this",
    )
    names = {category["name"]: category["id"] for category in await one.get("/categories")}
    assert (len(names), stocks[SOUND]["category_id"]) == (2, names["Baking"])


async def test_later_bookings_of_the_first_program_are_taken_over_later_and_own_bookings_stay(
    system: PantrySystem, database: str, tmp_path: Path
) -> None:
    await take_over(system, database, "--write", home=tmp_path)
    await caught_up(system)
    await system.one.moved("out", 0.125, SOUND)
    connection = await asyncpg.connect(database)
    first = First(connection)
    first.random.seed(21)
    first.times = 50_000
    [id_] = await first.move(SOUND, "+1")
    await connection.execute("UPDATE products SET current_stock = 8.125 WHERE ean13 = $1", SOUND)
    await connection.close()
    later = (await take_over(system, database, "--write", home=tmp_path)).json
    assert (later["products"], later["movements"]) == (0, 1)
    assert {one["ean13"]: one["correction"] for one in later["differences"]} == dict.fromkeys(DIFFERENCES, 0)
    await caught_up(system)
    assert await system.one.stock(SOUND) == 8
    assert (await system.one.get(f"/movements/{id_}"))["quantity"] == 1
    await system.one.kill()
    assert await system.one.difference_from_a_fold() is None
    await system.one.start()


async def test_the_sum_of_the_movements_can_be_taken_for_right(database: str, tmp_path: Path) -> None:
    async with pantry_system(tmp_path / "pantry") as fresh:
        result = await take_over(fresh, database, "--stock", "movements", "--write", home=tmp_path)
        assert {one["ean13"]: one["opening"] for one in result.json["differences"]} == {LOST: 0, BELOW: 30, EMPTY: 0}
        await caught_up(fresh)
        assert [await fresh.one.stock(code) for code in (LOST, BELOW, EMPTY)] == [200, 0, 0]


async def test_migrate_leaves_the_tables_of_the_first_program_alone(system: PantrySystem, database: str, tmp_path: Path) -> None:
    async def tables() -> list[str]:
        connection = await asyncpg.connect(database)
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        await connection.close()
        return [row["tablename"] for row in rows]

    before = await tables()
    for command in (("migrate", "up"), ("migrate", "down")):
        refused = await pantry(*command, "--database-url", database, env={}, home=tmp_path)
        assert refused.code == 5, refused
        assert "pantry takeover --from" in refused.err
    assert await tables() == before == ["categories", "movements", "products", "schema_migrations"]


async def test_a_database_of_this_program_is_refused(system: PantrySystem, postgres_url: str, tmp_path: Path) -> None:
    assert (await pantry("migrate", "up", "--database-url", postgres_url, env={}, home=tmp_path)).code == 0
    refused = await take_over(system, postgres_url, home=tmp_path)
    assert (refused.code, "nothing to take over" in refused.err) == (5, True)
    assert (await pantry("migrate", "up", "--database-url", postgres_url, env={}, home=tmp_path)).code == 0
