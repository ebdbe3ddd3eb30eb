"""The functions of an analysis, from its report in the blob store, in its order: measured ones first, riskiest first."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from eventlog import BlobMissing, Unavailable
from gctd.broker.blobs import Blobs
from projections import ProjectionError, StoreUnavailable

MOST_KEPT = 200_000
"""Functions of all the reports that are kept decoded."""


class ReportMissing(ProjectionError):
    """The report of an analysis is not in the blob store."""

    status = HTTPStatus.NOT_FOUND


class BodyView(msgspec.Struct, frozen=True, gc=False):
    """Content of a function: the digest of its tokens, and their number."""

    digest: str
    tokens: int


class FunctionView(msgspec.Struct, frozen=True, gc=False):
    """A function or method, scored. Coverages are percentages, None if unknown.

    `state` is the state of the measurement, `reason` its cause. `identity` is None in reports of engines that do not have it.
    """

    file: str
    package: str
    function: str
    name: str
    receiver: str
    line: int
    end_line: int
    cyclomatic: int
    coverage: float | None
    stmt_coverage: float | None
    crap: float
    state: str
    reason: str = ""
    identity: BodyView | None = None


class _Report(msgspec.Struct, frozen=True):
    """The parts of a report that are read here; `gctd.engines.report` has the whole report."""

    entries: tuple[FunctionView, ...]


_decoder = msgspec.json.Decoder(_Report)


class Reports:
    """Decoded reports, the last ones kept."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._kept: OrderedDict[str, Sequence[FunctionView]] = OrderedDict()
        self._functions = 0

    async def body(self, digest: str, what: str = "report of this analysis") -> bytes:
        """A stored body. Raises ReportMissing with its name `what`, StoreUnavailable."""
        try:
            return await self._blobs.get(digest)
        except BlobMissing as error:
            raise ReportMissing(f"the {what} is not stored") from error
        except Unavailable as error:
            raise StoreUnavailable(f"reports cannot be read now: {error}") from error

    async def functions(self, digest: str) -> Sequence[FunctionView]:
        """The functions in the report with that digest. Raises ReportMissing, StoreUnavailable."""
        known = self._kept.get(digest)
        if known is not None:
            self._kept.move_to_end(digest)
            return known
        document = await self.body(digest)
        # A report of 50,000 functions takes some tens of milliseconds: not in the event loop.
        report = await asyncio.to_thread(_decoder.decode, document)
        if digest not in self._kept:
            self._kept[digest] = report.entries
            self._functions += len(report.entries)
        while self._functions > MOST_KEPT and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._functions -= len(dropped)
        return report.entries
