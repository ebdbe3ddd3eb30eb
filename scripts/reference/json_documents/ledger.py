"""Documents of `pantry`."""

from __future__ import annotations

from pantry.http.api import TABLE
from pantry.http.bodies import CategoryBody, MovementBody, ProductBody
from pantry.http.events import CodeEvent, LowStockEvent, StockEvent
from reference.json_documents.parts import (
    CONFIG,
    MIGRATIONS,
    NUMBER,
    TEXT,
    TOKENS,
    WHOLE,
    YES_OR_NO,
    Schema,
    Types,
    list_of,
    object_of,
    or_null,
)

_PRODUCT = "/api/v1/products/{ean13}"

OF_THE_API = {
    **dict.fromkeys(("product add", "product edit", "product show", "product activate", "product deactivate"), f"GET {_PRODUCT}"),
    "product list": "GET /api/v1/products",
    "product count": f"POST {_PRODUCT}/count",
    "stock": f"GET {_PRODUCT}/stock",
    **dict.fromkeys(("code assign", "code show"), "GET /api/v1/codes/{code}"),
    "code list": "GET /api/v1/codes",
    **dict.fromkeys(("category add", "category edit"), "GET /api/v1/categories/{id}"),
    "category list": "GET /api/v1/categories",
    **dict.fromkeys(("movement add", "movement show", "movement undo"), "GET /api/v1/movements/{id}"),
    "movement list": "GET /api/v1/movements",
    "movement import": "POST /api/v1/movements:batch",
    "product import": "POST /api/v1/products:batch",
    "pair": "POST /api/v1/pairings",
    "report stock": "GET /api/v1/reports/stock",
    "report low-stock": "GET /api/v1/reports/low-stock",
    "report consumption": "GET /api/v1/reports/consumption",
    "report shopping-list": "GET /api/v1/reports/shopping-list",
    "report stocktakes": "GET /api/v1/stocktakes",
}
"""Commands whose document is an answer of the API."""

NO_DOCUMENT = frozenset({"code remove", "person erase", "migrate force", "token revoke"})
"""Commands with --json that write errors as JSON only."""


def schemas() -> Schema:
    """Return the schemas of the documents by command."""
    types = Types(TABLE)
    differing = object_of(ean13=TEXT, **dict.fromkeys(("stored", "summed", "opening", "correction"), NUMBER))
    return types.whole(
        {
            **{command: types.answer(operation) for command, operation in OF_THE_API.items()},
            "scan": _scanned(types),
            "watch": {"anyOf": [_followed(types, name, cls) for name, cls in _EVENTS.items()]},
            "takeover": object_of(
                written=YES_OR_NO,
                **dict.fromkeys(("categories", "products", "movements"), WHOLE),
                differences=list_of(differing),
                problems=list_of(object_of(row=TEXT, text=TEXT, left_out=YES_OR_NO)),
            ),
            **MIGRATIONS,
            **TOKENS,
            "config show": CONFIG,
        }
    )


_EVENTS = {
    "stock": StockEvent,
    "low_stock": LowStockEvent,
    "product": ProductBody,
    "category": CategoryBody,
    "code": CodeEvent,
}
"""The classes of the events of `pantry watch`."""


def _followed(types: Types, name: str, cls: type) -> Schema:
    return object_of(event={"const": name}, id=TEXT, data=types.of(cls))


def _scanned(types: Types) -> Schema:
    """Return the schema of a line of `pantry scan`: a look, a booking, another setting, or a failure."""
    named = {"ean13": TEXT, "name": or_null(TEXT), "unit": or_null(TEXT), "stock": NUMBER, "low": YES_OR_NO}
    return {
        "anyOf": [
            object_of(did={"const": "look"}, **named),
            object_of(did={"enum": ["in", "out", "undo"]}, **named, movement=types.of(MovementBody)),
            object_of(did={"const": "set"}, direction={"enum": ["in", "out"]}, quantity=NUMBER),
            object_of(did={"type": "null"}, line=TEXT, error=TEXT),
        ]
    }
