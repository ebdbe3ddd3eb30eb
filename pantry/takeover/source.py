"""The rows of the first program: the tables `categories`, `products` and `movements` of its Postgres database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from http import HTTPStatus
from typing import Any

import attrs

from pantry.domain.errors import PantryError
from pantry.domain.quantity import ONE
from projections.stores import DatabaseAddress, connect_postgres, translated

_COLUMNS: Mapping[str, Sequence[str]] = {
    "categories": ("id", "name", "description", "created_at"),
    "products": (
        *("ean13", "name", "description", "unit", "min_stock", "current_stock", "category_id", "active"),
        *("created_at", "updated_at"),
    ),
    "movements": ("id", "product_ean13", "type", "quantity", "reason", "notes", "created_by", "created_at"),
}
_LOCK = 0x7061_6E74
"""The advisory lock of a take-over in the database of the first program."""


class NotTheFirstProgram(PantryError):
    """The database does not have the tables of the first program."""

    status = HTTPStatus.CONFLICT


class TakeOverRunning(PantryError):
    """Another process takes the same database over."""

    status = HTTPStatus.CONFLICT


@attrs.frozen(kw_only=True)
class FormerCategory:
    """A category of the first program."""

    id: str
    name: str
    description: str
    created_at: datetime


@attrs.frozen(kw_only=True)
class FormerProduct:
    """A product of the first program; quantities are thousandths. `current_stock` is stored there, not summed up."""

    ean13: str
    name: str
    description: str
    unit: str
    min_stock: int
    current_stock: int
    category_id: str
    active: bool
    created_at: datetime
    updated_at: datetime


@attrs.frozen(kw_only=True)
class FormerMovement:
    """A movement of the first program; the quantity is in thousandths."""

    id: str
    product_ean13: str
    type: str
    quantity: int
    reason: str
    notes: str
    created_by: str
    created_at: datetime

    @property
    def change(self) -> int:
        """The quantity with its sign."""
        return self.quantity if self.type == "in" else -self.quantity


@attrs.frozen(kw_only=True)
class SourceRows:
    """All rows of the first program at one moment: movements in the order of their times."""

    categories: Sequence[FormerCategory]
    products: Sequence[FormerProduct]
    movements: Sequence[FormerMovement]


@asynccontextmanager
async def source_rows(url: str, zone: tzinfo) -> AsyncIterator[SourceRows]:
    """Read the rows at one moment, and keep other take-overs of the database away until the end.

    `zone` is the time zone of the first program's server: its times have none. The database is only read. Raises
    StoreUnavailable, NotTheFirstProgram, TakeOverRunning.
    """
    address = DatabaseAddress(url)
    with translated(address):
        connection = await connect_postgres(address)
        try:
            await _lock(connection, str(address))
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await _check(connection, str(address))
                rows = {table: await _fetch(connection, table) for table in _COLUMNS}
            made = await asyncio.to_thread(_made, rows, zone)
        except BaseException:
            await connection.close()
            raise
    try:
        yield made
    finally:
        await connection.close()


async def _lock(connection: Any, name: str) -> None:
    if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
        raise TakeOverRunning(f"another process takes {name} over: wait for its end")


async def _check(connection: Any, name: str) -> None:
    """Raise NotTheFirstProgram unless the tables have the columns of the first program, and no column of this program."""
    for table, wanted in _COLUMNS.items():
        found = {
            row["column_name"]
            for row in await connection.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1",
                table,
            )
        }
        if missing := [column for column in wanted if column not in found]:
            raise NotTheFirstProgram(
                f"{name} is not a database of the first program: its table {table} has no column {', '.join(missing)}"
            )
        if "sequence" in found:
            raise NotTheFirstProgram(f"{name} has the tables of this program: there is nothing to take over")


async def _fetch(connection: Any, table: str) -> Sequence[Mapping[str, Any]]:
    order = "id" if table == "categories" else "ean13" if table == "products" else "created_at, id"
    rows: Sequence[Mapping[str, Any]] = await connection.fetch(
        f"SELECT {', '.join(_COLUMNS[table])} FROM {table} ORDER BY {order}"  # noqa: S608 - constants
    )
    return rows


def _made(rows: Mapping[str, Sequence[Mapping[str, Any]]], zone: tzinfo) -> SourceRows:
    def row(record: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _value(name, value, zone) for name, value in record.items()}

    return SourceRows(
        categories=[FormerCategory(**row(record)) for record in rows["categories"]],
        products=[FormerProduct(**row(record)) for record in rows["products"]],
        movements=[FormerMovement(**row(record)) for record in rows["movements"]],
    )


def _value(name: str, value: Any, zone: tzinfo) -> Any:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)
    if isinstance(value, Decimal):
        return int(value * ONE)
    if name in {"ean13", "product_ean13"}:
        return str(value).strip()
    if isinstance(value, bool):
        return value
    return "" if value is None else str(value)
