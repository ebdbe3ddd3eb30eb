"""The rows of a file, and their results.

A file is a JSON list, NDJSON, or a table as spreadsheets write it, with `,`, `;` or tabs and with decimal commas.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypeVar

import attrs
from cattrs.errors import BaseValidationError

from httpkit.errors import FieldError
from httpkit.messages import body
from httpkit.messages.decoding import flatten
from httpkit.messages.fields import message, payload, query
from httpkit.problems import INTERNAL, Invalid, Malformed, status_of, text_of
from pantry.commands.execution import ProductOutcome
from pantry.commands.imports import Results
from pantry.domain import ean13, gtin

T = TypeVar("T")

MAX_BODY = 32 * 1024**2
TIME_LIMIT = 300.0
TABLE, LINES = "text/csv", "application/x-ndjson"
_SEPARATORS = ",;\t"
_LONGEST_HEAD = 65_536
"""Characters of the first line that are searched for names."""
_NUMBER = re.compile(r"-?[0-9]{1,40}([.,][0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}([.,])[0-9]{3}")
"""The form of a number whose comma or point may separate thousands."""
UNKNOWN = (
    "rows of which it is not known whether they took effect: their status is 500 or more; a repetition with the same key tells it"
)
"""The description of the member `unknown` of an answer."""


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
        return {*self.codes, *self.needed, self.quantity, *self.others}

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
        return cls(status, INTERNAL if status is HTTPStatus.INTERNAL_SERVER_ERROR else text_of(error))


def read(
    raw: bytes, media: str, columns: Columns, structure: Callable[[Mapping[str, Any]], T]
) -> tuple[dict[int, T], dict[int, Refusal]]:
    """Return, by number, the rows that `structure` accepts, and the refusals of the others. Raises Malformed, Invalid."""
    good: dict[int, T] = {}
    bad: dict[int, Refusal] = {}
    for number, row in enumerate(_rows(raw, media, columns), 1):
        if number > columns.most:
            raise Invalid([FieldError(f"at most {columns.most} rows at a time")])
        if isinstance(row, FieldError):
            bad[number] = Refusal(HTTPStatus.BAD_REQUEST, row.detail)
            continue
        try:
            good[number] = structure(row)
        except BaseValidationError as error:
            wrong = "; ".join(f"{pointer.removeprefix('#/') or 'the row'}: {detail}" for pointer, detail in flatten(error))
            bad[number] = Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, wrong)
        except ValueError as error:
            bad[number] = Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    return good, bad


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
        return _of_table(body.text(raw), columns)
    if media == LINES:
        return (_of_line(line) for line in raw.splitlines() if line.strip())
    rows = body.parse(raw)
    if not isinstance(rows, list):
        raise Invalid([FieldError("must be a list of rows", pointer="#")])
    return (row if isinstance(row, dict) else FieldError("must be an object") for row in rows)


def _of_line(line: bytes) -> Mapping[str, Any] | FieldError:
    try:
        row = body.parse(line)
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
        meant = columns.known
        known = [name if name in meant else "" for name in names]
        if repeated := [name for name in dict.fromkeys(known) if name and known.count(name) > 1]:
            raise Invalid([FieldError(f"the first line has several columns {', '.join(repeated)}", pointer="#")])
        for line in lines:
            cells = [cell.strip() for cell in line]
            if any(cells):
                yield _of_cells(known, cells, columns, separator)
    except csv.Error as error:
        raise Invalid([FieldError(f"line {lines.line_num}: {error}", pointer="#")]) from None


def _head(text: str, separator: str) -> Sequence[str]:
    try:
        names = next(csv.reader(io.StringIO(text[:_LONGEST_HEAD], newline=""), delimiter=separator, strict=True), [])
    except csv.Error:
        return []
    return [name.strip().lower() for name in names]


def _of_cells(names: Sequence[str], cells: Sequence[str], columns: Columns, separator: str) -> Mapping[str, Any] | FieldError:
    """The row that cells without spaces around them are. A name is empty for a column that has no meaning."""
    if len(cells) > len(names) and any(cells[len(names) :]):
        return FieldError("has more cells than the first line")
    row: dict[str, Any] = {name: cell for name, cell in zip(names, cells, strict=False) if cell and name}
    codes = [code for name in columns.codes if (code := row.pop(name, None)) is not None]
    try:
        if codes:
            row[columns.code] = _code(codes[0])
        if (quantity := row.get(columns.quantity)) is not None:
            row[columns.quantity] = _number(quantity, columns.quantity, separator)
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


def _number(text: str, name: str, separator: str) -> Decimal:
    """A quantity with a point or a comma before its decimals. Raises ValueError if it may mean thousands.

    Spreadsheets separate cells by `;` if decimals have a comma: a point may separate thousands there, and a comma elsewhere.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{name}: {text} is not a number")
    decimal, other = (",", ".") if separator == ";" else (".", ",")
    thousands = _THOUSANDS.fullmatch(text)
    if thousands is not None and thousands[1] == other:
        raise ValueError(f"{name}: {text} is ambiguous: write {text.replace(other, '')} or {text.replace(other, decimal)}")
    return Decimal(text.replace(",", "."))
