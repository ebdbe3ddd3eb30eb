"""Statements of the pantry's read model that several queries build on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from projections.queries.sql import Sql

_OF = "sequence * 1000000 + position"
"""The place of an event in the log as one number. A commit has fewer events than that factor (`eventlog.commit.Position`)."""
_PLACE = f"""
    SELECT max(place) FROM (
        SELECT * FROM (
            SELECT {_OF} AS place FROM movements WHERE product_ean13 = p.ean13 AND created_at {{0}} {{1}}
            ORDER BY sequence DESC, position DESC LIMIT 1) AS moved
        UNION ALL SELECT * FROM (
            SELECT {_OF} AS place FROM product_versions WHERE ean13 = p.ean13 AND valid_from {{0}} {{1}}
            ORDER BY sequence DESC, position DESC LIMIT 1) AS edited
        UNION ALL SELECT * FROM (
            SELECT {_OF} AS place FROM stocktakes WHERE product_ean13 = p.ean13 AND created_at {{0}} {{1}}
            ORDER BY sequence DESC, position DESC LIMIT 1) AS counted) AS latest"""  # noqa: S608 - constants
_PAST = f"""
    SELECT v.ean13, v.name, v.description, v.unit, v.min_stock,
        CASE WHEN m.sequence IS NULL OR (v.sequence, v.position) > (m.sequence, m.position) THEN v.stock ELSE m.stock_after END
            AS current_stock,
        v.category_id,
        v.active, p.created_at,
        CASE WHEN s.sequence IS NOT NULL AND (s.sequence, s.position) > (v.sequence, v.position)
                AND (m.sequence IS NULL OR (s.sequence, s.position) >= (m.sequence, m.position)) THEN s.created_at
            WHEN m.sequence IS NOT NULL AND (m.sequence, m.position) > (v.sequence, v.position) THEN m.created_at
            ELSE v.valid_from END AS updated_at,
        s.created_at AS counted_at, v.name_key, NULL AS version
    FROM places AS p
    JOIN product_versions AS v ON v.ean13 = p.ean13 AND (v.sequence, v.position) = (
        SELECT sequence, position FROM product_versions
        WHERE ean13 = p.ean13 AND {_OF} <= p.place ORDER BY sequence DESC, position DESC LIMIT 1)
    LEFT JOIN movements AS m ON m.id = (
        SELECT id FROM movements
        WHERE product_ean13 = p.ean13 AND {_OF} <= p.place ORDER BY sequence DESC, position DESC LIMIT 1)
    LEFT JOIN stocktakes AS s ON (s.sequence, s.position) = (
        SELECT sequence, position FROM stocktakes
        WHERE product_ean13 = p.ean13 AND {_OF} <= p.place ORDER BY sequence DESC, position DESC LIMIT 1)
"""  # noqa: S608 - constants
COLUMNS = """
    m.id, m.product_ean13, m.type, m.quantity, m.reason, m.notes, m.created_by, m.created_at, m.stock_after, m.reverses,
    m.counted, r.id AS reversed_by, m.sequence, m.position, m.sealed, m.unit
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


def place(time: str, *, before: bool = False) -> str:
    """The place of a product `p` in the log at a time, `$1` say: of its last event, in the order of the log, until then.

    All events up to there count, whatever their own times. So a clock that was ahead hides no later event, and a past stock is
    wrong by no more time than the clocks were. `before`: the place just before the time. NULL: the product was not there.
    """
    return _PLACE.format("<" if before else "<=", time)


def place_of(alias: str) -> str:
    """The place of a row of `movements` in the log, to be compared with `place`."""
    return f"{alias}.sequence * 1000000 + {alias}.position"


def passed(time: datetime) -> datetime:
    """A time of the past as it is. All events of the log took place by now, so any other time is the end of all."""
    return time if time < datetime.now(UTC) else datetime.max.replace(tzinfo=UTC)


def past_sql(as_of: datetime, codes: Sequence[str] | None = None) -> Sql:
    """The statement of products as they were at a time, all or some: last version, movement and stocktake up to their places."""
    beginning = f"WITH places AS MATERIALIZED (SELECT ean13, created_at, ({place('$1')}) AS place FROM products AS p"  # noqa: S608
    sql = Sql(beginning, [passed(as_of)])
    if codes is not None:
        sql.any_of("WHERE ean13 IN ({})", codes)
    sql.add(f") {_PAST}")
    return sql


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
        inner = past_sql(as_of)
        sql = Sql(f"SELECT * FROM ({inner.text}) AS past", inner.arguments)  # noqa: S608 - constants
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
