"""Queries of the pantry's read model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from eventlog import Ciphertext, PersonalDataCipher
from pantry.domain import gtin, product
from pantry.domain.quantity import ONE
from pantry.readmodel.statements import (
    MOVEMENTS,
    MOVEMENTS_OF_ALL,
    UNDONE,
    movements_sql,
    passed,
    past_sql,
    place_of,
    places,
    products_sql,
)
from pantry.readmodel.views import (
    PERSONAL,
    BarcodeView,
    CategoryView,
    ConsumptionView,
    MovementOnProduct,
    MovementView,
    ProductView,
    StocktakeView,
    in_present_units,
)
from projections import ListPart, Queryable, Row, Sql, listed

_MOVEMENT_TYPE = "MovementRecorded"
_CONFIRMED_TYPE = "StockConfirmed"


class PantryQueries:
    """The queries, on one store. `people` opens what is about persons; without it, it reads SEALED."""

    def __init__(self, store: Queryable, people: PersonalDataCipher | None = None) -> None:
        self._store = store
        self._people = people

    async def category(self, category_id: str) -> CategoryView | None:
        """A category by its id."""
        row = await self._store.fetch_one("SELECT * FROM categories WHERE id = $1", category_id)
        return CategoryView.of(row) if row else None

    async def categories(self, *, after: tuple[str, str] | None = None, limit: int) -> Sequence[CategoryView]:
        """At most `limit` categories by name; `after` is name key and id of the last one known."""
        sql = Sql("SELECT * FROM categories")
        if after is not None:
            sql.add("WHERE (name_key, id) > ({}, {})", *after)
        sql.add("ORDER BY name_key, id LIMIT {}", limit)
        return [CategoryView.of(row) for row in await self._store.fetch(sql.text, *sql.arguments)]

    async def product(self, ean13: str, *, as_of: datetime | None = None) -> ProductView | None:
        """A product by its code, now or as it was at a time: None if it was not there yet."""
        if as_of is None:
            row = await self._store.fetch_one("SELECT * FROM products WHERE ean13 = $1", ean13)
        else:
            sql = past_sql(as_of, [ean13])
            row = await self._store.fetch_one(sql.text, *sql.arguments)
        return ProductView.of(row) if row else None

    async def products(
        self,
        *,
        category: str | None = None,
        active: bool | None = None,
        low_stock: bool | None = None,
        search: str | None = None,
        as_of: datetime | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
    ) -> Sequence[ProductView]:
        """At most `limit` products by name; `after` is name key and code of the last one known.

        `search`: the beginning of a code, or a part of a name, as name keys are (see `name_key`).
        """
        sql = products_sql(category=category, active=active, low_stock=low_stock, search=search, as_of=as_of)
        if after is not None:
            sql.add("AND (name_key, ean13) > ({}, {})", *after)
        sql.add("ORDER BY name_key, ean13 LIMIT {}", limit)
        rows = await self._store.fetch_in_thread(sql.text, *sql.arguments)
        return await listed(rows, ProductView.of)

    async def active_rows(self, *, as_of: datetime | None = None, limit: int) -> Sequence[Row]:
        """The rows of at most `limit` active products by name, for a report that makes no view of each."""
        sql = products_sql(active=True, as_of=as_of)
        sql.add("ORDER BY name_key, ean13 LIMIT {}", limit)
        return await self._store.fetch_in_thread(sql.text, *sql.arguments)

    async def movement(self, movement_id: str) -> MovementView | None:
        """A movement by its id."""
        row = await self._store.fetch_one(f"{MOVEMENTS} WHERE m.id = $1", movement_id)
        return (await self._opened([row]))[0] if row else None

    async def _opened(self, rows: Sequence[Row]) -> list[MovementView]:
        """The movements in rows, with their sealed fields opened. Raises Unavailable if the keyring cannot be reached."""
        opened = await self._personal(rows, lambda _: _MOVEMENT_TYPE)
        return [MovementView.of(row, opened.get(number)) for number, row in enumerate(rows)]

    async def _personal(self, rows: Sequence[Row], event_of: Callable[[Row], str]) -> Mapping[int, Mapping[str, str]]:
        """Return the opened personal fields of rows that have sealed ones, by the number of the row.

        `event_of` names the type of the event that a row is made from. Raises Unavailable if the keyring cannot be reached.
        """
        sealed = {
            number: Ciphertext(row["sealed"], f"{product.CATEGORY}.{row['product_ean13']}", event_of(row))
            for number, row in enumerate(rows)
            if row["sealed"] is not None
        }
        if self._people is None or not sealed:
            return {}
        found = await self._people.open(list(sealed.values()))
        return {
            number: dict.fromkeys(PERSONAL, one) if isinstance(one, str) else one
            for number, one in zip(sealed, found, strict=True)
        }

    async def erased(self) -> Sequence[str]:
        """The ids of the keys of all persons who were erased."""
        return [row["key_id"] for row in await self._store.fetch_in_thread("SELECT key_id FROM erasures ORDER BY key_id")]

    async def key_ids(self) -> Sequence[str]:
        """The ids of the keys of all sealed texts."""
        sql = "SELECT DISTINCT substr(sealed, 1, 32) AS id FROM {} WHERE sealed IS NOT NULL"
        sql = f"{sql.format('movements')} UNION {sql.format('stocktakes')}"
        return [row["id"] for row in await self._store.fetch_in_thread(sql)]

    async def movement_on_product(self, movement_id: str) -> MovementOnProduct | None:
        """A movement by its id, as far as undoing it goes."""
        row = await self._store.fetch_one(
            """
            SELECT m.id, m.product_ean13, m.type, m.quantity, m.unit AS moved_unit, m.scale AS moved_scale, r.id AS reversed_by,
                p.undos, p.unit, p.scale
            FROM movements AS m
            JOIN products AS p ON p.ean13 = m.product_ean13 LEFT JOIN movements AS r ON r.reverses = m.id WHERE m.id = $1""",
            movement_id,
        )
        return MovementOnProduct(**row) if row else None

    async def movements(
        self,
        *,
        ean13: str | None = None,
        type: str | None = None,  # noqa: A002 - what it is called everywhere else
        since: datetime | None = None,
        until: datetime | None = None,
        before: tuple[int, int] | None = None,
        limit: int,
    ) -> Sequence[MovementView]:
        """At most `limit` movements, the last in the log first, whose times are from `since` to `until`, both inclusive.

        `before` is sequence and position of the last one known.
        """
        part = ListPart(limit=limit, after=before)
        sql = movements_sql(ean13=ean13, type=type, since=since, until=until, first=part)
        MOVEMENTS_OF_ALL.between(sql, part)
        sql.add("ORDER BY m.sequence DESC, m.position DESC LIMIT {}", limit)
        rows = await self._store.fetch_in_thread(sql.text, *sql.arguments)
        return await self._opened(rows)

    async def stocktakes(
        self,
        *,
        ean13: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: tuple[int, int] | None = None,
        limit: int,
    ) -> Sequence[StocktakeView]:
        """At most `limit` stocktakes, the last in the log first, with and without a difference; arguments: see `movements`."""
        sql = Sql("SELECT * FROM stocktakes WHERE TRUE")
        if ean13 is not None:
            sql.add("AND product_ean13 = {}", ean13)
        if since is not None:
            sql.add("AND created_at >= {}", since)
        if until is not None:
            sql.add("AND created_at <= {}", until)
        if before is not None:
            sql.add("AND (sequence, position) < ({}, {})", *before)
        sql.add("ORDER BY sequence DESC, position DESC LIMIT {}", limit)
        rows = await self._store.fetch_in_thread(sql.text, *sql.arguments)
        opened = await self._personal(rows, lambda row: _CONFIRMED_TYPE if row["movement_id"] is None else _MOVEMENT_TYPE)
        return [StocktakeView.of(row, opened.get(number)) for number, row in enumerate(rows)]

    async def barcode(self, text: str) -> BarcodeView | None:
        """The product that a code of any length names, and the quantity that the code stands for; None if there is none.

        If the digits can stand for two codes, the one that names a product counts.
        """
        if not (codes := gtin.codes_of(text)):
            return None
        sql = Sql("SELECT 1 AS rank, code, product_ean13, factor FROM barcodes")
        sql.any_of("WHERE code IN ({})", codes)
        sql.add(f"UNION ALL SELECT 2, ean13, ean13, {ONE} FROM products")  # noqa: S608 - a constant
        sql.any_of("WHERE ean13 IN ({})", codes)
        rows = await self._store.fetch(sql.text, *sql.arguments)  # one statement: a code that moves is never missing
        if not rows:
            return None
        first = min(rows, key=lambda row: (codes.index(row["code"]), row["rank"]))
        return BarcodeView(code=first["code"], product_ean13=first["product_ean13"], factor=first["factor"])

    async def barcodes(self, *, ean13: str | None = None, after: str | None = None, limit: int) -> Sequence[BarcodeView]:
        """At most `limit` codes of products, apart from the keys of the products, in order; `after` is the last one known."""
        sql = Sql("SELECT code, product_ean13, factor FROM barcodes WHERE code <> product_ean13")
        if ean13 is not None:
            sql.add("AND product_ean13 = {}", ean13)
        if after is not None:
            sql.add("AND code > {}", after)
        sql.add("ORDER BY code LIMIT {}", limit)
        return [BarcodeView(**row) for row in await self._store.fetch_in_thread(sql.text, *sql.arguments)]

    async def consumption(
        self, *, since: datetime, until: datetime, ean13: str | None = None, category: str | None = None
    ) -> Sequence[ConsumptionView]:
        """Sums of the movements of each active product, by name, from `since` to `until`, both inclusive.

        The period is the part of the log between the places of the product at these times (see `statements.places`).
        A movement counts if it is in effect: it was not undone, or its undoing was undone in turn. Undoings do not count. The
        difference of a stocktake is a correction, and neither in nor out. Sums are in the present unit, rounded to thousandths.
        """
        sql = Sql("WHERE active", [passed(since)])
        if ean13 is not None:
            sql.add("AND ean13 = {}", ean13)
        if category is not None:
            sql.add("AND category_id = {}", category)
        kept = sql.text
        if until < datetime.now(UTC):
            sql.arguments.append(until)
            last = f"${len(sql.arguments)}"
            period = f"{places('until', 'kept', last)}, {places('since', 'until', '$1', before=True, until='until')}"
            end = f"AND m.sequence <= p.until / 1000000 AND {place_of('m')} <= p.until"
        else:  # up to the end of the log
            period, end = places("since", "kept", "$1", before=True), ""
        # `reverses IS NULL` would have SQLite look all of these up for each product: it takes a unique index for a selective one.
        # The sums come before the products: a sort of movements is faster without the texts of their products.
        sql.text = f"""
            WITH RECURSIVE {UNDONE}, kept AS (SELECT ean13 FROM products {kept}), {period}, sums AS (
            SELECT m.product_ean13, m.scale,
                coalesce(sum(CASE WHEN m.counted IS NULL AND m.type = 'in' THEN m.quantity END), 0) AS total_in,
                coalesce(sum(CASE WHEN m.counted IS NULL AND m.type = 'out' THEN m.quantity END), 0) AS total_out,
                coalesce(sum(CASE WHEN m.counted IS NULL THEN 0 WHEN m.type = 'in' THEN m.quantity ELSE -m.quantity END), 0)
                    AS total_corrected
            FROM since AS p JOIN movements AS m ON m.product_ean13 = p.ean13 AND coalesce(m.reverses, '') = ''
                AND m.id NOT IN (SELECT original FROM undone)
                AND m.sequence >= p.since / 1000000 AND {place_of("m")} > p.since {end}
            GROUP BY m.product_ean13, m.scale)
            SELECT p.ean13, p.name, p.unit, p.current_stock, p.min_stock, p.name_key, p.created_at, p.scale,
                s.scale AS moved_scale,
                CAST(coalesce(s.total_in, 0) AS BIGINT) AS total_in, CAST(coalesce(s.total_out, 0) AS BIGINT) AS total_out,
                CAST(coalesce(s.total_corrected, 0) AS BIGINT) AS total_corrected
            FROM products AS p LEFT JOIN sums AS s ON s.product_ean13 = p.ean13 {kept}
            ORDER BY p.name_key, p.ean13"""  # noqa: S608 - constants
        rows = await self._store.fetch_in_thread(sql.text, *sql.arguments)
        return await listed(in_present_units(rows), lambda row: ConsumptionView.of(row, since, until))
