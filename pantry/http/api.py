"""The whole route table of the pantry, and its page."""

from __future__ import annotations

from httpkit import Call, Nothing, Pages, Route, member, message
from pantry.http import barcodes, categories, devices, events, movements, people, products, reports
from pantry.http.imports import movements as many_movements
from pantry.http.imports import products as many_products
from pantry.http.services import Services
from servicekit import projections_route


@message
class Alive:
    """The process answers, in the words of the first program."""

    status: str = member(example="healthy")
    service: str = member(example="pantry")


async def ping(request: Nothing, call: Call[Services]) -> Alive:  # noqa: ARG001
    """Answer as soon as the process does. `/readyz` reports whether the service can do its work."""
    return Alive(status="healthy", service="pantry")


TABLE: tuple[Route[Services], ...] = (
    *categories.ROUTES,
    *products.ROUTES,
    *barcodes.ROUTES,
    *movements.ROUTES,
    *many_products.ROUTES,
    *many_movements.ROUTES,
    *reports.ROUTES,
    *people.ROUTES,
    *devices.ROUTES,
    *events.ROUTES,
    projections_route("/api/v1/projections"),
    Route("GET", "/ping", ping, summary="Whether the process answers", tags=("health",), open=True),
)


def pages() -> Pages:
    """Return the kitchen's page."""
    return Pages("pantry.http", "kitchen", wasm=True, built=True)
