"""Whole files of products and movements: each row is judged by the rules separately, the rows of one product in their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime

import attrs
import msgspec

from eventlog import Context, Outcome, Unavailable
from pantry.commands.execution import IMPORT_PATIENCE, Execution, NewMovement, ProductOutcome
from pantry.commands.pantry import Pantry
from pantry.domain.barcode import BARCODE, AssignBarcode
from pantry.domain.errors import BadInput, InsufficientStock, PantryError
from pantry.domain.ledger import PRODUCT, CreateProduct, refusal
from pantry.domain.product import Details, MovementRefused, Product

AT_A_TIME = 5000
"""Movements of an import that wait for the log together."""
CREATED_AT_A_TIME = 500
"""The same of new products, each of which is an atomic batch."""

_JUDGED_WITHOUT = (
    "an earlier row of the product has no answer, and the stock without it does not allow this one: a repetition with the same "
    "key tells the result"
)

_JUDGED_OTHERWISE = (
    "the log has a refusal of this row for its stock, and the rules of this release allow it: send the row with another key"
)

Ordered = Sequence[tuple[int, NewMovement, datetime]]
"""Movements of one product in their order: the number of each, and when it came."""
Results = Mapping[int, ProductOutcome | Exception]
"""The results of some rows by their numbers."""


@attrs.frozen(kw_only=True)
class NewProduct:
    """A product to be created. `category` is the name of its category, in place of the id."""

    ean13: str
    details: Details
    category: str = ""

    def with_category(self, ids: Mapping[str, str]) -> Details:
        """Return the details with the id of the category; `ids` by the names of categories. Raises BadInput."""
        if not self.category:
            return self.details
        id_ = ids.get(self.category)
        if id_ is None:
            raise BadInput("category", f"there is no category {self.category!r}: create it first, or leave the value out")
        if self.details.category_id not in {None, id_}:
            raise BadInput("category", f"category_id is not the id of {self.category!r}, which is {id_}: leave one of them out")
        return attrs.evolve(self.details, category_id=id_)


class Imports:
    """The write side of imports. With `dry_run` no row takes effect, and each is judged on the state after the ones before it.

    Results come piece by piece, since the events of many rows do not fit into memory together. The idempotency key of a row is
    the key of the whole and its number.
    """

    def __init__(self, execution: Execution, pantry: Pantry) -> None:
        self._execution = execution
        self._pantry = pantry

    async def book(
        self, movements: Mapping[int, NewMovement], context: Context, *, dry_run: bool = False
    ) -> AsyncIterator[Results]:
        """Book movements, the movements of one product in their order. Yield the results by number."""
        if dry_run:
            yield await self._judge_movements(movements)
            return
        by_product = self._by_product(movements)
        unknown: set[str] = set()
        del movements  # free booked rows early
        for some in _waves(by_product, AT_A_TIME):
            for found in await asyncio.gather(*(self._book_in_order(code, ordered, context, unknown) for code, ordered in some)):
                yield found

    async def create(
        self, products: Mapping[int, NewProduct], context: Context, *, dry_run: bool = False
    ) -> AsyncIterator[Results]:
        """Create products without stock. Yield the results by number; of two rows with one code the first counts."""
        known: dict[str, Product] = {}
        ids = await self._pantry.category_ids({new.category for new in products.values()} - {""})

        async def judged(number: int) -> ProductOutcome:
            new = products[number]
            return await self._judge_product(new.ean13, new.with_category(ids), known)

        async def created(number: int) -> ProductOutcome:
            new, refused = products[number], None
            details = new.details
            try:
                details = new.with_category(ids)
            except BadInput as error:
                refused = error
            own = _of_row(context, number)
            return await self._pantry.create_product(new.ean13, details, own, patience=IMPORT_PATIENCE, refusal=refused)

        for wave in _different(products, CREATED_AT_A_TIME):
            outcomes = await asyncio.gather(*map(judged if dry_run else created, wave), return_exceptions=True)
            yield {number: _answered(outcome) for number, outcome in zip(wave, outcomes, strict=True)}

    # Movements

    def _by_product(self, movements: Mapping[int, NewMovement]) -> dict[str, Ordered]:
        """Movements by product: the movements of one are booked together, at times in the order of all."""
        found: dict[str, list[tuple[int, NewMovement, datetime]]] = {}
        for number, movement in movements.items():
            found.setdefault(movement.ean13, []).append((number, movement, self._execution.now()))
        return {**found}

    async def _book_in_order(self, ean13: str, ordered: Ordered, context: Context, unknown: set[str]) -> Results:
        """Return the results of movements of one product, under their numbers.

        `unknown` are the products of which a row has no answer: the stock that refuses a later row may lack the earlier one.
        """
        execution = self._execution
        # A refusal for which an earlier row may be the reason is not kept.
        keeps = context.key is not None and ean13 not in unknown
        each = (
            (execution.record(movement, at, keeps_refusal=keeps), _of_row(context, number)) for number, movement, at in ordered
        )
        try:
            booking = execution.commands.execute_in_order(PRODUCT, ean13, each)
            outcomes = await execution.within(IMPORT_PATIENCE, booking)
        except Exception as error:  # noqa: BLE001 - the answer names it, and the others are not affected
            outcomes = [error] * len(ordered)
        results: dict[int, ProductOutcome | Exception] = {}
        for (number, _, _), outcome in zip(ordered, map(_answered, outcomes), strict=True):
            is_doubtful = ean13 in unknown and isinstance(outcome, InsufficientStock | BadInput)
            results[number] = Unavailable(_JUDGED_WITHOUT) if is_doubtful else outcome
            if isinstance(outcome, Unavailable):
                unknown.add(ean13)
        return results

    async def _judge_movements(self, movements: Mapping[int, NewMovement]) -> Results:
        codes = dict.fromkeys(movement.ean13 for movement in movements.values())
        commits = await asyncio.gather(*(self._execution.log.last(PRODUCT.aggregate(code)) for code in codes))
        states = {code: None if commit is None else commit.state for code, commit in zip(codes, commits, strict=True)}
        results: dict[int, ProductOutcome | Exception] = {}
        for number, movement in movements.items():
            aggregate = PRODUCT.aggregate(movement.ean13)
            command = self._execution.record(movement, self._execution.now())
            try:
                events = tuple(PRODUCT.decide(command, states[movement.ean13]))
            except PantryError as error:
                results[number] = error
                continue
            states[movement.ean13] = state = PRODUCT.fold(events, states[movement.ean13])
            assert state is not None, "a movement is booked on a product that is there"
            results[number] = Outcome(aggregate=aggregate, sequence=0, events=events, state=state)
        return results

    # Products

    async def _judge_product(self, ean13: str, details: Details, known: dict[str, Product]) -> ProductOutcome:
        """Decide on a product as if the products of `known` were there, and add it to them. Raises Taken, BadInput."""
        await self._pantry.check_category(details)
        log, at = self._execution.log, self._execution.now()
        aggregate = PRODUCT.aggregate(ean13)
        stored, code = await asyncio.gather(log.last(aggregate), log.last(BARCODE.aggregate(ean13)))
        state = known.get(ean13) or (None if stored is None else stored.state)
        events = tuple(PRODUCT.decide(CreateProduct(ean13=ean13, details=details, at=at), state))
        assign = AssignBarcode(code=ean13, ean13=ean13, at=at)
        tuple(BARCODE.decide(assign, None if code is None else code.state))
        made = PRODUCT.fold(events, state)
        assert made is not None, "a product that is created is there"
        known[ean13] = made
        return Outcome(aggregate=aggregate, sequence=0, events=events, state=made)


def _of_row(context: Context, number: int) -> Context:
    return context if context.key is None else msgspec.structs.replace(context, key=f"{context.key}#{number}")


def _waves(by_product: dict[str, Ordered], most: int) -> Iterator[Sequence[tuple[str, Ordered]]]:
    """Products with their movements, in lists of at most `most` movements. A product with more has several lists, in order.

    They are taken out: a movement that is booked is not kept in memory for longer.
    """
    wave: list[tuple[str, Ordered]] = []
    size = 0
    for ean13 in list(by_product):
        movements = by_product.pop(ean13)
        for start in range(0, len(movements), most):
            part = movements[start : start + most]
            if size + len(part) > most:
                yield wave
                wave, size = [], 0
            wave.append((ean13, part))
            size += len(part)
    if wave:
        yield wave


def _different(products: Mapping[int, NewProduct], most: int) -> Iterator[Sequence[int]]:
    """The numbers of products in their order, in lists of at most `most` of which no two have the same code."""
    wave: dict[str, int] = {}
    for number, product in products.items():
        if product.ean13 in wave or len(wave) == most:
            yield [*wave.values()]
            wave = {}
        wave[product.ean13] = number
    if wave:
        yield [*wave.values()]


def _answered(outcome: ProductOutcome | BaseException) -> ProductOutcome | Exception:
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    if isinstance(outcome, Outcome) and isinstance(event := outcome.events[0], MovementRefused):
        return refusal(event.type, event.quantity, event.stock) or Unavailable(_JUDGED_OTHERWISE)
    return outcome
