"""A table of products that was exported is imported as it was: an export of the import is the same, byte for byte."""

from __future__ import annotations

from hypothesis import example
from hypothesis import given as for_any
from hypothesis import strategies as st

from httpkit.messages.encoding import encode_csv
from httpkit.messages.fields import UNSET
from pantry.commands.imports import NewProduct
from pantry.domain.gtin import own_code
from pantry.domain.naming import look
from pantry.domain.product import Details
from pantry.domain.quantity import LARGEST, number
from pantry.http.bodies import ProductBody
from pantry.http.imports.products import COLUMNS, product_of_row
from pantry.http.imports.rows import read

_RISKY = st.text("'=+-@ 1,;\"\uff0b\u00a0\u202e", max_size=8)
_TEXTS = st.builds(str.__add__, _RISKY, st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8))
_NAMES = _TEXTS.filter(look)
_LINES = st.builds("{}{}{}".format, _TEXTS, st.sampled_from(["", "\n", "\r\n", "\t", "\r"]), _TEXTS)
_PRODUCTS = st.builds(
    Details,
    name=_NAMES,
    description=_LINES,
    unit=_NAMES,
    min_stock=st.integers(0, LARGEST),
    category_id=st.none() | st.uuids().map(str),
)


def exported(products: list[Details]) -> bytes:
    """The table that the list of products is as CSV."""
    rows = [
        ProductBody(
            ean13=own_code(place),
            name=each.name,
            description=each.description,
            unit=each.unit,
            min_stock=number(each.min_stock),
            current_stock=0,
            category_id=each.category_id or UNSET,
            active=True,
            created_at="2026-11-29T12:00:00Z",
            updated_at="2026-11-29T12:00:00Z",
        )
        for place, each in enumerate(products)
    ]
    return encode_csv(ProductBody, rows)


def named(name: str) -> Details:
    return Details(name=name, description=name, unit="kg", min_stock=1500, category_id=None)


@for_any(st.lists(_PRODUCTS, min_size=1, max_size=4))
@example([named("=1+1"), named("'=1+1"), named("''@x"), named("-5"), named("'-5"), named("+49"), named("'")])
@example([named(" Jam"), named("Jam "), named("'tis "), named("' ="), named("\uff1d1"), named('a"b;c,d')])
def test_an_export_of_an_imported_export_is_the_same(products: list[Details]) -> None:
    table = exported(products)
    rows = read(table, "text/csv", COLUMNS, product_of_row)
    assert rows.bad == {}
    assert exported([new.details for new in rows.good.values()]) == table
    if b"\xef\xbf\xbd" not in table:  # a character that no export has was replaced
        assert [*rows.good.values()] == [
            NewProduct(ean13=own_code(place), details=details) for place, details in enumerate(products)
        ]
