"""The function `pantry` gives the same whichever database its read model is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.readmodels.pantry import function as pantry
from servicekit.parts import ProcessParts
from tests.support.pantry.stocked import code_of, moved_at, stocked

pytestmark = pytest.mark.real

QUERIES = (
    """{ products(first: 40) { edges { cursor node { name active createdAt updatedAt category { name }
        quantityAt(time: "2026-01-03T12:00:00Z")
        movements(first: 2) { edges { cursor node { id createdAt product { name } reversedBy { id } } } } } } } }""",
    "{ categories(first: 9) { nodes { id products(last: 2) { nodes { ean13 } pageInfo { hasPreviousPage startCursor } } } } }",
    """{ movements(filter: {from: "2026-01-02T00:00:05Z", to: "2026-01-04T00:00:00Z", kind: IN}, last: 5) {
        nodes { id } pageInfo { startCursor } } }""",
    f"""{{ product(ean13: "{code_of(3)}", asOf: "{moved_at(3, 1).isoformat()}") {{ quantity }}
        stockReport {{ totalProducts lowStockProducts }} early: stockReport(asOf: "2026-01-03T00:00:00Z") {{ totalProducts }}
        products(filter: {{low: true, search: "prod"}}, first: 2, asOf: "2026-01-03T00:00:00Z") {{
            nodes {{ name updatedAt }} }} }}""",
    """{ consumption(from: "2026-01-01T00:00:00Z", first: 3) { nodes { name amountIn amountOut amountNet } }
        shoppingList { nodes { ean13 amount } } }""",
)
RESUMED = f"""query($after: String, $before: String) {{
    movements(first: 3, after: $after) {{ nodes {{ id }} }}
    product(ean13: "{code_of(3)}") {{ movements(last: 2, before: $before) {{ nodes {{ id }} }} }} }}"""


async def answers(url: str) -> list[Any]:
    """Return the answers of the function over a database to all queries, and the number of statements."""
    looking = pantry.replica(url, None, max_lag=30)
    async with ProcessParts(*looking.parts).running():
        evaluator = Evaluator(pantry.function(looking))
        found: list[Any] = [(await evaluator.evaluate(GraphQLRequest(query))).document for query in QUERIES]
        place = found[2]["data"]["movements"]["pageInfo"]["startCursor"]
        found.append((await evaluator.evaluate(GraphQLRequest(RESUMED, {"after": place, "before": place}))).document)
        assert [document for document in found if "errors" in document] == []
        return [*found, looking.tables.statements]


async def test_the_answers_are_the_same_on_postgres(tmp_path: Path, postgres_url: str) -> None:
    urls = [f"sqlite:{tmp_path / 'pantry.db'}", postgres_url]
    for url in urls:
        await stocked(url, products=30, movements=4, categories=4)
    assert await answers(urls[0]) == await answers(urls[1])
