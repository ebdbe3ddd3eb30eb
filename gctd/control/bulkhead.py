"""A failure that concerns one aggregate stops no work on the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from eventlog import AggregateDamaged, BlobMissing, UndecodableCommit
from gctd.domain.errors import GctdError

OF_ONE = (AggregateDamaged, BlobMissing, GctdError, UndecodableCommit)
"""Errors that concern one aggregate. Other errors, as of an absent broker or database, concern all work."""

_log = structlog.get_logger(__name__)


class Bulkhead:
    """Keeps the failures of single aggregates apart in repeated work, such as a sweep. Each failure is logged once.

    `work` names the work in log lines.
    """

    def __init__(self, work: str) -> None:
        self._work = work
        self._logged: dict[str, str] = {}

    @contextmanager
    def around(self, id_: str) -> Iterator[None]:
        """Suppress the errors in `OF_ONE` of a block that works on one aggregate."""
        try:
            yield
        except OF_ONE as error:
            if self._logged.get(id_) != str(error):
                self._logged[id_] = str(error)
                _log.warning("an aggregate is left out", work=self._work, id=id_, error=str(error))
        else:
            self._logged.pop(id_, None)
