"""The pantry's HTTP API as methods: arguments in, values of `pantry.client.resources` out.

The errors are in `terminalkit.client`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from pantry.client.resources import (
    Barcode,
    Category,
    Consumption,
    Count,
    Imported,
    ImportedMovements,
    ImportedProducts,
    Movement,
    Pairing,
    Product,
    Stock,
    StockReport,
    Stocktake,
    ToBuy,
)
from terminalkit.client import (
    Conflicting,
    Rejected,
    ServerAnswer,
    ServiceClient,
    Signal,
    TimedOut,
    Unavailable,
    only,
    parse,
    parse_list,
    segment,
)

IMPORTING = 300.0
"""Seconds that an import may take at least."""

_API = "/api/v1"
_ATTEMPTS = 8
_PAUSE = 0.02
"""Seconds after the first attempt at most, growing by the same after each: the next look may still show the old value."""
_PAUSE_OF_IMPORTS = 1.0
"""Seconds before an import is made a second time: the log did not answer just now."""

R = TypeVar("R", bound=Imported)


class Client(ServiceClient):
    """A client of one pantry. Quantities are JSON numbers with at most three decimal places; times are RFC 3339."""

    name = "pantry"

    # Categories

    async def categories(self) -> Sequence[Category]:
        """The categories by name."""
        return await self._list(Category, f"{_API}/categories", {})

    async def add_category(self, name: str, description: str = "") -> Category:
        """Create a category. Raises Conflicting where the name is taken."""
        answer = await self._post("/categories", {"name": name, "description": description})
        return parse(Category, answer.document)

    async def edit_category(self, id_: str, changes: Mapping[str, Any]) -> Category:
        """Change name or description. Raises NotFound, Conflicting where the name is taken."""
        document = await self._edit(f"/categories/{segment(id_)}", ("name", "description"), changes)
        return parse(Category, document)

    # Products

    async def products(
        self,
        *,
        search: str | None = None,
        category: str | None = None,
        active: bool | None = None,
        low_stock: bool | None = None,
        as_of: str | None = None,
        limit: int | None = None,
    ) -> Sequence[Product]:
        """Products by name, `limit` at most (None: however many there are)."""
        query = only(search=search, category=category, as_of=as_of, active=active, low_stock=low_stock)
        return await self._list(Product, f"{_API}/products", query, limit)

    async def product(self, ean13: str, *, as_of: str | None = None) -> Product:
        """A product, now or at some time. Raises NotFound."""
        return parse(Product, (await self._get(_product(ean13), only(as_of=as_of))).document)

    async def add_product(self, ean13: str, details: Mapping[str, Any]) -> Product:
        """Create a product without stock. Raises Conflicting if it is there."""
        return parse(Product, (await self._post(_product(ean13), details)).document)

    async def add_product_without_code(self, details: Mapping[str, Any]) -> Product:
        """Create a product without stock, under an own code, for a thing without a barcode."""
        return parse(Product, (await self._post("/products", details)).document)

    async def edit_product(self, ean13: str, changes: Mapping[str, Any]) -> Product:
        """Change these details, also if others are changed at the same time. Raises NotFound, Conflicting.

        `factor`: how many of the new unit one of the present unit is. It converts the stock, and the minimum if that is left out.
        """
        fields = ("name", "unit", "category_id", "description", *(() if "factor" in changes else ("min_stock",)))
        return parse(Product, await self._edit(_product(ean13), fields, changes))

    async def deactivate(self, ean13: str) -> None:
        """Keep a product no more. Raises NotFound."""
        await self._transport.request("DELETE", f"{_API}{_product(ean13)}")

    async def activate(self, ean13: str) -> Product:
        """Keep a product again. Raises NotFound."""
        return parse(Product, (await self._post(f"{_product(ean13)}/activate", None)).document)

    async def count(self, ean13: str, counted: float, remarks: Mapping[str, str]) -> Count:
        """Book what a stocktake found. Raises NotFound."""
        return parse(Count, (await self._post(f"{_product(ean13)}/count", {"counted": counted, **remarks})).document)

    async def stock(self, ean13: str, *, as_of: str | None = None) -> Stock:
        """The stock of a product, now or at some time. Raises NotFound."""
        return parse(Stock, (await self._get(f"{_product(ean13)}/stock", only(as_of=as_of))).document)

    async def import_products(
        self, rows: bytes, media: str, *, dry_run: bool = False, key: str | None = None
    ) -> ImportedProducts:
        """Create many products without stock: rows of the type `media`, which is JSON, NDJSON or CSV.

        A repetition with the same `key` creates nothing twice.
        """
        return await self._import(ImportedProducts, "/products:batch", rows, media, dry_run=dry_run, key=key)

    # Codes

    async def barcodes(self, *, ean13: str | None = None) -> Sequence[Barcode]:
        """The codes of all products, or of one, apart from the keys of the products."""
        return await self._list(Barcode, f"{_API}/codes", only(ean13=ean13))

    async def barcode(self, code: str) -> Barcode:
        """The product of a code of any length. Raises NotFound."""
        return parse(Barcode, (await self._get(f"/codes/{segment(code)}", {})).document)

    async def assign_barcode(self, code: str, ean13: str, factor: float) -> Barcode:
        """Let a code name a product. Raises NotFound, and Conflicting if it names another one."""
        body = {"product_ean13": ean13, "factor": factor}
        return parse(Barcode, (await self._transport.request("PUT", f"{_API}/codes/{segment(code)}", body=body)).document)

    async def remove_barcode(self, code: str) -> None:
        """Free a code. Raises NotFound."""
        await self._transport.request("DELETE", f"{_API}/codes/{segment(code)}")

    # Movements

    async def move(self, ean13: str, type_: str, quantity: float, remarks: Mapping[str, str] | None = None) -> Movement:
        """Book `in` or `out`. Raises NotFound, Conflicting where the stock does not cover it."""
        body = {"product_ean13": ean13, "type": type_, "quantity": quantity, **(remarks or {})}
        return parse(Movement, (await self._post("/movements", body)).document)

    async def undo(self, id_: str, remarks: Mapping[str, str] | None = None) -> Movement:
        """Book the opposite of a movement. Raises NotFound, Conflicting if it was undone, or the stock does not allow it."""
        return parse(Movement, (await self._post(f"/movements/{segment(id_)}/undo", dict(remarks or {}))).document)

    async def movements(
        self,
        *,
        ean13: str | None = None,
        type_: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> Sequence[Movement]:
        """Movements, newest first, `limit` at most (None: however many there are)."""
        query = only(ean13=ean13, type=type_, to=until, **{"from": since})
        return await self._list(Movement, f"{_API}/movements", query, limit)

    async def stocktakes(
        self, *, ean13: str | None = None, since: str | None = None, until: str | None = None, limit: int | None = None
    ) -> Sequence[Stocktake]:
        """Stocktakes, newest first, `limit` at most (None: however many there are)."""
        query = only(ean13=ean13, to=until, **{"from": since})
        return await self._list(Stocktake, f"{_API}/stocktakes", query, limit)

    async def movement(self, id_: str) -> Movement:
        """A movement. Raises NotFound."""
        return parse(Movement, (await self._get(f"/movements/{segment(id_)}", {})).document)

    async def import_movements(
        self, rows: bytes, media: str, *, dry_run: bool = False, key: str | None = None
    ) -> ImportedMovements:
        """Book many movements: rows of the type `media`, which is JSON, NDJSON or CSV.

        A repetition with the same `key` books nothing twice.
        """
        return await self._import(ImportedMovements, "/movements:batch", rows, media, dry_run=dry_run, key=key)

    # People

    async def erase_person(self, name: str) -> None:
        """Make what was written of a person unreadable, whether or not there is anything. For good."""
        await self._post("/people:erase", {"name": name})

    # Devices

    async def pair(self, name: str, *, scope: str | None = None, address: str | None = None) -> Pairing:
        """Make a code for a device. `address` of the page for the device, if it is not known to the server."""
        return parse(Pairing, (await self._post("/pairings", only(name=name, scope=scope, address=address))).document)

    # Reports

    async def stock_report(self, *, as_of: str | None = None) -> StockReport:
        """The stock of all products that are kept."""
        return parse(StockReport, (await self._get("/reports/stock", only(as_of=as_of))).document)

    async def low_stock(self, *, as_of: str | None = None) -> Sequence[Product]:
        """The products that are low."""
        return parse_list(Product, (await self._get("/reports/low-stock", only(as_of=as_of))).document)

    async def consumption(
        self, *, since: str | None = None, until: str | None = None, ean13: str | None = None, category: str | None = None
    ) -> Sequence[Consumption]:
        """Return the consumption of a period, by default the four weeks up to now."""
        query = only(to=until, ean13=ean13, category=category, **{"from": since})
        return parse_list(Consumption, (await self._get("/reports/consumption", query)).document)

    async def shopping_list(self, *, category: str | None = None) -> Sequence[ToBuy]:
        """Return the shopping list."""
        return parse_list(ToBuy, (await self._get("/reports/shopping-list", only(category=category))).document)

    async def report_csv(self, name: str, query: Mapping[str, str | None]) -> str:
        """A report as CSV, by its name in the address: `shopping-list`."""
        return await self._transport.text(f"{_API}/reports/{segment(name)}", query=only(**query), media="text/csv")

    # Events

    def feed(self, *, events: Sequence[str] = (), after: str | None = None) -> AsyncGenerator[Signal, None]:
        """The events of these names (none: all) behind an event id (None: from now on), as in `follow` of terminalkit.

        Close it (`contextlib.aclosing`) before the client.
        """
        return self._feed(f"{_API}/events" + (f"?events={','.join(events)}" if events else ""), after)

    async def _get(self, path: str, query: Mapping[str, str]) -> ServerAnswer:
        return await self._transport.request("GET", f"{_API}{path}", query=query)

    async def _post(
        self,
        path: str,
        body: object,
        *,
        query: Mapping[str, str] | None = None,
        media: str | None = None,
        at_least: float = 0.0,
        key: str | None = None,
    ) -> ServerAnswer:
        """A POST that takes effect once, also where the first try was not answered in time."""
        again = (Unavailable, TimedOut)
        try:
            return await self._command(f"{_API}{path}", body, query=query, media=media, at_least=at_least, again=again, key=key)
        except Rejected as error:
            if error.kind == "insufficient-stock":  # 422 as specified, although the request is well-formed
                raise Conflicting(str(error), status=error.status, kind=error.kind) from error
            raise

    async def _import(self, type_: type[R], path: str, rows: bytes, media: str, *, dry_run: bool, key: str | None) -> R:
        """An import, made a second time under the same key if it is not known whether some of its rows took effect."""
        query = {"dry_run": "true"} if dry_run else {}
        key = key or str(uuid4())

        async def post() -> R:
            answer = await self._post(path, rows, query=query, media=media, at_least=IMPORTING, key=key)
            return parse(type_, answer.document)

        done = await post()
        if not done.unknown:
            return done
        await asyncio.sleep(_PAUSE_OF_IMPORTS)
        return await post()

    async def _edit(self, path: str, fields: Sequence[str], changes: Mapping[str, Any]) -> object:
        """Replace the values by the same and these changes, reloaded if another client changes them at the same time."""
        for attempt in range(1, _ATTEMPTS + 1):
            seen = await self._get(path, {})
            body = {name: seen.document[name] for name in fields if name in seen.document} | dict(changes)
            headers = {} if seen.etag is None else {"If-Match": seen.etag}
            try:
                return (await self._transport.request("PUT", f"{_API}{path}", body=body, headers=headers)).document
            except Conflicting as error:
                if error.status != 412 or attempt == _ATTEMPTS:
                    raise
                await asyncio.sleep(random.uniform(0, _PAUSE * attempt))  # noqa: S311 - jitter, not a secret
        raise AssertionError("the last attempt returns or raises")


def _product(ean13: str) -> str:
    return f"/products/{segment(ean13)}"
