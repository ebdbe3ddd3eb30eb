"""The requests of users of the pantry, as commands on its aggregates."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import attrs

from eventlog import Conflict, Context, EventLog, OutcomeUnknown
from eventlog.commands import Commands, CommandStep, Outcome
from eventlog.support.ids import hex_digits
from httpkit.server.deadline import TimeoutPool
from pantry.domain import gtin
from pantry.domain.barcode import BARCODE, AssignBarcode, Barcode, BarcodeCommand, BarcodeEvent, RemoveBarcode
from pantry.domain.category import CATEGORY, Category, CategoryEvent, CreateCategory, EditCategory
from pantry.domain.category_name import (
    CATEGORY_NAME,
    CategoryName,
    CategoryNameCommand,
    CategoryNameEvent,
    ReleaseName,
    ReserveName,
    key_of,
)
from pantry.domain.errors import BadInput, Changed, NotFound, PantryError, Taken, UndosMoved
from pantry.domain.ledger import (
    PRODUCT,
    CountStock,
    CreateProduct,
    EditProduct,
    ProductCommand,
    RecordMovement,
    SetActive,
    UndoMovement,
)
from pantry.domain.product import Details, MovementType, Product, ProductEvent
from pantry.readmodel.queries import PantryQueries
from pantry.readmodel.views import MovementOnProduct
from projections.projector.projector import Projector

T = TypeVar("T")

TRIES = 5
"""How often a command that needs more than its aggregate's state looks again after a concurrent change."""
PATIENCE = 1.8
"""Seconds that a command has if somebody waits for it: less than two, so that nothing seems to hang."""
IMPORT_PATIENCE = 120.0
"""Seconds that the movements of one product have in an import."""
AT_A_TIME = 5000
"""Movements of an import that wait for the log together."""
CATCH_UP = 5.0
"""Seconds for which such a command waits for the read model."""

CategoryOutcome = Outcome[Category, CategoryEvent]
ProductOutcome = Outcome[Product, ProductEvent]
BarcodeOutcome = Outcome[Barcode, BarcodeEvent]


@attrs.frozen(kw_only=True)
class NewMovement:
    """A movement to be booked; the quantity in thousandths."""

    ean13: str
    type: MovementType
    quantity: int
    reason: str = ""
    notes: str = ""
    created_by: str = ""


Ordered = Sequence[tuple[int, NewMovement, datetime]]
"""Movements of one product in their order: the number of each, and when it came."""


@attrs.frozen(kw_only=True)
class Remarks:
    """Remarks on a movement: why, notes, and who."""

    reason: str = ""
    notes: str = ""
    created_by: str = ""


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


def _answered(outcome: ProductOutcome | BaseException) -> ProductOutcome | Exception:
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


