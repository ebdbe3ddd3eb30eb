"""The requests of users of the pantry, as commands on its aggregates."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs

from eventlog import CommandStep, Conflict, Context, Decider, Outcome, hex_digits
from pantry.commands.execution import PATIENCE, Execution, NewMovement, ProductOutcome
from pantry.domain import gtin
from pantry.domain.barcode import BARCODE, AssignBarcode, Barcode, BarcodeCommand, BarcodeEvent, ConvertBarcode, RemoveBarcode
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
from pantry.domain.errors import BadInput, Changed, NotFound, Taken, UndosMoved, UnitInUse
from pantry.domain.ledger import PRODUCT, CountStock, CreateProduct, EditProduct, ProductCommand, SetActive, UndoMovement, in_unit
from pantry.domain.product import Details, MovementType, Product, ProductEvent
from pantry.readmodel.queries import PantryQueries

TRIES = 5
"""How often a command that needs more than its aggregate's state looks again after a concurrent change."""

_MOST_CODES = 900
"""More changes than that do not fit into one batch."""

CategoryOutcome = Outcome[Category, CategoryEvent]
BarcodeOutcome = Outcome[Barcode, BarcodeEvent]


@attrs.frozen(kw_only=True)
class Remarks:
    """Remarks on a movement: why, notes, and who."""

    reason: str = ""
    notes: str = ""
    created_by: str = ""


