"""A large log of the pantry for `scale.py`, written by the log, in batches."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from bench.helpers.large import CATEGORIES, START, TOGETHER, WORDS, Size, category_of, pieces, proposal
from bench.helpers.pantry import code
from eventlog.commit import Appended, Proposal
from eventlog.jetstream.log import JetStreamLog
from eventlog.support.ids import hex_digits
from pantry.domain import barcode, category, product
from pantry.domain.product import Details, MovementRecorded, MovementType, Product, ProductCreated

SKEW = 3
"""A movement is of product n * r**SKEW, where r is uniform: the first tenth of the products has 46 % of the movements."""
MOVING = 2
"""Writers of movements at a time, each with separate products."""


class Stock:
    """Products and their movements. A product is kept as a few numbers, since a million of them are under way at once."""

    def __init__(self, log: JetStreamLog, size: Size) -> None:
        self._log = log
        self._size = size
        self._sequences, self._stocks, self._versions = array("q"), array("q"), array("l")
        self._digests: list[str | None] = []
        self._moved = 0
        self._random = random.Random(1)  # noqa: S311 - a benchmark's data, not a secret
        self._between = timedelta(days=500) / max(size.movements, 1)

    async def write(self) -> None:
        """Write all of it."""
        await self._log.append_together([self._category(number) for number in range(CATEGORIES)])
        for numbers in pieces(self._size.products, TOGETHER // 2):
            stored = await self._log.append_together([one for number in numbers for one in self._creation(number)])
            for appended in stored[::2]:
                self._sequences.append(appended.sequence)
                self._digests.append(appended.digest)
                self._stocks.append(0)
                self._versions.append(1)
        await asyncio.gather(*map(self._write_movements, range(MOVING)))

    def _category(self, number: int) -> Proposal:
        event = category.CategoryCreated(id=category_of(number), name=f"category {number}", description="", at=START)
        return proposal(category.CATEGORY_CATEGORY, event.id, event, category.evolve(None, event), START)

    def _creation(self, number: int) -> Iterator[Proposal]:
        ean13 = code(number)
        event = ProductCreated(ean13=ean13, details=_details(number), at=START)
        yield proposal(product.CATEGORY, ean13, event, product.evolve(None, event), START)
        named = barcode.BarcodeAssigned(code=ean13, ean13=ean13, factor=1000, at=START)
        yield proposal(barcode.CATEGORY, ean13, named, barcode.evolve(None, named), START)

    async def _write_movements(self, part: int) -> None:
        """Write a share of the movements, of the products whose number leaves `part` if divided."""
        while (size := min(TOGETHER, self._size.products // MOVING // 2, self._size.movements - self._moved)) > 0:
            self._moved += size
            numbers = self._chosen(size, part)
            proposals = [self._movement(number, self._moved + index) for index, number in enumerate(numbers)]
            for number, appended in zip(numbers, await self._log.append_together(proposals), strict=True):
                self._sequences[number], self._digests[number] = appended.sequence, appended.digest

    def _chosen(self, size: int, part: int) -> Sequence[int]:
        count = self._size.products // MOVING
        chosen = dict[int, None]()
        while len(chosen) < size:
            chosen[int(count * self._random.random() ** SKEW) * MOVING + part] = None
        return list(chosen)

    def _movement(self, number: int, at_step: int) -> Proposal:
        stock = self._stocks[number]
        goes_out = stock >= 2000 and self._random.random() < 0.5
        quantity = 1000 * self._random.randrange(1, 3 if goes_out else 5)
        self._stocks[number] = after = stock - quantity if goes_out else stock + quantity
        at, ean13 = START + self._between * at_step, code(number)
        event = MovementRecorded(
            id=str(UUID(hex_digits())),
            type=MovementType.OUT if goes_out else MovementType.IN,
            quantity=quantity,
            stock=after,
            reason="weekly shopping",
            notes="",
            created_by="",
            at=at,
            unit="pcs",
        )
        self._versions[number] += 1
        state = Product(
            ean13=ean13,
            details=_details(number),
            created_at=START,
            updated_at=at,
            stock=after,
            version=self._versions[number],
        )
        last = Appended(self._sequences[number], digest=self._digests[number])
        return proposal(product.CATEGORY, ean13, event, state, at, last)


def _details(number: int) -> Details:
    name = f"{WORDS[number % len(WORDS)]} {number}"
    return Details(name=name, description="", unit="pcs", min_stock=1000, category_id=category_of(number % CATEGORIES))
