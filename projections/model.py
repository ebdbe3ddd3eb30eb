"""The parts of a read model: tables, projections that turn commits into rows, and the migrations that make the tables.

A projection is pure: it returns the rows that a commit puts or deletes, and a store applies them in bulk, in one transaction with
the checkpoint. Rows are whole, so a later one of the same key replaces an earlier one: within a batch only the last is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from operator import itemgetter
from typing import Any, Literal, get_args

import attrs
import msgspec

from eventlog import Commit, Registry

ColumnType = Literal["text", "integer", "real", "boolean", "timestamp", "json"]

_encode = msgspec.json.Encoder().encode
_WITH_DECIMALS = len("2026-01-01T00:00:00.000001Z")


def timestamp_text(value: datetime) -> str:
    """An aware datetime as read models give it: RFC 3339, UTC, always six decimals, so that the texts sort as the times do."""
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    text = _encode(value)[1:-1].decode()  # six times as fast as isoformat, and replay does little else so often
    return text if len(text) == _WITH_DECIMALS else f"{text[:-1]}.000000Z"


def _is_type(column: Column, _attribute: object, value: str) -> None:
    if value not in get_args(ColumnType):
        raise ValueError(f"column {column.name}: the type {value!r} is unknown; types are {', '.join(get_args(ColumnType))}")


@attrs.frozen
class Column:
    """A column. Values: str, int, float, bool, aware datetime, JSON text; None if it is empty.

    `Table.row` reads its value from a state by `of`: a path of attributes, or a function; by default the attribute of its name.
    The caller has the value of a `given` column. A value of type `json` is encoded.

    In the place of the character NUL, which Postgres cannot hold, a text may have U+FFFD.

    Read back, a timestamp is the text that `timestamp_text` gives and JSON is text, whichever store holds it; a boolean
    is what has its truth (SQLite gives 0 or 1). Raises ValueError for an unknown type.
    """

    name: str
    type: ColumnType = attrs.field(default="text", validator=_is_type)
    of: str | Callable[[Any], Any] | None = attrs.field(default=None, eq=False)
    given: bool = attrs.field(default=False, eq=False)

    @property
    def expression(self) -> str:
        """Return the code that gives its value in `Table.row`."""
        if self.given:
            return self.name
        value = f"_{self.name}(_state)" if callable(self.of) else f"_state.{self.of or self.name}"
        return f"_json({value})" if self.type == "json" else value


@attrs.frozen
class StoredColumn:
    """A column as the database has it.

    `type` is the database's own name for it, `holds` what of ours it can hold unchanged, `key` its place in the primary
    key (0 for the first column of it, None: not in it). `strict`: the database refuses a value of another type.
    """

    name: str
    type: str
    holds: frozenset[ColumnType]
    key: int | None
    strict: bool = True


@attrs.define(frozen=True, slots=False, cache_hash=True)
class Table:
    """A table of a read model: its columns in order and the names of the columns of the key.

    Raises ValueError for a column that is declared twice, and for a key that is empty or has an unknown column.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        """Check the names."""
        if twice := [name for name, count in Counter(self.names).items() if count > 1]:
            raise ValueError(f"table {self.name}: columns are declared twice: {', '.join(twice)}")
        unknown = [name for name in self.key if name not in self.names]
        if unknown or not self.key:
            problem = f"no column {', '.join(unknown)}" if unknown else "an empty key"
            raise ValueError(f"table {self.name}: {problem}; a key has one or more of: {', '.join(self.names)}")

    @cached_property
    def row(self) -> Callable[..., tuple[Any, ...]]:
        """Makes the row of a state: `row(state, name=…)` with the values of the columns that are `given`.

        It raises TypeError if a value is missing or too many, and AttributeError if the state lacks an attribute.
        """
        functions = {f"_{column.name}": column.of for column in self.columns if callable(column.of)}
        given = "".join(f", {column.name}" for column in self.columns if column.given)
        values = "".join(f"{column.expression}, " for column in self.columns)
        code = f"lambda _state{given and ', *'}{given}: ({values})"  # code, since a replay makes millions of rows
        row_of: Callable[..., tuple[Any, ...]] = eval(code, {**functions, "_json": _json_text})  # noqa: S307 - names of columns
        return row_of

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def changing(self) -> tuple[str, ...]:
        """The columns that another row under the same key is written to."""
        return tuple(column.name for column in self.columns if column.name not in self.key)

    @cached_property
    def key_of(self) -> Callable[[tuple[Any, ...]], Any]:
        """Gives a row's key: a value where the key is one column, else a tuple in the order of `key`."""
        return itemgetter(*(self.names.index(name) for name in self.key))

    @cached_property
    def timestamps(self) -> tuple[int, ...]:
        """Indexes of the columns of type `timestamp` in a row."""
        return tuple(index for index, column in enumerate(self.columns) if column.type == "timestamp")


