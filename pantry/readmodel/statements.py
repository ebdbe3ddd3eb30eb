"""Statements of the pantry's read model that several queries build on."""

from __future__ import annotations

from datetime import datetime

from projections.queries.sql import Sql

PAST = """
    SELECT v.ean13, v.name, v.description, v.unit, v.min_stock, coalesce(m.stock_after, 0) AS current_stock, v.category_id,
        v.active, p.created_at,
        CASE WHEN s.created_at >= v.valid_from AND s.created_at >= coalesce(m.created_at, s.created_at) THEN s.created_at
            WHEN m.created_at > v.valid_from THEN m.created_at ELSE v.valid_from END AS updated_at,
        s.created_at AS counted_at, v.name_key, NULL AS version
    FROM products AS p
    JOIN product_versions AS v ON v.ean13 = p.ean13 AND (v.sequence, v.position) = (
        SELECT sequence, position FROM product_versions
        WHERE ean13 = p.ean13 AND valid_from <= {at} ORDER BY sequence DESC, position DESC LIMIT 1)
    LEFT JOIN movements AS m ON m.id = (
        SELECT id FROM movements
        WHERE product_ean13 = p.ean13 AND created_at <= {at} ORDER BY created_at DESC, sequence DESC, position DESC LIMIT 1)
    LEFT JOIN stocktakes AS s ON (s.sequence, s.position) = (
        SELECT sequence, position FROM stocktakes
        WHERE product_ean13 = p.ean13 AND created_at <= {at} ORDER BY created_at DESC, sequence DESC, position DESC LIMIT 1)
"""
"""The products as they were at a time: the last version, the last movement and the last stocktake until then."""
COLUMNS = """
    m.id, m.product_ean13, m.type, m.quantity, m.reason, m.notes, m.created_by, m.created_at, m.stock_after, m.reverses,
    m.counted, r.id AS reversed_by, m.sequence, m.position, m.sealed
"""
"""The columns of a movement `m`, and of the one `r` that undid it, for a MovementView."""
MOVEMENTS = f"SELECT {COLUMNS} FROM movements AS m LEFT JOIN movements AS r ON r.reverses = m.id"  # noqa: S608 - a constant
UNDONE = """
    undoings(original, id, undone) AS (
        SELECT r.reverses, r.id, TRUE FROM movements AS r CROSS JOIN movements AS o
        WHERE r.reverses > '' AND o.id = r.reverses AND coalesce(o.reverses, '') = ''
        UNION ALL
        SELECT u.original, r.id, NOT u.undone FROM undoings AS u JOIN movements AS r ON r.reverses = u.id),
    undone AS (
        SELECT u.original FROM undoings AS u
        WHERE u.undone AND NOT EXISTS (SELECT 1 FROM movements AS r WHERE r.reverses = u.id))
"""
"""The movements that are not in effect: the last of the chain of undoings behind each undoes it, and not an undoing.

The join begins with the undoings. Otherwise SQLite looks up each movement that undoes nothing.
"""


def products_sql(
    *,
    category: str | None = None,
    active: bool | None = None,
    low_stock: bool | None = None,
    search: str | None = None,
    as_of: datetime | None = None,
) -> Sql:
    """The statement of products (see `PantryQueries.products`), to which conditions can be added."""
    sql = Sql("SELECT * FROM products")
    if as_of is not None:
        sql = Sql(f"SELECT * FROM ({PAST.format(at='$1')}) AS past", [as_of])  # noqa: S608 - constants
    sql.add("WHERE TRUE")
    if category is not None:
        sql.add("AND category_id = {}", category)
    if active is not None:
        sql.add("AND active" if active else "AND NOT active")
    if low_stock is not None:
        sql.add("AND current_stock <= min_stock" if low_stock else "AND current_stock > min_stock")
    if search is not None:
        pattern = search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        sql.add("AND (ean13 LIKE {} ESCAPE '\\' OR name_key LIKE {} ESCAPE '\\')", f"{pattern}%", f"%{pattern}%")
    return sql


def movements_sql(
    *,
    ean13: str | None = None,
    type: str | None = None,  # noqa: A002 - what it is called everywhere else
    since: datetime | None = None,
    until: datetime | None = None,
) -> Sql:
    """The statement of movements (see `PantryQueries.movements`), to which conditions can be added."""
    sql = Sql(f"{MOVEMENTS} WHERE TRUE")
    if ean13 is not None:
        sql.add("AND m.product_ean13 = {}", ean13)
    if type is not None:
        sql.add("AND m.type = {}", type)
    if since is not None:
        sql.add("AND m.created_at >= {}", since)
    if until is not None:
        sql.add("AND m.created_at <= {}", until)
    return sql
