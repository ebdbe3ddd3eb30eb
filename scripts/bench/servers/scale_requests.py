"""The requests of `scale.py`: reads of each service, and a movement, at random places of the large system."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.helpers import large
from bench.helpers.http import get, post
from bench.helpers.large import Size
from bench.helpers.pantry import code
from gctd.domain.analysis import analysis_id

Request = Callable[[int], bytes]


def reads_of_pantry(size: Size) -> Mapping[str, Request]:
    """The reads, each as a function from a random number to a path."""
    products, at = size.products, "/api/v1"

    def of(number: int) -> str:
        return code(number % products)

    paths: Mapping[str, Callable[[int], str]] = {
        "page of the kitchen": lambda _: "/",
        "a product": lambda n: f"{at}/products/{of(n)}",
        "a scanned code": lambda n: f"{at}/codes/{of(n)}",
        "first page of the products": lambda _: f"{at}/products?limit=50",
        "products of a category": lambda n: f"{at}/products?category={large.category_of(n % large.CATEGORIES)}&limit=50",
        "search for a name": lambda n: f"{at}/products?search={large.WORDS[n % len(large.WORDS)]}%20{n % products}&limit=50",
        "low products": lambda _: f"{at}/products?low_stock=true&limit=50",
        "movements of a product": lambda n: f"{at}/movements?ean13={of(n)}&limit=50",
        "latest movements": lambda _: f"{at}/movements?limit=50",
        "a product as of a past time": lambda n: f"{at}/products/{of(n)}?as_of=2024-06-01T00:00:00Z",
        "consumption of a product": lambda n: (
            f"{at}/reports/consumption?from=2025-01-01T00:00:00Z&to=2025-02-01T00:00:00Z&ean13={of(n)}"
        ),
        "stock report of all products": lambda _: f"{at}/reports/stock",
        "low-stock report": lambda _: f"{at}/reports/low-stock",
        "consumption of all products": lambda _: f"{at}/reports/consumption?from=2025-01-01T00:00:00Z&to=2025-02-01T00:00:00Z",
    }

    def movement(number: int) -> bytes:
        return post(f"{at}/movements", b'{"product_ean13": "%s", "type": "in", "quantity": 1}' % of(number).encode())

    return {"a booked movement": movement, **{name: _asking(path) for name, path in paths.items()}}


def _asking(path: Callable[[int], str]) -> Request:
    return lambda number: get(path(number))


def reads_of_tracker(size: Size) -> Mapping[str, Request]:
    """The reads, each as a function from a random number to a path."""
    each = size.functions // size.repositories

    def of(number: int) -> str:
        return analysis_id(large.repository(number % size.repositories), ".")

    paths: Mapping[str, Callable[[int], str]] = {
        "page of the dashboard": lambda _: "/",
        "first page of the tasks": lambda _: "/api/tasks?limit=50",
        "tasks of a status without one": lambda _: "/api/tasks?status=failed&limit=50",
        "a task": lambda n: f"/api/tasks/{large.task_of(n % size.tasks)}",
        "result of a task": lambda n: f"/api/tasks/{large.task_of(n % size.tasks)}/result?entries=50",
        "repositories": lambda _: "/api/repos/registered?limit=50",
        "state of a repository": lambda n: f"/api/repos/status?url={large.repository_url(n % size.repositories)}",
        "latest analyses": lambda _: "/api/repos?limit=50",
        "an analysis with its functions": lambda n: f"/api/repos/{of(n)}",
        "history of a project": lambda n: f"/api/repos/{of(n)}/history?limit=20",
        "a function": lambda n: f"/api/repos/{of(n)}/functions/{large.function_key(n % each)}",
        "history of a function": lambda n: f"/api/repos/{of(n)}/functions/{large.function_key(n % each)}/history",
        "search in the log": lambda _: "/api/log?limit=50",
    }
    return {name: _asking(path) for name, path in paths.items()}


READS_OF = {"pantry": reads_of_pantry, "gctd": reads_of_tracker}
"""The requests of each service."""
