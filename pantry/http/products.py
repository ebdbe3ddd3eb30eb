"""Routes of products and their stock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus

from httpkit import UNSET, Answer, Call, Route, Unset, decode_cursor, member, message, moment, page_of, path, query
from pantry.commands.execution import ProductOutcome
from pantry.domain.errors import NotFound
from pantry.domain.product import CATEGORY_ID_LENGTH, NAME_LENGTH, UNIT_LENGTH, Details
from pantry.http.bodies import ProductBody, StockBody
from pantry.http.categories import LONGEST_TEXT, PAGE
from pantry.http.services import Services, version_wanted
from pantry.http.values import CATEGORY_ID, CURSOR, EAN13_SCHEMA, EXAMPLE, amount, checked_ean13, flag, naming, unit_factor
from pantry.readmodel.tables import name_key
from pantry.readmodel.views import ProductView
from servicekit import answer

_WRONG = HTTPStatus.UNPROCESSABLE_ENTITY


_WITHOUT_EFFECT = "of an answer; it has no effect here"


@message
class ListProducts:
    """Which products to list."""

    category: str | None = query(
        default=None, max_length=CATEGORY_ID_LENGTH, description="only products of this category", empty=True
    )
    active: bool | None = flag("only active products, or only inactive ones")
    low_stock: bool | None = query(default=None, description="only those whose stock has come down to the minimum, or has not")
    search: str | None = query(default=None, min_length=1, max_length=100, description="part of a name, or beginning of a code")
    as_of: datetime | None = moment(description="as it was then")
    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=CURSOR, max_length=4096, description="resumes after a page")


@message
class OneProduct:
    """Names a product."""

    ean13: str = path(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)


@message
class ProductAt:
    """Names a product, now or at some time."""

    ean13: str = path(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE)
    as_of: datetime | None = moment(description="as it was then")


@message
class DescribedProduct:
    """The texts of a product; a missing one becomes empty."""

    name: str = naming(NAME_LENGTH, example="Flour")
    unit: str = naming(UNIT_LENGTH, example="kg")
    category_id: str | None = member(default=None, max_length=CATEGORY_ID_LENGTH, schema=CATEGORY_ID)
    description: str | None = member(default=None, max_length=LONGEST_TEXT, multiline=True)

    def with_minimum(self, min_stock: int) -> Details:
        """The same as the domain has it, with a minimum: an empty category is none."""
        return Details(
            name=self.name,
            description=self.description or "",
            unit=self.unit,
            min_stock=min_stock,
            category_id=self.category_id or None,
        )


@message
class ProductValues(DescribedProduct):
    """All values of a product; a missing minimum becomes 0."""

    min_stock: int = amount(default=0, null=0, description="from this stock down it is low")

    @property
    def details(self) -> Details:
        """The same as the domain has it."""
        return self.with_minimum(self.min_stock)


@message
class GivenProduct(ProductValues):
    """The values of a product, and its code."""

    ean13: str = path(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE, otherwise=_WRONG)


@message
class ChangedProduct(DescribedProduct):
    """The values of a product, and the factor if its unit changes. A missing minimum becomes 0, or is converted by the factor.

    A client may send a product as it was answered: members that it cannot change have no effect.
    """

    ean13: str = path(parse=checked_ean13, schema=EAN13_SCHEMA, example=EXAMPLE, otherwise=_WRONG)
    min_stock: int | Unset = amount(default=UNSET, null=0, description="from this stock down it is low, in the new unit")
    factor: Decimal | None = unit_factor(description="how many of the new unit one of the present unit is: converts the stock")
    answered_ean13: str | None = member(name="ean13", default=None, description=_WITHOUT_EFFECT)
    current_stock: Decimal | None = member(default=None, description=_WITHOUT_EFFECT)
    active: bool | None = member(default=None, description=_WITHOUT_EFFECT)
    created_at: str | None = member(default=None, description=_WITHOUT_EFFECT)
    updated_at: str | None = member(default=None, description=_WITHOUT_EFFECT)
    counted_at: str | None = member(default=None, description=_WITHOUT_EFFECT)


async def list_products(request: ListProducts, call: Call[Services]) -> Answer[Sequence[ProductBody]]:
    """Products by name."""
    found = await call.services.queries.products(
        category=request.category,
        active=request.active,
        low_stock=request.low_stock,
        search=name_key(request.search) if request.search is not None else None,
        as_of=request.as_of,
        after=decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else None,
        limit=request.limit + 1,
    )
    page, more = page_of(found, request.limit, lambda product: (product.name_key, product.ean13))
    return Answer([ProductBody.of(product) for product in page], cursor=more)


async def create_product(request: GivenProduct, call: Call[Services]) -> Answer[ProductBody]:
    """Create a product, without stock."""
    outcome = await call.services.pantry.create_product(request.ean13, request.details, call.context)
    return _answer(outcome, f"/api/v1/products/{request.ean13}")


async def create_product_without_code(request: ProductValues, call: Call[Services]) -> Answer[ProductBody]:
    """Create a product for a thing without a barcode, under an own code that begins with 29."""
    outcome = await call.services.pantry.create_product_without_code(request.details, call.context)
    return _answer(outcome, f"/api/v1/products/{outcome.state.ean13}")


async def get_product(request: ProductAt, call: Call[Services]) -> Answer[ProductBody]:
    """A product, also one that is not kept any more."""
    product = await _product(request, call)
    return Answer(ProductBody.of(product), etag=None if product.version is None else str(product.version))


async def edit_product(request: ChangedProduct, call: Call[Services]) -> Answer[ProductBody]:
    """Replace what is known of a product. Its stock only movements change, and a factor with another unit."""
    outcome = await call.services.pantry.edit_product(
        request.ean13,
        request.with_minimum(0 if request.min_stock is UNSET else request.min_stock),
        version=version_wanted(call),
        factor=request.factor,
        keeps_minimum=request.min_stock is UNSET,
        context=call.context,
    )
    return _answer(outcome)


async def deactivate_product(request: OneProduct, call: Call[Services]) -> Answer[None]:
    """Deactivate a product. Its data stays, and its remaining stock can still be taken out."""
    outcome = await call.services.pantry.set_active(
        request.ean13, active=False, version=version_wanted(call), context=call.context
    )
    return answer(outcome, None)


async def activate_product(request: OneProduct, call: Call[Services]) -> Answer[ProductBody]:
    """Keep a product again."""
    outcome = await call.services.pantry.set_active(
        request.ean13, active=True, version=version_wanted(call), context=call.context
    )
    return _answer(outcome)


async def get_stock(request: ProductAt, call: Call[Services]) -> Answer[StockBody]:
    """The stock of a product."""
    product = await _product(request, call)
    return Answer(StockBody.of(product), etag=None if product.version is None else str(product.version))


async def _product(request: ProductAt, call: Call[Services]) -> ProductView:
    product = await call.services.queries.product(request.ean13, as_of=request.as_of)
    if product is None:
        when = "" if request.as_of is None else " at that time"
        raise NotFound(f"there is no product {request.ean13}{when}")
    return product


def _answer(outcome: ProductOutcome, location: str | None = None) -> Answer[ProductBody]:
    product = ProductView.of_state(outcome.state)
    return answer(outcome, ProductBody.of(product), location=location, etag=str(product.version))


_ONE = "/api/v1/products/{ean13}"
_TAGS = ("products",)

ROUTES = (
    Route("GET", "/api/v1/products", list_products, summary="List products", tags=_TAGS, csv=ProductBody),
    Route(
        "POST",
        "/api/v1/products",
        create_product_without_code,
        summary="Create a product without a barcode",
        tags=_TAGS,
        status=201,
        errors=(409,),
        idempotent=True,
    ),
    Route("POST", _ONE, create_product, summary="Create a product", tags=_TAGS, status=201, errors=(409,), idempotent=True),
    Route("GET", _ONE, get_product, summary="Look at a product", tags=_TAGS, errors=(404,), kept=True),
    Route("PUT", _ONE, edit_product, summary="Replace a product", tags=_TAGS, errors=(404, 409, 412)),
    Route("DELETE", _ONE, deactivate_product, summary="Deactivate a product", tags=_TAGS, errors=(404, 412)),
    Route(
        "POST",
        f"{_ONE}/activate",
        activate_product,
        summary="Activate a product",
        tags=_TAGS,
        errors=(404, 412),
        idempotent=True,
    ),
    Route("GET", f"{_ONE}/stock", get_stock, summary="Stock of a product", tags=_TAGS, errors=(404,), kept=True),
)