class Pantry:
    """The write side, one request at a time. Errors: as of `Commands.execute`, and the errors of the domain.

    `caught_up` waits until the read model has all commits of the log.
    """

    def __init__(self, execution: Execution, queries: PantryQueries, *, caught_up: Callable[[], Awaitable[None]]) -> None:
        self._execution = execution
        self._log = execution.log
        self._commands = execution.commands
        self._now = execution.now
        self._new_id = execution.new_id
        self._within = execution.within
        self._queries = queries
        self._caught_up = caught_up
        self._categories: set[str] = set()

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

    async def create_product(
        self,
        ean13: str,
        details: Details,
        context: Context | None = None,
        *,
        patience: float = PATIENCE,
        refusal: BadInput | None = None,
    ) -> ProductOutcome:
        """A new product without stock; its key is taken in the same batch. Raises Taken, BadInput.

        `refusal` is raised in place of a decision. A repetition of a command that took effect is answered as before all the same.
        """
        await self.check_category(details)
        at = self._now()
        # The product comes first: an idempotency key belongs to the first aggregate.
        steps = (
            CommandStep(_refusing(refusal) or PRODUCT, ean13, CreateProduct(ean13=ean13, details=details, at=at)),
            CommandStep(BARCODE, ean13, AssignBarcode(code=ean13, ean13=ean13, at=at)),
        )
        outcomes = await self._within(patience, self._commands.execute_together(steps, context))
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
        self,
        ean13: str,
        details: Details,
        *,
        version: int | None = None,
        factor: Decimal | None = None,
        keeps_minimum: bool = False,
        context: Context | None = None,
    ) -> ProductOutcome:
        """Replace what is known of a product. Raises NotFound, Changed, BadInput, UnitInUse.

        `factor` and `keeps_minimum`: see `EditProduct`. The codes of the product are converted in the same batch.
        """
        await self.check_category(details)
        at = self._now()
        edit = EditProduct(ean13=ean13, details=details, at=at, version=version, factor=factor, keeps_minimum=keeps_minimum)
        if factor is None:
            return await self._on_product(edit, context)
        await self._caught_up()
        codes = await self._queries.barcodes(ean13=ean13, limit=_MOST_CODES)
        if len(codes) == _MOST_CODES:
            raise UnitInUse(f"the product has {_MOST_CODES} codes or more, which cannot be converted together")
        convert = [
            CommandStep(BARCODE, one.code, ConvertBarcode(code=one.code, ean13=ean13, factor=factor, at=at)) for one in codes
        ]
        steps: Sequence[CommandStep[Any, Any, Any]] = (CommandStep(PRODUCT, ean13, edit), *convert)
        outcomes = await self._within(PATIENCE, self._commands.execute_together(steps, context))
        return outcomes[0]

    async def set_active(
        self, ean13: str, *, active: bool, version: int | None = None, context: Context | None = None
    ) -> ProductOutcome:
        """Deactivate a product, or activate it again. Raises NotFound, Changed."""
        return await self._on_product(SetActive(ean13=ean13, active=active, at=self._now(), version=version), context)

    async def check_category(self, details: Details) -> None:
        """See that the category of a product exists. Raises BadInput.

        A category is never removed: one that was there once is there.
        """
        id_ = details.category_id
        if id_ is None or id_ in self._categories:
            return
        try:
            await self._category(id_)
        except NotFound as error:
            raise BadInput("category_id", str(error)) from None
        self._categories.add(id_)

    async def category_ids(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return the ids of categories by their names. A name that no category has is left out. Raises Unavailable."""
        wanted = list(names)
        found = await asyncio.gather(*(self._log.last(CATEGORY_NAME.aggregate(key_of(name)), consistent=True) for name in wanted))
        holders = {name: commit.state.category_id for name, commit in zip(wanted, found, strict=True) if commit is not None}
        return {name: id_ for name, id_ in holders.items() if id_ is not None}

    # Barcodes

    async def assign_barcode(self, text: str, ean13: str, factor: int, context: Context | None = None) -> BarcodeOutcome:
        """Let a code of any length name a product. Raises BadInput, Taken, and NotFound if there is no such product."""
        if not await self._is_product(ean13):
            raise NotFound(f"there is no product {ean13}")
        code, holder = await self._code_of(text)
        if holder == code != ean13:
            raise Taken(f"the code {code} is the key of a product")
        return await self._on_barcode(AssignBarcode(code=code, ean13=ean13, factor=factor, at=self._now()), context)

    async def remove_barcode(self, text: str, context: Context | None = None) -> BarcodeOutcome:
        """Free a code of any length. Raises NotFound, and Taken for the key of a product."""
        code, holder = await self._code_of(text)
        if holder is None:
            raise NotFound(f"no product has the code {text}")
        if holder == code:
            raise Taken(f"{code} is the key of a product: it cannot be removed")
        return await self._on_barcode(RemoveBarcode(code=code, at=self._now()), context)

    async def _code_of(self, text: str) -> tuple[str, str | None]:
        """Return the code that sound digits stand for, and the product that it names.

        It is the code that names a product, as for `PantryQueries.barcode`. If none does, it is the most probable one.
        """
        codes = gtin.codes_of(text)
        for code in codes:
            claim = await self._log.last(BARCODE.aggregate(code), consistent=True)
            holder = None if claim is None else claim.state.ean13
            if holder is not None or await self._is_product(code):
                return code, holder or code
        return codes[0], None

    async def _is_product(self, ean13: str) -> bool:
        """Whether a code is the key of a product: a product is never removed."""
        return await self._log.last(PRODUCT.aggregate(ean13), consistent=True) is not None

    async def _on_barcode(self, command: BarcodeCommand, context: Context | None) -> BarcodeOutcome:
        return await self._within(PATIENCE, self._commands.execute(BARCODE, command.code, command, context))

    async def _on_product(self, command: ProductCommand, context: Context | None) -> ProductOutcome:
        return await self._within(PATIENCE, self._commands.execute(PRODUCT, command.ean13, command, context))

    # Movements

    async def move(self, movement: NewMovement, context: Context | None = None) -> ProductOutcome:
        """Book a movement. Raises BadInput, NotFound, InsufficientStock, UnitInUse."""
        return await self._on_product(self._execution.record(movement, self._now()), context)

    async def undo(self, movement_id: str, remarks: Remarks, context: Context | None = None) -> ProductOutcome:
        """Make up for a movement by one of the opposite type. Raises NotFound, UndoneAlready, InsufficientStock, UnitInUse."""
        for attempt in range(1, TRIES + 1):
            await self._caught_up()
            known = await self._queries.movement_on_product(movement_id)
            if known is None:
                raise NotFound(f"there is no movement {movement_id}")
            factor = Fraction(known.scale) / Fraction(known.moved_scale)
            command = UndoMovement(
                id=self._new_id(),
                ean13=known.product_ean13,
                undoes=known.id,
                type=MovementType(known.type),
                quantity=in_unit(known.quantity, factor, known.moved_unit, known.unit),
                scale=known.scale,
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
                if attempt == TRIES:
                    raise Conflict(f"movements of {known.product_ean13} are being undone by others") from None
        raise AssertionError("unreachable")

    async def count(
        self, ean13: str, counted: int, remarks: Remarks, context: Context | None = None, *, unit: str | None = None
    ) -> ProductOutcome:
        """Book the difference between the stock and the count of a stocktake. Raises NotFound, BadInput, UnitInUse.

        `unit`: the unit of the count, if the caller knows it.
        """
        command = CountStock(
            id=self._new_id(),
            ean13=ean13,
            counted=counted,
            unit=unit,
            at=self._now(),
            reason=remarks.reason,
            notes=remarks.notes,
            created_by=remarks.created_by,
        )
        return await self._on_product(command, context)


def _refusing(refusal: BadInput | None) -> Decider[Product, ProductCommand, ProductEvent] | None:
    """Return the rules of products with one that refuses every command; None without a refusal."""
    if refusal is None:
        return None

    def decide(command: ProductCommand, state: Product | None) -> Sequence[ProductEvent]:  # noqa: ARG001 - whatever they are
        raise refusal

    return attrs.evolve(PRODUCT, decide=decide)
