"""The coverage of a whole project, by the cover profile that an analysis was made from."""

from __future__ import annotations

import asyncio
import io
from collections import OrderedDict

from eventlog.broker.blobs import Blobs
from gctd.engines.coverage import count
from gctd.engines.engine import EngineLimits
from gctd.engines.golang.profile import parse_profile

KEPT = 10_000
"""Results that are kept: a profile never changes."""


class Coverages:
    """Coverage by the digest of a stored profile."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._known: OrderedDict[str, float | None] = OrderedDict()
        self._one = asyncio.Lock()

    async def of(self, digest: str) -> float | None:
        """Return the covered statements in per cent, as `go tool cover -func` sums them up; None for an empty profile.

        Raises BlobMissing, Unavailable, ProfileTooLarge.
        """
        async with self._one:  # a page of badges asks for many at once: one profile in memory at a time
            if digest not in self._known:
                body = await self._blobs.get(digest)
                # A profile of 30,000 blocks takes some tenths of a second: not in the event loop.
                self._known[digest] = await asyncio.to_thread(statements_covered, body)
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(digest)
            return self._known[digest]


def statements_covered(profile: bytes) -> float | None:
    """Return the percentage as `Coverages.of` does, for the bytes of a profile. Raises ProfileTooLarge."""
    limits = EngineLimits()
    parsed = parse_profile(io.BytesIO(profile), max_bytes=limits.profile_bytes, max_blocks=limits.profile_blocks)
    found = count(block for path in parsed.paths() for block in parsed.blocks_of(path))
    return found.statement_percent if found.statements else None
