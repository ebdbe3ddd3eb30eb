"""The coverage of a whole project, by the cover profile that an analysis was made from."""

from __future__ import annotations

import asyncio
import io
import posixpath
from collections import OrderedDict
from collections.abc import Sequence

import attrs

from gctd.broker.blobs import Blobs
from gctd.domain.analysis import PackageProblem
from gctd.engines.coverage import count
from gctd.engines.engine import EngineLimits
from gctd.engines.golang.profile import parse_profile
from gctd.readmodel.views import AnalysisView

KEPT = 10_000
"""Results that are kept: a profile never changes."""


@attrs.frozen(kw_only=True)
class StatementCoverage:
    """The coverage of a project.

    `percent` has the covered statements, as `go tool cover -func` sums them up; None if it is unknown. `complete`: the profile
    has each package with tests. Without one of them the true percentage may be lower or higher.
    """

    percent: float | None
    complete: bool


class Coverages:
    """Coverage of analyses, by their stored profiles."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._known: OrderedDict[tuple[str, tuple[PackageProblem, ...]], StatementCoverage] = OrderedDict()
        self._one = asyncio.Lock()

    async def of(self, analysis: AnalysisView) -> StatementCoverage:
        """Return the coverage of an analysis. Raises BlobMissing, Unavailable, ProfileTooLarge."""
        if analysis.profile_digest is None:
            return statements_covered(None, analysis.uncovered)
        key = analysis.profile_digest, analysis.uncovered
        async with self._one:  # a page of badges asks for many at once: one profile in memory at a time
            if key not in self._known:
                body = await self._blobs.get(analysis.profile_digest)
                # A profile of 30,000 blocks takes some tenths of a second: not in the event loop.
                self._known[key] = await asyncio.to_thread(statements_covered, body, analysis.uncovered)
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]


def statements_covered(profile: bytes | None, uncovered: Sequence[PackageProblem]) -> StatementCoverage:
    """Return the coverage by the bytes of a profile. `uncovered` are the analysis's packages without coverage.

    Raises ProfileTooLarge.
    """
    limits = EngineLimits()
    parsed = parse_profile(io.BytesIO(profile or b""), max_bytes=limits.profile_bytes, max_blocks=limits.profile_blocks)
    found = count(block for path in parsed.paths() for block in parsed.blocks_of(path))
    packages = {posixpath.dirname(path) for path in parsed.paths()}
    return StatementCoverage(
        percent=found.statement_percent if found.statements else None,
        complete=all(package.path in packages for package in uncovered if package.tested),
    )
