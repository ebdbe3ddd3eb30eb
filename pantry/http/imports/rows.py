"""The rows of a file, and their results.

A file is a JSON list, NDJSON, or a table as spreadsheets write it, with `,`, `;` or tabs and with decimal commas.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import attrs
from cattrs.errors import BaseValidationError

from httpkit import (
    INTERNAL_ERROR,
    FieldError,
    Invalid,
    Malformed,
    body_text,
    decode_cell,
    flat_problems,
    message,
    parse_body,
    payload,
    query,
    status_of,
    text_of,
)
from pantry.commands.execution import ProductOutcome
from pantry.commands.imports import Results
from pantry.domain import ean13, gtin, quantity

T = TypeVar("T")

MAX_BODY = 32 * 1024**2
TIME_LIMIT = 300.0
TABLE, LINES = "text/csv", "application/x-ndjson"
_SEPARATORS = ",;\t"
_LONGEST_HEAD = 65_536
"""Characters of the first line that are searched for names."""
UNKNOWN = (
    "rows of which it is not known whether they took effect: their status is 500 or more; a repetition with the same key tells it"
)
"""The description of the member `unknown` of an answer."""
IGNORED = "columns, or members of rows, that have no effect"
"""The description of the member `ignored` of an answer."""
_MOST_IGNORED = 50
"""Names in that member."""


@message
class ImportRequest:
    """The rows of a file."""

    rows: bytes = payload("application/json", LINES, TABLE, schema={"type": "array"}, description="the rows")
    dry_run: bool = query(default=False, description="only report how each row is read, and the result that it would have")


@attrs.frozen(kw_only=True)
class Columns:
    """The columns of a table. `codes` are the names that the first one may have, `needed` other names that must be there.

    `most` is the number of rows that one request may have.
    """

    most: int
    codes: tuple[str, ...]
    needed: tuple[str, ...]
    quantity: str
    others: tuple[str, ...]

    @property
    def known(self) -> Collection[str]:
        """The names that have a meaning."""
        return {*self.codes, *self.members}

    @property
    def members(self) -> Collection[str]:
        """The names of the members of a row in JSON."""
        return {self.code, *self.needed, self.quantity, *self.others}

    @property
    def code(self) -> str:
        """The name of the code in JSON."""
        return self.codes[0]

    def missing(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names that a first line does not have."""
        has_code = any(code in names for code in self.codes)
        return [*([] if has_code else [self.code]), *(name for name in self.needed if name not in names)]


@attrs.frozen
class Refusal:
    """The reason why a row has no effect. `status` is the status of the answer that it would have had in a separate request."""

    status: HTTPStatus
    reason: str

    @classmethod
    def of(cls, error: Exception) -> Refusal:
        """The refusal that an error of the write side is."""
        status = status_of(error) or HTTPStatus.INTERNAL_SERVER_ERROR
        return cls(status, INTERNAL_ERROR if status is HTTPStatus.INTERNAL_SERVER_ERROR else text_of(error))


@attrs.frozen
class Rows(Generic[T]):
    """The rows of a file by number: the good ones, and the refusals of the others.

    `ignored` are the names of values that have no meaning, at most 50.
    """

    good: dict[int, T]
    bad: dict[int, Refusal]
    ignored: Sequence[str]


def read(raw: bytes, media: str, columns: Columns, structure: Callable[[Mapping[str, Any]], T]) -> Rows[T]:
    """Return the rows of a file, the good ones as `structure` makes them. Raises Malformed, Invalid."""
    good: dict[int, T] = {}
    bad: dict[int, Refusal] = {}
    ignored: dict[str, None] = {}
    for number, row in enumerate(_rows(raw, media, columns), 1):
        if number > columns.most:
            raise Invalid([FieldError(f"at most {columns.most} rows at a time")])
        if isinstance(row, FieldError):
            bad[number] = Refusal(HTTPStatus.BAD_REQUEST, row.detail)
            continue
        if len(ignored) < _MOST_IGNORED:
            ignored |= dict.fromkeys(row.keys() - columns.members)
        try:
            good[number] = structure(row)
        except BaseValidationError as error:
            wrong = "; ".join(f"{pointer.removeprefix('#/') or 'the row'}: {detail}" for pointer, detail in flat_problems(error))
            bad[number] = Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, wrong)
        except ValueError as error:
            bad[number] = Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    return Rows(good, bad, sorted(ignored)[:_MOST_IGNORED])


async def results_of(
    refused: Mapping[int, T], outcomes: AsyncIterator[Results], result: Callable[[int, ProductOutcome | Exception], T]
) -> tuple[Sequence[T], int]:
    """Return the results of all rows in their order, and the sequence of the last commit, 0 if none was stored.

    `refused` has the results of the rows that were not read; `result` makes the others. Raises the errors of `outcomes`.
    """
    results, last = dict(refused), 0
    async for some in outcomes:
        for number, outcome in some.items():
            results[number] = result(number, outcome)
            if not isinstance(outcome, Exception):
                last = max(last, outcome.sequence)
    return [results[number] for number in sorted(results)], last


