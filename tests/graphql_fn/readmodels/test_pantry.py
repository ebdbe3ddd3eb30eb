"""The function `pantry` on a database: pages in both directions, one statement for many parents, the past, limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.limits import LARGEST_PAGE, QueryLimits
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import QueryOutcome
from graphql_fn.core.running import turns
from graphql_fn.readmodels.pantry import function as pantry
from servicekit.parts import ProcessParts
from servicekit.replica import ReadReplica
from tests.support.pantry.stocked import code_of, moved_at, stocked
from tests.support.readside.tables import change

pytestmark = pytest.mark.asyncio(loop_scope="module")

PRODUCTS, MOVEMENTS, CATEGORIES = 1000, 4, 25


@attrs.frozen
class Pantry:
    """The function, and the read replica of its database."""

    evaluator: Evaluator
    replica: ReadReplica

    async def ask(self, query: str, **variables: Any) -> Any:
        """The data of a result without errors."""
        result = await self.evaluator.evaluate(GraphQLRequest(query, variables))
        assert "errors" not in result.document, result.document["errors"]
        return result.document["data"]

    async def error(self, query: str) -> str:
        """The first error of a result."""
        result = await self.evaluator.evaluate(GraphQLRequest(query))
        return str(result.document["errors"][0]["message"])

    async def statements(self, query: str) -> tuple[Any, int]:
        """The data, and how many statements it took."""
        before = self.replica.tables.statements
        return await self.ask(query), self.replica.tables.statements - before


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pantry]:
    database = tmp_path_factory.mktemp("pantry") / "pantry.db"
    await stocked(database, products=PRODUCTS, movements=MOVEMENTS, categories=CATEGORIES)
    looking = pantry.replica(f"sqlite:{database}", None, max_lag=30)
    async with ProcessParts(*looking.parts).running():
        yield Pantry(Evaluator(pantry.function(looking), QueryLimits(seconds=60)), looking)


NESTED = """{ products(first: 1000) { edges { node {
    name quantityAt(time: "2026-01-03T12:00:00Z") category { name } movements(first: 2) { nodes { id product { name } } }
} } } }"""


@pytest.mark.real
@pytest.mark.parametrize("piece", [turns.PIECE, -1.0])
async def test_a_nested_query_over_a_thousand_products_takes_as_many_statements_as_it_has_levels(
    served: Pantry, monkeypatch: pytest.MonkeyPatch, piece: float
) -> None:
    """Also if a piece of work is over as soon as it begins, as on a machine that is busy."""
    monkeypatch.setattr(turns, "PIECE", piece)
    data, statements = await served.statements(NESTED)
    assert statements == 5  # the products, their stock, categories and movements, and the products of the movements
    nodes = [edge["node"] for edge in data["products"]["edges"]]
    assert [node["name"] for node in nodes] == [f"product {number:05}" for number in range(PRODUCTS)]
    for number, node in enumerate(nodes):
        assert node["quantityAt"] == "3"
        assert node["category"] == (None if number % 10 == 9 else {"name": f"category {number % CATEGORIES:03}"})
        expected = [{"id": f"movement-{number}-{movement}", "product": {"name": node["name"]}} for movement in (3, 2)]
        assert node["movements"]["nodes"] == expected
    _, few = await served.statements(NESTED.replace("1000", "10"))
    assert few == statements


@pytest.mark.real
async def test_others_have_their_turns_while_a_long_list_is_worked_on(served: Pantry) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    _, statements = await served.statements(NESTED)
    task.cancel()
    assert (statements, turns > 4 * PRODUCTS / 25) == (5, True)


@pytest.mark.real
async def test_categories_have_their_products_with_two_statements(served: Pantry) -> None:
    data, statements = await served.statements(
        "{ categories(first: 25) { nodes { id products(last: 2) { nodes { ean13 } pageInfo { hasPreviousPage } } } } }"
    )
    assert statements == 2
    for number, category in enumerate(data["categories"]["nodes"]):
        kept = [n for n in range(PRODUCTS) if n % CATEGORIES == number and n % 10 != 9]
        assert category["products"]["nodes"] == [{"ean13": code_of(n)} for n in kept[-2:]]
        assert category["products"]["pageInfo"] == {"hasPreviousPage": True}


LISTS = {
    "products": ("query { products%s }", "ean13"),
    "movements": ("query { movements%s }", "id"),
    "of one": (f'query {{ product(ean13: "{code_of(7)}") {{ list: movements%s }} }}', "id"),
    "consumption": ("query { consumption%s }", "ean13"),
}
"""Lists, and the field that identifies their items."""


@pytest.mark.real
@pytest.mark.parametrize(
    ("which", "size", "length"),
    [("products", 300, 1000), ("movements", 1000, 4000), ("of one", 3, 4), ("consumption", 300, 1000)],
)
async def test_a_list_is_the_same_from_either_end_page_by_page(served: Pantry, which: str, size: int, length: int) -> None:
    forth = await _walk(served, which, f"first: {size}", "after", "endCursor", "hasNextPage")
    back = await _walk(served, which, f"last: {size}", "before", "startCursor", "hasPreviousPage")
    assert [key for page in forth for key in page] == [key for page in reversed(back) for key in page]
    assert len({key for page in forth for key in page}) == length
    assert [len(page) for page in forth[:-1]] == [size] * (len(forth) - 1) == [len(page) for page in back[:-1]]


async def _walk(served: Pantry, which: str, count: str, cursor: str, end: str, more: str) -> list[list[str]]:
    """The keys of all pages."""
    field, key = LISTS[which]
    pages: list[list[str]] = []
    place = ""
    while True:
        wanted = f"edges {{ cursor node {{ {key} }} }} nodes {{ {key} }} pageInfo {{ {end} {more} }}"
        arguments = count + (f', {cursor}: "{place}"' if place else "")
        data = await served.ask(field % f"({arguments}) {{ {wanted} }}")
        page = next(iter(data.values()))
        page = page.get("list", page)
        pages.append([node[key] for node in page["nodes"]])
        assert [edge["node"] for edge in page["edges"]] == page["nodes"]
        place = page["pageInfo"][end]
        assert place == page["edges"][0 if cursor == "before" else -1]["cursor"]
        if not page["pageInfo"][more]:
            return pages


@pytest.mark.real
async def test_a_page_names_further_items_on_both_sides(served: Pantry) -> None:
    info = "nodes { ean13 } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
    first = (await served.ask(f"{{ products(first: 2) {{ {info} }} }}"))["products"]
    assert (first["pageInfo"]["hasNextPage"], first["pageInfo"]["hasPreviousPage"]) == (True, False)
    query = f"query($after: String) {{ products(first: 998, after: $after) {{ {info} }} }}"
    rest = (await served.ask(query, after=first["pageInfo"]["endCursor"]))["products"]
    assert (rest["pageInfo"]["hasNextPage"], rest["pageInfo"]["hasPreviousPage"]) == (False, True)
    assert [node["ean13"] for node in first["nodes"] + rest["nodes"]] == [code_of(number) for number in range(PRODUCTS)]
    query = f"query($before: String) {{ products(last: 5, before: $before) {{ {info} }} }}"
    before = (await served.ask(query, before=rest["pageInfo"]["startCursor"]))["products"]
    assert (before["pageInfo"]["hasNextPage"], before["pageInfo"]["hasPreviousPage"]) == (True, False)
    assert before["nodes"] == first["nodes"]
    empty = (await served.ask(f"{{ products(first: 0) {{ {info} }} }}"))["products"]
    assert empty == {
        "nodes": [],
        "pageInfo": {"hasNextPage": True, "hasPreviousPage": False, "startCursor": None, "endCursor": None},
    }


@pytest.mark.real
async def test_products_can_be_seen_as_they_were(served: Pantry) -> None:
    at = moved_at(5, 1).isoformat()
    data = await served.ask(
        """query($at: DateTime!, $code: String!, $before: DateTime!) {
            then: product(ean13: $code, asOf: $at) { quantity }
            now: product(ean13: $code) { quantity isLowStock quantityAt(time: $at) updatedAt }
            never: product(ean13: $code, asOf: $before) { name }
            none: product(ean13: "0000000000000") { name }
            low: stockReport { totalProducts lowStockProducts }
            early: stockReport(asOf: $at) { totalProducts lowStockProducts }
            list: products(asOf: $at, first: 6) { nodes { quantity } }
        }""",
        at=at,
        code=code_of(5),
        before="2020-01-01T00:00:00+01:00",
    )
    assert data["then"] == {"quantity": "3"}
    assert (data["now"]["quantity"], data["now"]["quantityAt"], data["never"], data["none"]) == ("10", "3", None, None)
    assert data["low"] == {"totalProducts": PRODUCTS, "lowStockProducts": 334}
    assert data["early"] == {"totalProducts": PRODUCTS, "lowStockProducts": 334}
    assert [node["quantity"] for node in data["list"]["nodes"]] == ["3"] * 6


@pytest.mark.real
async def test_personal_texts_stay_sealed(served: Pantry) -> None:
    data = await served.ask("{ products(first: 2) { nodes { movements(first: 1) { nodes { author note } } } } }")
    found = [node for product in data["products"]["nodes"] for node in product["movements"]["nodes"]]
    assert found == [{"author": None, "note": None}] * 2


@pytest.mark.real
async def test_the_shopping_list_has_the_low_products(served: Pantry) -> None:
    data = await served.ask(
        '{ shoppingList(first: 2, category: "category-3") { nodes { ean13 amount product { isLowStock } } } }'
    )
    low = [n for n in range(PRODUCTS) if n % 3 == 0 and n % CATEGORIES == 3 and n % 10 != 9]
    expected = [{"ean13": code_of(n), "amount": "1990", "product": {"isLowStock": True}} for n in low[:2]]
    assert data["shoppingList"]["nodes"] == expected


@pytest.mark.parametrize("which", ["consumption", "shoppingList"])
async def test_a_cursor_is_valid_while_products_come_and_go(tmp_path: Path, which: str) -> None:
    """Also if the list is made for the request: no product is left out, and none is there twice."""
    url = f"sqlite:{tmp_path / 'pantry.db'}"
    await stocked(tmp_path / "pantry.db", products=13, movements=0, categories=1)
    looking = pantry.replica(url, None, max_lag=30)
    listed = [n for n in range(13) if which == "consumption" or n % 3 == 0]
    async with ProcessParts(*looking.parts).running():
        running = Pantry(Evaluator(pantry.function(looking), QueryLimits(seconds=60)), looking)

        async def page(arguments: str) -> tuple[list[int], str, str]:
            found = (
                await running.ask(f"{{ {which}({arguments}) {{ nodes {{ ean13 }} pageInfo {{ startCursor endCursor }} }} }}")
            )[which]
            numbers = [n for node in found["nodes"] for n in range(13) if code_of(n) == node["ean13"]]
            return numbers, found["pageInfo"]["startCursor"], found["pageInfo"]["endCursor"]

        first, _, after = await page("first: 2")
        last, before, _ = await page("last: 2")
        assert (first, last) == (listed[:2], listed[-2:])
        for number in (listed[0], listed[-1]):
            await change(url, f"UPDATE products SET active = 0 WHERE ean13 = '{code_of(number)}'")
        assert (await page(f'first: 2, after: "{after}"'))[0] == [n for n in listed[2:4] if n != listed[-1]]
        assert (await page(f'last: 1, before: "{before}"'))[0] == [listed[-3]]


@pytest.mark.real
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("{ products(first: 1, last: 1) { nodes { name } } }", "give either first or last"),
        (f"{{ categories(first: {LARGEST_PAGE + 1}) {{ nodes {{ id }} }} }}", f"first must be from 0 to {LARGEST_PAGE}"),
        ("{ products(last: -1) { nodes { name } } }", f"last must be from 0 to {LARGEST_PAGE}"),
        ('{ products(after: "x") { nodes { name } } }', "after is not a cursor of this list"),
        ('{ movements(before: "WyJhIiwiYiJd") { nodes { id } } }', "before is not a cursor of this list"),
        ('{ consumption(after: "WzFd") { nodes { name } } }', "after is not a cursor of this list"),
        (
            '{ product(ean13: "1", asOf: "2026-01-01T00:00:00") { name } }',
            "DateTime must be a time in RFC 3339 form, with its offset from UTC",
        ),
        ('{ movements(filter: {from: "today"}) { nodes { id } } }', "DateTime must be a time in RFC 3339 form"),
        (
            '{ movements(filter: {from: "0001-01-01T00:00:00+14:00"}) { nodes { id } } }',
            "DateTime must be a time of the years 1 to 9999 in UTC",
        ),
        (
            '{ product(ean13: "1", asOf: "9999-12-31T23:59:59-14:00") { name } }',
            "DateTime must be a time of the years 1 to 9999 in UTC",
        ),
    ],
)
async def test_a_wrong_page_or_time_is_refused_with_the_reason(served: Pantry, query: str, message: str) -> None:
    assert message in await served.error(query)


@pytest.mark.real
@pytest.mark.parametrize(
    ("query", "objects"),
    [
        ("{ products(first: 1000) { nodes { movements(first: 20) { nodes { id } } } } }", 21_000),
        (
            "{ products(first: 1000) { edges { node { ...M } } } }fragment M on Product { movements(last: 10) { nodes { id } } }",
            11_000,
        ),
        ("query($n: Int = 600) { categories { nodes { products(first: $n) { nodes { id: ean13 } } } } }", 12_020),
        (
            (
                "{ products(first: 900) { nodes { a: category { id } b: category { id } ...M } } }"
                "fragment M on Product { movements(first: 9) { nodes { product { name } } } }"
            ),
            18_900,
        ),
    ],
)
async def test_a_query_that_comes_to_too_many_objects_is_refused_before_it_is_run(
    served: Pantry, query: str, objects: int
) -> None:
    before = served.replica.tables.statements
    result = await served.evaluator.evaluate(GraphQLRequest(query))
    assert result.outcome is QueryOutcome.OVER_LIMIT
    text = f"the query may come to {objects} objects, 10000 are the most: ask for smaller pages"
    assert result.document == {"errors": [{"message": text, "extensions": {"code": "OVER_LIMIT"}}]}
    assert served.replica.tables.statements == before


SIZED = "query($n: Int) { products(first: $n) { nodes { movements(first: 100) { nodes { id } } } } }"


@pytest.mark.real
@pytest.mark.parametrize("size", [500, 500.0])
async def test_a_size_counts_however_it_is_written(served: Pantry, size: float) -> None:
    result = await served.evaluator.evaluate(GraphQLRequest(SIZED, {"n": size}))
    text = "the query may come to 50500 objects, 10000 are the most: ask for smaller pages"
    assert (result.outcome, result.document["errors"][0]["message"]) == (QueryOutcome.OVER_LIMIT, text)
    assert not (await served.evaluator.evaluate(GraphQLRequest(SIZED, {"n": size / 100}))).failed


@pytest.mark.real
async def test_a_report_costs_the_rows_that_it_reads_each_time(served: Pantry) -> None:
    """One for each 250 rows, and one for the object: of 1,000 products, and of 4,000 movements as well."""
    evaluator = Evaluator(served.evaluator.function, QueryLimits(cost=60))
    report = "stockReport { totalProducts }"
    for number, outcome in ((12, QueryOutcome.EXECUTED), (13, QueryOutcome.OVER_LIMIT)):
        query = "{ " + " ".join(f"a{n}: {report}" for n in range(number)) + " }"
        assert (await evaluator.evaluate(GraphQLRequest(query))).outcome is outcome
    for number, outcome in ((2, QueryOutcome.EXECUTED), (3, QueryOutcome.OVER_LIMIT)):
        query = "{ " + " ".join(f"a{n}: shoppingList(first: 1) {{ nodes {{ name }} }}" for n in range(number)) + " }"
        assert (await evaluator.evaluate(GraphQLRequest(query))).outcome is outcome


@pytest.mark.real
async def test_a_wrong_time_in_the_text_has_its_place(served: Pantry) -> None:
    result = await served.evaluator.evaluate(GraphQLRequest('{ product(ean13: "1", asOf: "now") { name } }'))
    assert result.document["errors"][0]["locations"] == [{"line": 1, "column": 29}]


@pytest.mark.real
async def test_depth_and_aliases_are_bounded_here_too(served: Pantry) -> None:
    deep = "{ products { nodes { " + "category { products { nodes { " * 4 + "name" + " } } }" * 4 + " } } }"
    assert "nested deeper" in await served.error(deep)
    aliases = " ".join(f'a{number}: product(ean13: "1") {{ name }}' for number in range(16))
    assert "renames more" in await served.error(f"{{ {aliases} }}")


async def test_a_database_that_is_not_there_is_said_and_found_when_it_comes(tmp_path: Path) -> None:
    database = tmp_path / "pantry.db"
    looking = pantry.replica(f"sqlite:{database}", None, max_lag=30)
    evaluator = Evaluator(pantry.function(looking))
    query = GraphQLRequest("{ stockReport { totalProducts } }")
    async with ProcessParts(*looking.parts).running():
        refused = (await evaluator.evaluate(query)).document
        assert refused["errors"][0]["message"] == "the read model is not available at the moment; try again"
        assert str(tmp_path) not in str(refused)
        await stocked(database, products=2, movements=1, categories=1)
        assert (await evaluator.evaluate(query)).document["data"] == {"stockReport": {"totalProducts": 2}}
        subscription = await evaluator.evaluate(GraphQLRequest("subscription { lowStockChanged { isLowStock } }"))
        assert "text/event-stream" in subscription.document["errors"][0]["message"]


@pytest.mark.real
async def test_requests_at_the_same_time_share_nothing(served: Pantry) -> None:
    page = "name movements(first: 1) { nodes { id } }"
    queries = [f'{{ product(ean13: "{code_of(number)}") {{ {page} }} }}' for number in range(20)]
    found = await asyncio.gather(*(served.ask(query) for query in queries))
    assert [data["product"]["name"] for data in found] == [f"product {number:05}" for number in range(20)]
