"""A mistake in the declaration of a read model, or in a change, is refused at once. The error names the possible names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from projections import Column, Delete, Projection, Put, Table

ACCOUNTS = Table("accounts", (Column("id"), Column("cents", "integer")), key=("id",))
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown type": (
        lambda: Column("cents", "int"),  # type: ignore[arg-type]  # the mistake
        "column cents: the type 'int' is unknown; types are text, integer, real, boolean, timestamp, json",
    ),
    "key without a column": (
        lambda: Table("accounts", (Column("id"), Column("cents")), key=("ident",)),
        "table accounts: no column ident; a key has one or more of: id, cents",
    ),
    "no key": (
        lambda: Table("accounts", (Column("id"), Column("cents")), key=()),
        "table accounts: an empty key; a key has one or more of: id, cents",
    ),
    "column twice": (
        lambda: Table("accounts", (Column("id"), Column("id")), key=("id",)),
        "table accounts: columns are declared twice: id",
    ),
    "short row": (lambda: Put(ACCOUNTS, ("a",)), "a row of table accounts has 1 values, and 2 columns: id, cents"),
    "long row": (lambda: Put(ACCOUNTS, ("a", 1, 2)), "a row of table accounts has 3 values, and 2 columns: id, cents"),
    "key of a deletion": (lambda: Delete(ACCOUNTS, ("a", 1)), "a key of table accounts has 2 values, and 1 columns: id"),
    "latest without a handler": (
        lambda: Projection("accounts", 1, (ACCOUNTS,), {"bank.account": lambda _: ()}, latest=frozenset({"bank.acount"})),
        "projection accounts: no handler for bank.acount of `latest`; handlers are for: bank.account",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_where_it_is_made(mistake: str) -> None:
    declare, message = MISTAKES[mistake]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        declare()


@attrs.frozen(kw_only=True)
class Owner:
    name: str
    tags: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Account:
    id: str
    owner: Owner
    cents: int


ROWS = Table(
    "accounts",
    (
        Column("sequence", "integer", given=True),
        Column("id"),
        Column("owner", of="owner.name"),
        Column("euros", "integer", of=lambda account: account.cents // 100),
        Column("tags", "json", of="owner.tags"),
    ),
    key=("id",),
)
ACCOUNT = Account(id="a", owner=Owner(name="ann", tags=("x",)), cents=512)


def test_a_column_reads_the_attribute_of_its_name_or_by_its_own_function() -> None:
    """The values have the order of the columns."""
    assert ROWS.row(ACCOUNT, sequence=7) == (7, "a", "ann", 5, '["x"]')
    assert ACCOUNTS.row(ACCOUNT) == ("a", 512)


def test_a_row_without_a_value_is_refused() -> None:
    with pytest.raises(TypeError, match="sequence"):
        ROWS.row(ACCOUNT)
    with pytest.raises(TypeError, match="unexpected keyword argument 'seqence'"):
        ROWS.row(ACCOUNT, sequence=7, seqence=7)
    with pytest.raises(AttributeError, match="cents"):
        ACCOUNTS.row(attrs.make_class("Other", ["id"])("a"))
