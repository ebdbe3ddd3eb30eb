"""The tables of a pantry in SQLite for the peers of `nested.py`: a look-up of many keys is one statement."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from strawberry.dataloader import DataLoader

SQL: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
Row = sqlite3.Row


class Tables:
    """The statements on the tables in a file."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self._connection.row_factory = Row

    def fetch(self, name: str, *arguments: Any) -> list[Row]:
        """The rows of a statement; a list among the arguments is the list of keys."""
        given = [json.dumps(argument) if isinstance(argument, list) else argument for argument in arguments]
        return self._connection.execute(SQL[name], given).fetchall()


class Loaders:
    """The look-ups of one request, each put together."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._loaders: dict[tuple[Any, ...], DataLoader[str, Any]] = {}

    def product(self, code: str) -> Awaitable[Row | None]:
        """The product with this code."""
        return self._one("products_by_code", "ean13").load(code)

    def category(self, id_: str) -> Awaitable[Row | None]:
        """The category with this id."""
        return self._one("categories", "id").load(id_)

    def stock(self, code: str, at: str) -> Awaitable[Row | None]:
        """The stock of a product at a time."""
        return self._one("stocks", "ean13", at).load(code)

    def movements(self, code: str, first: int) -> Awaitable[list[Row]]:
        """The newest movements of a product."""

        async def fetch(codes: Sequence[str]) -> list[list[Row]]:
            found: dict[str, list[Row]] = {code: [] for code in codes}
            for row in self._tables.fetch("movements", list(codes), first):
                found[row["product_ean13"]].append(row)
            return [found[code] for code in codes]

        return self._loader(("movements", first), fetch).load(code)

    def _one(self, statement: str, key: str, *arguments: Any) -> DataLoader[str, Row | None]:
        async def fetch(keys: Sequence[str]) -> list[Row | None]:
            found = {row[key]: row for row in self._tables.fetch(statement, list(keys), *arguments)}
            return [found.get(key) for key in keys]

        return self._loader((statement, *arguments), fetch)

    def _loader(self, which: tuple[Any, ...], fetch: Callable[[Sequence[str]], Awaitable[list[Any]]]) -> DataLoader[str, Any]:
        if which not in self._loaders:
            self._loaders[which] = DataLoader(load_fn=fetch)
        return self._loaders[which]


def quantity(thousandths: int) -> float:
    """A quantity in its unit."""
    return thousandths / 1000
