"""Large bodies, stored outside of the log under their digests, and names that link to them.

A body over 256 KiB does not belong in an event: it is stored first, and the event holds digest and size.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Collection
from datetime import datetime
from hashlib import sha256
from typing import Protocol

import attrs

from eventlog import BlobMissing, TooLarge
from eventlog.jetstream import Connection
from gctd.broker.objects import ObjectBucket, StoredObject

MOST = 256 * 1024**2
"""Bytes that one blob may have, unless a store is made with another bound."""

CACHED = 64 * 1024**2
"""Bytes of blobs that a store keeps in memory: they never change."""

_PREFIX = "sha256-"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class BlobRef:
    """A stored body: its SHA-256 in hex, its size in bytes."""

    digest: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> BlobRef:
        """The reference that these bytes have wherever they are stored."""
        return cls(sha256(data).hexdigest(), len(data))


@attrs.frozen(kw_only=True)
class Removed:
    """Removed bodies, their bytes, and removed names."""

    bodies: int = 0
    size: int = 0
    names: int = 0


class Blobs(Protocol):
    """Where blobs are kept. `BlobStore` is the product's implementation, `MemoryBlobs` the one for tests."""

    async def put(self, data: bytes) -> BlobRef:
        """Store a body; storing the same again changes only its time. Raises TooLarge, Unavailable."""

    async def get(self, digest: str) -> bytes:
        """The body with that digest, checked. Raises BlobMissing, Unavailable."""

    async def link(self, name: str, ref: BlobRef) -> None:
        """Link a name to a stored body; the last link of a name counts. Raises BlobMissing, Unavailable."""

    async def resolve(self, name: str) -> BlobRef | None:
        """The body that a name is linked to. Raises Unavailable."""


class BlobStore:
    """Blobs in an object bucket (ADR-20): bodies as objects `sha256-<hex>`, names as links to them.

    Any client can read both by name (`nats object get BUCKET coverage/...`).
    """

    def __init__(self, connection: Connection, bucket: str, *, most: int = MOST) -> None:
        self._bucket = ObjectBucket(connection, bucket)
        self._most = most
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached = 0

    async def put(self, data: bytes) -> BlobRef:
        """Store a body, durably; storing the same again changes only its time. Raises TooLarge, Unavailable."""
        if len(data) > self._most:
            raise TooLarge(f"a body of {len(data)} bytes is over the {self._most} that may be stored")
        ref = await _reference(data)
        await self._bucket.put(_PREFIX + ref.digest, data)
        self._keep(ref.digest, data)
        return ref

    async def get(self, digest: str) -> bytes:
        """The body with that digest, checked. Raises BlobMissing, Unavailable."""
        if digest in self._cache:
            self._cache.move_to_end(digest)
            return self._cache[digest]
        found = await self._bucket.describe(_PREFIX + digest) if _DIGEST.fullmatch(digest) else None
        if found is None:
            raise BlobMissing(f"no body is stored with the digest {digest}")
        data = await self._bucket.get(found)
        if data is None:
            raise BlobMissing(f"parts of the body stored under {digest} are missing")
        if (await _reference(data)).digest != digest:
            raise BlobMissing(f"the body stored under {digest} has another digest")
        self._keep(digest, data)
        return data

    async def link(self, name: str, ref: BlobRef) -> None:
        """Link a name to a stored body; the last link of a name counts. Raises BlobMissing, Unavailable."""
        found = await self._bucket.describe(_PREFIX + ref.digest)
        if found is None or found.size != ref.size:
            raise BlobMissing(f"no body of {ref.size} bytes is stored with the digest {ref.digest}")
        await self._bucket.link(name, _PREFIX + ref.digest)

    async def resolve(self, name: str) -> BlobRef | None:
        """The body that a name is linked to. Raises Unavailable."""
        link = await self._bucket.describe(name)
        if link is None or link.target is None:
            return None
        body = await self._bucket.describe(link.target)
        return BlobRef(link.target.removeprefix(_PREFIX), body.size) if body else None

    async def remove_unused(self, used: Collection[str], *, keeps: Callable[[str, datetime], bool], before: datetime) -> Removed:
        """Remove the bodies from before that time without a reference; an interrupted call is completed by the next one.

        `used` are the digests that are referred to. `keeps` tells for a name and its time whether the name is still needed: its
        body is then needed too. Names whose body is missing are also removed. A body or a name that is stored again at the same
        moment stays. Objects of other forms are not touched. A broker that is killed can lose removals that it confirmed just
        before: the next call repeats them. Raises Unavailable.
        """
        bodies, names, removed = dict[str, StoredObject](), list[StoredObject](), Removed()
        nuids = set[str]()
        async for found in self._bucket.all():
            for one in found:
                nuids.add(one.description.nuid)
                if one.description.deleted:
                    await self._bucket.remove(one)
                elif one.description.target is not None:
                    names.append(one)
                elif one.description.name.startswith(_PREFIX):
                    bodies[one.description.name] = one
        needed = {one.description.target for one in names if one.at >= before or keeps(one.description.name, one.at)}
        for name, one in tuple(bodies.items()):
            is_used = name.removeprefix(_PREFIX) in used or name in needed
            if not is_used and one.at < before and await self._bucket.remove(one):
                del bodies[name]
                size = removed.size + one.description.size
                removed = attrs.evolve(removed, bodies=removed.bodies + 1, size=size)
        for one in names:
            is_needed = one.description.target in bodies and keeps(one.description.name, one.at)
            if not is_needed and one.at < before and await self._bucket.remove(one):
                removed = attrs.evolve(removed, names=removed.names + 1)
        await self._bucket.remove_stray_chunks(nuids, before=before)
        return removed

    def _keep(self, digest: str, data: bytes) -> None:
        if len(data) > CACHED // 4 or digest in self._cache:
            return
        self._cache[digest] = data
        self._cached += len(data)
        while self._cached > CACHED:
            _, dropped = self._cache.popitem(last=False)
            self._cached -= len(dropped)


class MemoryBlobs:
    """Blobs in memory, for tests."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._bodies: dict[str, bytes] = {}
        self._names: dict[str, BlobRef] = {}

    async def put(self, data: bytes) -> BlobRef:
        """Store a body. Raises TooLarge."""
        if len(data) > self._most:
            raise TooLarge(f"a body of {len(data)} bytes is over the {self._most} that may be stored")
        ref = BlobRef.of(data)
        self._bodies[ref.digest] = data
        return ref

    async def get(self, digest: str) -> bytes:
        """The body with that digest. Raises BlobMissing."""
        if digest not in self._bodies:
            raise BlobMissing(f"no body is stored with the digest {digest}")
        return self._bodies[digest]

    async def link(self, name: str, ref: BlobRef) -> None:
        """Link a name to a stored body. Raises BlobMissing."""
        if len(await self.get(ref.digest)) != ref.size:
            raise BlobMissing(f"no body of {ref.size} bytes is stored with the digest {ref.digest}")
        self._names[name] = ref

    async def resolve(self, name: str) -> BlobRef | None:
        """The body that a name is linked to."""
        return self._names.get(name)


async def _reference(data: bytes) -> BlobRef:
    """As BlobRef.of, in a thread: a large body takes hundreds of milliseconds."""
    return await asyncio.to_thread(BlobRef.of, data)
