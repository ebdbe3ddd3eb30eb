"""Changes for followers of the pantry's events: the deciders of its log, and when a product becomes low."""

from __future__ import annotations

from typing import Any

import attrs

from eventlog import Commit, Decider
from pantry.domain import barcode, category, category_name, person, product
from pantry.domain.barcode import BARCODE
from pantry.domain.category import CATEGORY
from pantry.domain.category_name import CATEGORY_NAME
from pantry.domain.ledger import PRODUCT
from pantry.domain.person import PERSON
from pantry.domain.product import MovementRecorded, MovementType, Product, ProductEdited, UnitChanged

DECIDERS: dict[str, Decider[Any, Any, Any]] = {
    product.CATEGORY: PRODUCT,
    barcode.CATEGORY: BARCODE,
    category.CATEGORY_CATEGORY: CATEGORY,
    category_name.CATEGORY: CATEGORY_NAME,
    person.CATEGORY: PERSON,
}


def edits(commit: Commit) -> bool:
    """Whether the state before its events is needed: an edit changes the minimum, and the event lacks the old one."""
    return any(event.type in {"ProductEdited", "UnitChanged"} for event in commit.body.events)


def crosses_minimum(before: Product | None, event: Any, after: Product) -> bool:
    """Whether the product is low after the event and was not before it, or the other way round.

    `before` is looked at for edits alone.
    """
    if isinstance(event, MovementRecorded):
        change = event.quantity if event.type is MovementType.IN else -event.quantity
        return attrs.evolve(after, stock=event.stock - change).is_low != after.is_low
    return isinstance(event, ProductEdited | UnitChanged) and before is not None and before.is_low != after.is_low
