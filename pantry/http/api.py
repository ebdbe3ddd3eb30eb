"""The whole route table of the pantry, and its page."""

from __future__ import annotations

from importlib.resources import files

from httpkit.routes import Route
from httpkit.static.pages import Pages
from pantry.http import categories, events, imports, movements, people, products, reports
from pantry.http.services import Services
from servicekit.status_route import projections_route

TABLE: tuple[Route[Services], ...] = (
    *categories.ROUTES,
    *products.ROUTES,
    *movements.ROUTES,
    *imports.ROUTES,
    *reports.ROUTES,
    *people.ROUTES,
    *events.ROUTES,
    projections_route("/api/v1/projections"),
)


def pages() -> Pages:
    """The kitchen's page; where it was not built, a plain one that says so."""
    if files("pantry.http").joinpath("kitchen", "index.html").is_file():
        return Pages("pantry.http", "kitchen")
    return Pages("pantry.http", "page", prefix="/plain/")
