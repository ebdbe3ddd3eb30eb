"""The bodies of the answers of the pantry's API (docs/guides/pantry.md)."""

from __future__ import annotations

from httpkit import UNSET, Unset, member, message
from pantry.domain.quantity import number
from pantry.http.values import or_unset
from pantry.readmodel.views import BarcodeView, CategoryView, MovementView, ProductView, StocktakeView

_TIME = "RFC 3339, UTC"


@message
class CategoryBody:
    """A category."""

    id: str = member(description="UUID")
    name: str = member()
    description: str = member()
    created_at: str = member(description=_TIME)

    @classmethod
    def of(cls, category: CategoryView) -> CategoryBody:
        """The category of a row."""
        return cls(id=category.id, name=category.name, description=category.description, created_at=category.created_at)


@message
class ProductBody:
    """A product. It has `category_id` if it is in a category, and `counted_at` after a stocktake."""

    ean13: str = member()
    name: str = member()
    description: str = member()
    unit: str = member()
    min_stock: float = member()
    current_stock: float = member()
    category_id: str | Unset = member(default=UNSET)
    active: bool = member()
    created_at: str = member(description=_TIME)
    updated_at: str = member(description=_TIME)
    counted_at: str | Unset = member(default=UNSET, description="time of the last stocktake; " + _TIME)

    @classmethod
    def of(cls, product: ProductView) -> ProductBody:
        """The product of a row."""
        return cls(
            ean13=product.ean13,
            name=product.name,
            description=product.description,
            unit=product.unit,
            min_stock=number(product.min_stock),
            current_stock=number(product.current_stock),
            category_id=or_unset(product.category_id),
            active=product.active,
            created_at=product.created_at,
            updated_at=product.updated_at,
            counted_at=or_unset(product.counted_at),
        )


@message
class StockBody:
    """The stock of a product."""

    current_stock: float = member()
    ean13: str = member()
    is_low_stock: bool = member(description="whether it has come down to the minimum")
    min_stock: float = member()

    @classmethod
    def of(cls, product: ProductView) -> StockBody:
        """The stock of a product of a row."""
        return cls(
            current_stock=number(product.current_stock),
            ean13=product.ean13,
            is_low_stock=product.is_low,
            min_stock=number(product.min_stock),
        )


@message
class BarcodeBody:
    """A code that names a product."""

    code: str = member(description="13 digits, or 14 for a pack of several")
    product_ean13: str = member()
    factor: float = member(description="the quantity of the product that the code stands for: 6 for a case of six")

    @classmethod
    def of(cls, barcode: BarcodeView) -> BarcodeBody:
        """The code of a row."""
        return cls(code=barcode.code, product_ean13=barcode.product_ean13, factor=number(barcode.factor))


@message
class StocktakeBody:
    """A stocktake. Empty optional texts are left out."""

    product_ean13: str = member()
    counted: float = member()
    unit: str = member(description="the unit that was counted in")
    difference: float = member(description="counted, less the stock that was expected")
    movement_id: str | Unset = member(default=UNSET, description="the movement of the difference")
    reason: str | Unset = member(default=UNSET)
    notes: str | Unset = member(default=UNSET)
    created_by: str | Unset = member(default=UNSET)
    created_at: str = member(description=_TIME)

    @classmethod
    def of(cls, stocktake: StocktakeView) -> StocktakeBody:
        """The stocktake of a row."""
        return cls(
            product_ean13=stocktake.product_ean13,
            counted=number(stocktake.counted),
            unit=stocktake.unit,
            difference=number(stocktake.difference),
            movement_id=or_unset(stocktake.movement_id),
            reason=or_unset(stocktake.reason),
            notes=or_unset(stocktake.notes),
            created_by=or_unset(stocktake.created_by),
            created_at=stocktake.created_at,
        )


@message
class MovementBody:
    """A movement. Empty optional texts are left out."""

    id: str = member(description="UUID v4")
    product_ean13: str = member()
    type: str = member(description="in or out")
    quantity: float = member()
    reason: str | Unset = member(default=UNSET)
    notes: str | Unset = member(default=UNSET)
    created_by: str | Unset = member(default=UNSET)
    created_at: str = member(description=_TIME)
    stock_after: float = member(description="the stock once it was booked")
    unit: str = member(description="the unit that it was booked in, also if the product has another one by now")
    reverses: str | Unset = member(default=UNSET, description="the movement that this one undoes")
    reversed_by: str | Unset = member(default=UNSET, description="the movement that undid this one")
    counted: float | Unset = member(default=UNSET, description="what a stocktake found, if this is the difference")

    @classmethod
    def of(cls, movement: MovementView) -> MovementBody:
        """The movement of a row."""
        return cls(
            id=movement.id,
            product_ean13=movement.product_ean13,
            type=movement.type,
            quantity=number(movement.quantity),
            reason=or_unset(movement.reason),
            notes=or_unset(movement.notes),
            created_by=or_unset(movement.created_by),
            created_at=movement.created_at,
            stock_after=number(movement.stock_after),
            unit=movement.unit,
            reverses=or_unset(movement.reverses),
            reversed_by=or_unset(movement.reversed_by),
            counted=UNSET if movement.counted is None else number(movement.counted),
        )