def _json_text(value: object) -> str:
    return _encode(value).decode()


class Put(msgspec.Struct, frozen=True, gc=False):  # a Struct: a replay makes more of them than of anything else
    """Insert this row, or replace the one of the same key: values in the order of the table's columns.

    Raises ValueError if the row has more or fewer values than the table has columns.
    """

    table: Table
    row: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check the number of values."""
        if len(self.row) != len(self.table.columns):
            raise ValueError(_wrong_count("row", self.table.name, self.row, self.table.names))


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Remove the row of this key, if it is there: values in the order of the table's key.

    Raises ValueError if the key has more or fewer values than the key of the table.
    """

    table: Table
    key: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check the number of values."""
        if len(self.key) != len(self.table.key):
            raise ValueError(_wrong_count("key", self.table.name, self.key, self.table.key))


def _wrong_count(part: str, table: str, values: tuple[Any, ...], names: tuple[str, ...]) -> str:
    return f"a {part} of table {table} has {len(values)} values, and {len(names)} columns: {', '.join(names)}"


Change = Put | Delete
Handler = Callable[[Commit], Iterable[Change]]
EVERY = "*"
"""In place of a category: the commits of all categories."""


@attrs.frozen
class Projection:
    """A named, versioned function from commits to rows.

    `tables` are written by this projection alone, in an order in which rows may be put (referenced tables first). `handlers`
    maps the category of a commit, or EVERY, to the function that gives its changes. A change of the tables, or of the rows of
    the same commits, is a new `version`.

    `latest` are the categories whose handler reads only the state of the aggregate (and the sequence) and gives rows of that
    aggregate alone. Of its commits in one batch only the last is handled, since it has all values. This makes replays
    faster. Raises ValueError if one of them has no handler, or if EVERY is not alone.
    """

    name: str
    version: int
    tables: tuple[Table, ...]
    handlers: Mapping[str, Handler]
    latest: frozenset[str] = frozenset()

    def __attrs_post_init__(self) -> None:
        """Check the names."""
        if EVERY in self.handlers and len(self.handlers) > 1:
            raise ValueError(f"projection {self.name}: a handler of every commit is the only one of its projection")
        if unknown := sorted(self.latest - self.handlers.keys()):
            known = ", ".join(sorted(self.handlers))
            raise ValueError(
                f"projection {self.name}: no handler for {', '.join(unknown)} of `latest`; handlers are for: {known}"
            )

    def handler_of(self, category: str) -> Handler | None:
        """The handler of the commits of a category."""
        return self.handlers.get(EVERY) or self.handlers.get(category)

    def apply(self, commit: Commit) -> Iterable[Change]:
        """The changes that a commit makes: none if it is of a category that this projection does not handle."""
        handler = self.handler_of(commit.category)
        return () if handler is None else handler(commit)


COMMAND_KEYS = Table(
    "command_keys",
    (Column("key"), Column("sequence", "integer"), Column("fingerprint"), Column("subject")),
    key=("key", "sequence"),
)
"""The uses of idempotency keys. Only the first use of a key counts."""


def _key_changes(commit: Commit) -> Iterable[Change]:
    if not commit.may_have_keys:
        return ()
    return [
        Put(COMMAND_KEYS, (event.key, commit.sequence, event.fingerprint, commit.subject))
        for event in commit.body.events
        if event.key is not None
    ]


KEYS = Projection("command_keys", 1, (COMMAND_KEYS,), {EVERY: _key_changes})
"""The idempotency keys: every read model has this projection, and every store makes its table."""


def _with_keys(projections: Iterable[Projection]) -> tuple[Projection, ...]:
    return (*(projection for projection in projections if projection is not KEYS), KEYS)


@attrs.frozen
class StreamSetting:
    """A setting of a service that replaces one field of `streams.yaml`.

    `key` is the key of the setting. `name` is the stream, consumer or bucket that has the `field`. A `duration` is in seconds
    inside the service.
    """

    key: str
    name: str
    field: str
    duration: bool = False


@attrs.frozen(kw_only=True)
class SettingNames:
    """The names under which a service is configured: for programs that look at its log and its tables besides it.

    Variables begin with `prefix` (`BANK` for `BANK_DATABASE_URL`). The settings file is `file`, in the working directory or the
    home directory. `database` and `nats` are the keys of the two addresses in it. `streams` are settings that replace fields of
    `streams.yaml`, besides `event_store_max_bytes`, which each service has for its stream.
    """

    prefix: str
    file: str = attrs.field(default=attrs.Factory(lambda self: f".{self.prefix.lower()}.yaml", takes_self=True))
    database: str = "database_url"
    nats: str = "nats_url"
    streams: tuple[StreamSetting, ...] = ()

    def variable(self, key: str) -> str:
        """The variable of a key: `BANK_DATABASE_URL` for `database.url`."""
        return f"{self.prefix}_{key.replace('.', '_').upper()}"


@attrs.frozen
class ReadModel:
    """The projections over one stream that live in one database and are read together. KEYS is always the last of them.

    `migrations` is a package with files `<number>_<name>.<up|down>.<sqlite|postgres>.sql`, numbered from 000001; one file
    `<number>_<name>.<up|down>.sql` if both databases take the same statements. Without a package, the only migration makes the
    declared tables, without indexes besides the keys'. If the tables are declared otherwise later, new ones are filled from the
    log.

    `settings` are the names under which the service is configured; by default `<NAME>_…` and `.<name>.yaml`.

    `folds` are `Decider.fold` by category of aggregate: an audit folds the events with them and compares the states.
    """

    name: str
    stream: str
    registry: Registry
    projections: tuple[Projection, ...] = attrs.field(converter=_with_keys)
    migrations: str | None = None
    settings: SettingNames = attrs.field(
        default=attrs.Factory(lambda self: SettingNames(prefix=self.name.upper().replace("-", "_")), takes_self=True)
    )
    folds: Mapping[str, Callable[[Iterable[Any], Any], Any]] = attrs.field(factory=dict)

    @property
    def tables(self) -> Iterable[Table]:
        """The tables of all projections, referenced ones first."""
        return [table for projection in self.projections for table in projection.tables]

    def overrides(self, value_of: Callable[[StreamSetting], str | float | None]) -> Mapping[str, Mapping[str, str]]:
        """The fields of `streams.yaml` that the settings of the service replace, for `eventlog.admin.declarations.load`.

        `value_of` gives the value of a setting, None if it has none. A number is a duration in seconds.
        """
        found: dict[str, dict[str, str]] = {}
        for setting in (StreamSetting("event_store_max_bytes", self.stream, "max_bytes"), *self.settings.streams):
            if (value := value_of(setting)) is not None:
                text = value if isinstance(value, str) else f"{value * 1000:.0f}ms"
                found.setdefault(setting.name, {})[setting.field] = text
        return found

    def migration_files(self) -> Iterable[tuple[str, str]]:
        """File name and text of every migration file."""
        if self.migrations is None:
            return declared_tables(table for table in self.tables if table is not COMMAND_KEYS)
        return sorted(
            (entry.name, entry.read_text(encoding="utf-8"))
            for entry in files(self.migrations).iterdir()
            if entry.name.endswith(".sql")
        )


_SQL_TYPES: Mapping[str, Mapping[ColumnType, str]] = {
    "sqlite": {
        "text": "TEXT",
        "integer": "INTEGER",
        "real": "REAL",
        "boolean": "INTEGER",
        "timestamp": "TEXT",
        "json": "TEXT",
    },
    "postgres": {
        "text": 'TEXT COLLATE "C"',
        "integer": "BIGINT",
        "real": "DOUBLE PRECISION",
        "boolean": "BOOLEAN",
        "timestamp": "TIMESTAMPTZ",
        "json": "JSON",
    },
}


def declared_tables(tables: Iterable[Table]) -> Iterable[tuple[str, str]]:
    """The files of a migration that makes these tables, in each dialect. Key columns are never empty, others may be."""
    ordered = list(tables)
    for dialect in _SQL_TYPES:
        up = "".join(f"{create_table(table, dialect)};\n" for table in ordered)
        down = "".join(f'DROP TABLE IF EXISTS "{table.name}";\n' for table in reversed(ordered))
        yield f"000001_declared_tables.up.{dialect}.sql", up
        yield f"000001_declared_tables.down.{dialect}.sql", down


def create_table(table: Table, dialect: str, *, if_missing: bool = False) -> str:
    """The statement that makes a table in a dialect."""
    types, options = _SQL_TYPES[dialect], " STRICT" if dialect == "sqlite" else ""
    columns = [
        f'"{column.name}" {types[column.type]}{" NOT NULL" if column.name in table.key else ""}' for column in table.columns
    ]
    key = ", ".join(f'"{name}"' for name in table.key)
    begin = f'CREATE TABLE {"IF NOT EXISTS " if if_missing else ""}"{table.name}"'
    return f"{begin} (\n    {', '.join([*columns, f'PRIMARY KEY ({key})'])}\n){options}"