def _new_id() -> str:
    """A random UUID of version 4 (RFC 9562, section 5.4), at a third of the cost of `uuid.uuid4` and its text."""
    digits = hex_digits()
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Pantry:
    """The write side. Errors: as of `Commands.execute`, and the errors of the domain.

    `now` and `new_id` (UUID v4) are the clock and the source of ids.
    """

    def __init__(
        self,
        log: EventLog,
        commands: Commands,
        queries: PantryQueries,
        projector: Projector,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = _new_id,
        trouble: Callable[[], str] = lambda: "",
    ) -> None:
        """`trouble` returns the reason why appends fail, for clients that wait in vain, or an empty text."""
        self._log = log
        self._commands = commands
        self._queries = queries
        self._projector = projector
        self._now = now
        self._new_id = new_id
        self._trouble = trouble
        self._categories: set[str] = set()
        self._deadlines = {seconds: TimeoutPool(seconds) for seconds in (PATIENCE, IMPORT_PATIENCE)}

    # Categories

    async def create_category(self, name: str, description: str, context: Context | None = None) -> CategoryOutcome:
        """A new category, its name reserved in the same batch. Raises Taken."""
        at, id_ = self._now(), self._new_id()
        # The name comes first: an idempotency key belongs to the first aggregate, and a repetition names another new id.
        steps = (
            CommandStep(CATEGORY_NAME, key_of(name), ReserveName(name=name, category_id=id_, at=at)),
            CommandStep(CATEGORY, id_, CreateCategory(id=id_, name=name, description=description, at=at)),
        )
        outcomes = await self._within(PATIENCE, self._commands.execute_together(steps, context))
        return outcomes[1]

    async def edit_category(
        self, id_: str, name: str, description: str, *, version: int | None = None, context: Context | None = None
    ) -> CategoryOutcome:
        """Replace name and description; a new name is reserved and the old one free again. Raises NotFound, Taken, Changed."""
        for _ in range(TRIES):
            known = await self._category(id_)
            if version is not None and version != known.version:
                raise Changed(f"category {id_} is in version {known.version}, not {version}")
            at = self._now()
            # Under the version just read: if the category is renamed at this moment, the name to be released is another one.
            edit = CommandStep(CATEGORY, id_, EditCategory(name=name, description=description, at=at, version=known.version))
            names: list[CommandStep[CategoryName, CategoryNameCommand, CategoryNameEvent]] = []
            if key_of(known.name) != key_of(name):
                names.append(CommandStep(CATEGORY_NAME, key_of(name), ReserveName(name=name, category_id=id_, at=at)))
                names.append(CommandStep(CATEGORY_NAME, key_of(known.name), ReleaseName(category_id=id_, at=at)))
            try:
                outcomes = await self._within(PATIENCE, self._commands.execute_together([edit, *names], context))
            except Changed:
                continue
            return outcomes[0]
        raise Conflict(f"category {id_} is being renamed by others")

    async def _category(self, id_: str) -> Category:
        commit = await self._log.last(CATEGORY.aggregate(id_), consistent=True)
        if commit is None:
            raise NotFound(f"there is no category {id_}")
        category: Category = commit.state
        return category

    # Products

    async def create_product(self, ean13: str, details: Details, context: Context | None = None) -> ProductOutcome:
        """A new product without stock; its key is taken in the same batch. Raises Taken, BadInput."""
        await self._check_category(details)
        at = self._now()
        # The product comes first: an idempotency key belongs to the first aggregate.
        steps = (
            CommandStep(PRODUCT, ean13, CreateProduct(ean13=ean13, details=details, at=at)),
            CommandStep(BARCODE, ean13, AssignBarcode(code=ean13, ean13=ean13, at=at)),
        )
        outcomes = await self._within(PATIENCE, self._commands.execute_together(steps, context))
        return outcomes[0]

    async def create_product_without_code(self, details: Details, context: Context | None = None) -> ProductOutcome:
        """A new product under an own code, for a thing without a barcode. Raises BadInput, and Taken if the code is not free.

        The code follows from the idempotency key, if there is one, so that a repetition names the same product. It is one of ten
        thousand million, so two things hardly ever get the same.
        """
        seed = hex_digits() if context is None or context.key is None else context.key
        code = gtin.own_code(int(hashlib.sha256(seed.encode()).hexdigest(), 16))
        return await self.create_product(code, details, context)

    async def edit_product(
        self, ean13: str, details: Details, *, version: int | None = None, context: Context | None = None
    ) -> ProductOutcome:
        """Replace what is known of a product. Raises NotFound, Changed, BadInput."""
        await self._check_category(details)
        return await self._on_product(EditProduct(ean13=ean13, details=details, at=self._now(), version=version), context)

    async def set_active(
        self, ean13: str, *, active: bool, version: int | None = None, context: Context | None = None
    ) -> ProductOutcome:
        """Deactivate a product, or activate it again. Raises NotFound, Changed."""
        return await self._on_product(SetActive(ean13=ean13, active=active, at=self._now(), version=version), context)

    async def _check_category(self, details: Details) -> None:
        """A category is never removed: one that was there once is there."""
        id_ = details.category_id
        if id_ is None or id_ in self._categories:
            return
        try:
            await self._category(id_)
        except NotFound as error:
            raise BadInput("category_id", str(error)) from None
        self._categories.add(id_)

    # Barcodes

    async def assign_barcode(self, code: str, ean13: str, factor: int, context: Context | None = None) -> BarcodeOutcome:
        """Let a code name a product. Raises BadInput, Taken, and NotFound if there is no such product."""
        await self._product(ean13)
        if code != ean13 and await self._log.last(PRODUCT.aggregate(code), consistent=True) is not None:
            raise Taken(f"the code {code} is the key of a product")
        return await self._on_barcode(AssignBarcode(code=code, ean13=ean13, factor=factor, at=self._now()), context)

    async def remove_barcode(self, code: str, context: Context | None = None) -> BarcodeOutcome:
        """Free a code. Raises NotFound, and Taken for the key of a product."""
        return await self._on_barcode(RemoveBarcode(code=code, at=self._now()), context)

    async def _product(self, ean13: str) -> None:
        """See that a product exists: it is never removed. Raises NotFound."""
        if await self._log.last(PRODUCT.aggregate(ean13), consistent=True) is None:
            raise NotFound(f"there is no product {ean13}")

    async def _on_barcode(self, command: BarcodeCommand, context: Context | None) -> BarcodeOutcome:
        return await self._within(PATIENCE, self._commands.execute(BARCODE, command.code, command, context))

    # Movements

    async def move(self, movement: NewMovement, context: Context | None = None) -> ProductOutcome:
        """Book a movement. Raises BadInput, NotFound, InsufficientStock."""
        return await self._on_product(self._command(movement, self._now()), context)

    async def move_all(
        self, movements: Mapping[int, NewMovement], context: Context, *, dry_run: bool = False
    ) -> AsyncIterator[Mapping[int, ProductOutcome | Exception]]:
        """Book many movements, each judged separately, the movements of one product in their order. Yield the result by number.

        Results come piece by piece, since the events of many movements do not fit into memory together. With `dry_run` no row is
        booked, and each is judged on the state after the ones before it. The idempotency key of each is the key of the whole and
        its number.
        """
        if dry_run:
            yield await self._judge_all(movements)
            return
        by_product = self._by_product(movements)
        del movements  # what is booked is kept no longer than that takes
        for some in _waves(by_product, AT_A_TIME):
            for found in await asyncio.gather(*(self._move_in_order(code, ordered, context) for code, ordered in some)):
                yield found

    def _by_product(self, movements: Mapping[int, NewMovement]) -> dict[str, Ordered]:
        """Movements by product: the movements of one are booked together, at times in the order of all."""
        found: dict[str, list[tuple[int, NewMovement, datetime]]] = {}
        for number, movement in movements.items():
            found.setdefault(movement.ean13, []).append((number, movement, self._now()))
        return {**found}

    async def _move_in_order(self, ean13: str, ordered: Ordered, context: Context) -> Mapping[int, ProductOutcome | Exception]:
        """Return the results of movements of one product, under their numbers."""

        def own(number: int) -> Context:
            return context if context.key is None else attrs.evolve(context, key=f"{context.key}#{number}")

        each = ((self._command(movement, at), own(number)) for number, movement, at in ordered)
        numbers = [number for number, _, _ in ordered]
        try:
            outcomes = await self._within(IMPORT_PATIENCE, self._commands.execute_in_order(PRODUCT, ean13, each))
        except Exception as error:  # noqa: BLE001 - the answer names it, and the others are not affected
            return dict.fromkeys(numbers, error)
        return {number: _answered(outcome) for number, outcome in zip(numbers, outcomes, strict=True)}

    async def _judge_all(self, movements: Mapping[int, NewMovement]) -> Mapping[int, ProductOutcome | Exception]:
        codes = dict.fromkeys(movement.ean13 for movement in movements.values())
        commits = await asyncio.gather(*(self._log.last(PRODUCT.aggregate(code)) for code in codes))
        states = {code: None if commit is None else commit.state for code, commit in zip(codes, commits, strict=True)}
        results: dict[int, ProductOutcome | Exception] = {}
        for number, movement in movements.items():
            aggregate = PRODUCT.aggregate(movement.ean13)
            try:
                events = tuple(PRODUCT.decide(self._command(movement, self._now()), states[movement.ean13]))
            except PantryError as error:
                results[number] = error
                continue
            states[movement.ean13] = state = PRODUCT.fold(events, states[movement.ean13])
            assert state is not None, "a movement is booked on a product that is there"
            results[number] = Outcome(aggregate=aggregate, sequence=0, events=events, state=state)
        return results

    async def undo(self, movement_id: str, remarks: Remarks, context: Context | None = None) -> ProductOutcome:
        """Make up for a movement by one of the opposite type. Raises NotFound, UndoneAlready, InsufficientStock."""
        ean13 = (await self._movement(movement_id)).product_ean13
        for _ in range(TRIES):
            last = await self._log.last(PRODUCT.aggregate(ean13), consistent=True)
            assert last is not None, "a movement belongs to a product"
            await self._projector.wait_for(last.sequence, CATCH_UP)
            known = await self._movement(movement_id)
            command = UndoMovement(
                id=self._new_id(),
                ean13=ean13,
                undoes=known.id,
                type=MovementType(known.type),
                quantity=known.quantity,
                undone=known.reversed_by is not None,
                undos=known.undos,
                at=self._now(),
                reason=remarks.reason,
                notes=remarks.notes,
                created_by=remarks.created_by,
            )
            try:
                return await self._on_product(command, context)
            except UndosMoved:
                continue
        raise Conflict(f"movements of {ean13} are being undone by others")

    async def _movement(self, movement_id: str) -> MovementOnProduct:
        found = await self._queries.movement_on_product(movement_id)
        if found is None:
            raise NotFound(f"there is no movement {movement_id}")
        return found

    async def count(self, ean13: str, counted: int, remarks: Remarks, context: Context | None = None) -> ProductOutcome:
        """Book the difference between the stock and the count of a stocktake. Raises NotFound, BadInput."""
        command = CountStock(
            id=self._new_id(),
            ean13=ean13,
            counted=counted,
            at=self._now(),
            reason=remarks.reason,
            notes=remarks.notes,
            created_by=remarks.created_by,
        )
        return await self._on_product(command, context)

    def _command(self, movement: NewMovement, at: datetime) -> RecordMovement:
        return RecordMovement(
            id=self._new_id(),
            ean13=movement.ean13,
            type=movement.type,
            quantity=movement.quantity,
            reason=movement.reason,
            notes=movement.notes,
            created_by=movement.created_by,
            at=at,
        )

    async def _on_product(self, command: ProductCommand, context: Context | None) -> ProductOutcome:
        return await self._within(PATIENCE, self._commands.execute(PRODUCT, command.ean13, command, context))

    async def _within(self, patience: float, command: Awaitable[T]) -> T:
        """Return the result of a command. Raises OutcomeUnknown if it is not known in that time; it may take effect yet."""
        limit = self._deadlines[patience].begin()
        try:
            with limit:
                return await command
        except TimeoutError as error:
            if not limit.expired:
                raise
            trouble = self._trouble()
            text = (
                f"the log has not answered within {patience:g} s{trouble and f' ({trouble})'}: the command may take effect yet. "
                "With an idempotency key it may be repeated; without one, look first whether it took effect"
            )
            raise OutcomeUnknown(text) from error