def counts_of(statuses: Collection[int]) -> Mapping[str, int]:
    """Return how many rows of an import were accepted and refused, and of how many neither is known, by the member's name."""
    unknown = sum(status >= HTTPStatus.INTERNAL_SERVER_ERROR for status in statuses)
    accepted = sum(status < HTTPStatus.BAD_REQUEST for status in statuses)
    return {"accepted": accepted, "refused": len(statuses) - accepted - unknown, "unknown": unknown}


def _rows(raw: bytes, media: str, columns: Columns) -> Iterable[Mapping[str, Any] | FieldError]:
    """Return the rows of a body; a row that cannot be read is a FieldError among them. Raises Malformed, Invalid."""
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if media == TABLE:
        return _of_table(body_text(raw), columns)
    if media == LINES:
        return (_of_line(line) for line in raw.splitlines() if line.strip())
    rows = parse_body(raw)
    if not isinstance(rows, list):
        raise Invalid([FieldError("must be a list of rows", pointer="#")])
    return (row if isinstance(row, dict) else FieldError("must be an object") for row in rows)


def _of_line(line: bytes) -> Mapping[str, Any] | FieldError:
    try:
        row = parse_body(line)
    except Malformed as error:
        return FieldError(str(error))
    return row if isinstance(row, dict) else FieldError("must be an object")


def _of_table(text: str, columns: Columns) -> Iterator[Mapping[str, Any] | FieldError]:
    """The rows of a table: the separator is the one with which the first line has the names. Rows of empty cells are left out."""
    heads = {separator: _head(text, separator) for separator in _SEPARATORS}
    separator = min(heads, key=lambda each: (len(columns.missing(heads[each])), -len(heads[each])))
    if missing := columns.missing(heads[separator]):
        raise Invalid([FieldError(f"the first line has no column {', '.join(missing)}", pointer="#")])
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip().lower() for name in next(lines)]
        _check_names(names, columns)
        for line in lines:
            cells = [decode_cell(cell) for cell in line]
            if any(cells):
                yield _of_cells(names, cells, columns, separator)
    except csv.Error as error:
        raise Invalid([FieldError(f"line {lines.line_num}: {error}", pointer="#")]) from None


def _head(text: str, separator: str) -> Sequence[str]:
    try:
        names = next(csv.reader(io.StringIO(text[:_LONGEST_HEAD], newline=""), delimiter=separator, strict=True), [])
    except csv.Error:
        return []
    return [name.strip().lower() for name in names]


def _check_names(names: Sequence[str], columns: Columns) -> None:
    """Raise Invalid if two columns have one meaning: the cells of one would count, silently."""
    if repeated := [name for name in dict.fromkeys(names) if name in columns.known and names.count(name) > 1]:
        raise Invalid([FieldError(f"the first line has several columns {', '.join(repeated)}", pointer="#")])
    if len(codes := [name for name in names if name in columns.codes]) > 1:
        problem = f"the first line has several columns for the code: {', '.join(codes)}; leave all but one out"
        raise Invalid([FieldError(problem, pointer="#")])


def _of_cells(names: Sequence[str], cells: Sequence[str], columns: Columns, separator: str) -> Mapping[str, Any] | FieldError:
    """The row of a line. Empty cells are left out."""
    if len(cells) > len(names) and any(cells[len(names) :]):
        return FieldError("has more cells than the first line")
    row: dict[str, Any] = {name: cell for name, cell in zip(names, cells, strict=False) if cell and name}
    codes = [code for name in columns.codes if (code := row.pop(name, None)) is not None]
    try:
        if codes:
            row[columns.code] = _code(codes[0])
        if (written := row.get(columns.quantity)) is not None:
            row[columns.quantity] = _number(written, columns.quantity, separator)
    except ValueError as error:
        return FieldError(str(error))
    return row


def _code(text: str) -> str:
    """The 13 digits of a code of 8, 12 or 14 digits; any other text as it is. Raises ValueError if it stands for two codes."""
    if len(text) == ean13.DIGITS:
        return text
    codes = gtin.codes_of(text)
    if len(codes) > 1:
        raise ValueError(f"{text} is an EAN-8 or a UPC-E: give its 13 digits, which are {' or '.join(codes)}")
    return codes[0] if codes else text


def _number(written: str, name: str, separator: str) -> Decimal:
    """A quantity. Raises ValueError. Spreadsheets separate cells by `;` if decimals have a comma."""
    try:
        return quantity.read(written, "," if separator == ";" else ".")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
