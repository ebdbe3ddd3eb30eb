"""Statements of the pantry's read model that several queries build on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from projections import ListPart, SortOrder, Sql

_OF = "sequence * 1000000 + position"
"""The place of an event in the log as one number. A commit has fewer events than that factor (`eventlog.commit.Position`)."""
_UP_TO = f"sequence <= p.{{place}} / 1000000 AND {_OF} <= p.{{place}}"
"""The second condition decides, the first is for an index."""
_EVENTS = (
    ("movements", "product_ean13", "created_at"),
    ("product_versions", "ean13", "valid_from"),
    ("stocktakes", "product_ean13", "created_at"),
)
"""The tables that together have a row for each event of a product, the one with the most events first: table, product, time."""
_LATEST = ", ".join(
    f"""(
        SELECT {_OF} FROM {table} WHERE {key} = p.ean13 AND {_UP_TO.format(place="place")}
        ORDER BY sequence DESC, position DESC LIMIT 1) AS {name}"""  # noqa: S608 - constants
    for name, (table, key, _) in zip(("moved", "edited", "counted"), _EVENTS, strict=True)
)
"""The places of the last rows up to `place`. Postgres finds a row by numbers, but compares each with a pair of a subquery."""
_PAST = """
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
    FROM latest AS p
    JOIN product_versions AS v
        ON v.ean13 = p.ean13 AND v.sequence = p.edited / 1000000 AND v.position = p.edited % 1000000
    LEFT JOIN movements AS m
        ON m.product_ean13 = p.ean13 AND m.sequence = p.moved / 1000000 AND m.position = p.moved % 1000000
    LEFT JOIN stocktakes AS s
        ON s.product_ean13 = p.ean13 AND s.sequence = p.counted / 1000000 AND s.position = p.counted % 1000000
"""
COLUMNS = """
    m.id, m.product_ean13, m.type, m.quantity, m.reason, m.notes, m.created_by, m.created_at, m.stock_after, m.reverses,
    m.counted, r.id AS reversed_by, m.sequence, m.position, m.sealed, m.unit
"""
"""The columns of a movement `m`, and of the one `r` that undid it, for a MovementView."""
MOVEMENTS = f"SELECT {COLUMNS} FROM movements AS m LEFT JOIN movements AS r ON r.reverses = m.id"  # noqa: S608 - a constant
MOVEMENTS_OF_ALL = SortOrder(("m.sequence", "m.position"), descending=True)
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


def places(name: str, products: str, time: str, *, before: bool = False, until: str | None = None) -> str:
    """Tables of a WITH, of which the last has the rows of the table `products` and their places at a time, `$1` say.

    The table and its new column are called `name`. The last event of the product until then, in the order of the log, has the
    place. All events up to there count, whatever their own times. So a clock that was ahead hides no later event, and a past
    stock is wrong by no more time than the clocks were. `before`: the place just before the time. 0: the product was not there.
    `until`: a column with a place at a later time, to begin with.

    Each table of events is searched only behind the place that those before it gave: mostly an index has nothing there.
    """
    tables, place = [], "0"
    for table, key, at in _EVENTS:
        column = name if table == _EVENTS[-1][0] else f"{name}_{table}"
        last = f"""
            SELECT {_OF} FROM {table} WHERE {key} = p.ean13 AND {at} {"<" if before else "<="} {time}
            {"" if until is None else f"AND {_UP_TO.format(place=until)}"} AND sequence >= {place} / 1000000 AND {_OF} > {place}
            ORDER BY sequence DESC, position DESC LIMIT 1"""  # noqa: S608 - constants
        tables.append(f"{column} AS MATERIALIZED (SELECT p.*, coalesce(({last}), {place}) AS {column} FROM {products} AS p)")  # noqa: S608
        products, place = column, f"p.{column}"
    return ", ".join(tables)


def place_of(alias: str) -> str:
    """The place of a row of `movements` in the log, to be compared with `place`."""
    return f"{alias}.sequence * 1000000 + {alias}.position"


def passed(time: datetime) -> datetime:
    """A time of the past as it is. All events of the log took place by now, so any other time is the end of all."""
    return time if time < datetime.now(UTC) else datetime.max.replace(tzinfo=UTC)


def past_sql(as_of: datetime, codes: Sequence[str] | None = None) -> Sql:
    """The statement of products as they were at a time, all or some: last version, movement and stocktake up to their places."""
    sql = Sql("WITH products_then AS (SELECT ean13, created_at FROM products", [passed(as_of)])
    if codes is not None:
        sql.any_of("WHERE ean13 IN ({})", codes)
    latest = f"latest AS MATERIALIZED (SELECT p.*, {_LATEST} FROM place AS p)"  # noqa: S608 - constants
    sql.add(f"), {places('place', 'products_then', '$1')}, {latest} {_PAST}")
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
    first: ListPart | None = None,
) -> Sql:
    """The statement of movements (see `PantryQueries.movements`), to which conditions can be added.

    `first`: the part that is read of the list, from its beginning. If it has n movements, the statement takes the n with the
    latest times from an index. The part needs no movement before the first of these in the log.
    """
    sql = Sql(f"{MOVEMENTS} WHERE TRUE")
    _chosen(sql, ean13, type, since, until)
    if first is not None and not first.backward and ean13 is None and (since, until) != (None, None):
        sql.add("AND m.sequence >= (SELECT min(sequence) FROM (SELECT m.sequence FROM movements AS m WHERE TRUE")
        _chosen(sql, ean13, type, since, until)
        MOVEMENTS_OF_ALL.between(sql, first)
        sql.add("ORDER BY m.created_at DESC LIMIT {}) AS newest)", first.limit + 1)
    return sql


def _chosen(sql: Sql, ean13: str | None, type_: str | None, since: datetime | None, until: datetime | None) -> None:
    """Add the conditions on a movement `m`."""
    if ean13 is not None:
        sql.add("AND m.product_ean13 = {}", ean13)
    if type_ is not None:
        sql.add("AND m.type = {}", type_)
    if since is not None:
        sql.add("AND m.created_at >= {}", since)
    if until is not None:
        sql.add("AND m.created_at <= {}", until)
