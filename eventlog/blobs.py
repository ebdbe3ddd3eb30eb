"""Large bodies, kept beside the log under their digests, and names that lead to them.

A body over 256 KiB does not belong in an event: it is stored first, and the event holds digest and size (DESIGN, section 3).
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Protocol, TypeVar
from uuid import uuid4

import attrs
import nats.errors
import nats.js.errors
from nats.js.object_store import ObjectStore

from eventlog.errors import BlobMissing, TooLarge, Unavailable
from eventlog.jetstream.connection import Connection

T = TypeVar("T")

MOST = 256 * 1024**2
"""Bytes that one blob may have, unless a store is made with another bound."""
CACHED = 64 * 1024**2
DEADLINE = 60.0
"""Seconds for one blob to be stored or read."""


@attrs.frozen
class BlobRef:
    """A stored body: its SHA-256 in hex, its size in bytes."""

    digest: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> BlobRef:
        """The reference that these bytes have wherever they are stored."""
        return cls(sha256(data).hexdigest(), len(data))


class Blobs(Protocol):
    """Where blobs are kept. `BlobStore` is the product's implementation, `MemoryBlobs` the one for tests."""

    async def put(self, data: bytes) -> BlobRef:
        """Store a body; storing the same again changes nothing. Raises TooLarge, Unavailable."""

    async def get(self, digest: str) -> bytes:
        """The body with that digest, checked. Raises BlobMissing, Unavailable."""

    async def link(self, name: str, ref: BlobRef) -> None:
        """Let a name lead to a stored body; the last link of a name counts. Raises BlobMissing, Unavailable."""

    async def resolve(self, name: str) -> BlobRef | None:
        """The body that a name leads to. Raises Unavailable."""


class BlobStore:
    """Blobs in an object bucket (ADR-20): bodies as objects `sha256-<hex>`, names as links to them."""

    def __init__(self, connection: Connection, bucket: str, *, most: int = MOST) -> None:
        self._connection = connection
        self._bucket = bucket
        self._most = most
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached = 0

    async def put(self, data: bytes) -> BlobRef:
        """Store a body; storing the same again changes nothing. Raises TooLarge, Unavailable."""
        if len(data) > self._most:
            raise TooLarge(f"a body of {len(data)} bytes is over the {self._most} that may be stored")
        ref = BlobRef.of(data)
        name = _object(ref.digest)

        async def store(bucket: ObjectStore) -> None:
            try:
                if (await bucket.get_info(name)).size == ref.size:
                    return
            except nats.js.errors.ObjectNotFoundError:
                pass
            await bucket.put(name, data)

        await self._do(store)
        self._keep(ref.digest, data)
        return ref

    async def get(self, digest: str) -> bytes:
        """The body with that digest, checked. Raises BlobMissing, Unavailable."""
        if digest in self._cache:
            self._cache.move_to_end(digest)
            return self._cache[digest]

        async def read(bucket: ObjectStore) -> bytes:
            return (await bucket.get(_object(digest))).data or b""

        try:
            data = await self._do(read)
        except (nats.js.errors.ObjectNotFoundError, nats.js.errors.ObjectDeletedError) as error:
            raise BlobMissing(f"no body is stored with the digest {digest}") from error
        except nats.js.errors.DigestMismatchError as error:
            raise BlobMissing(f"the body stored under {digest} is damaged") from error
        if BlobRef.of(data).digest != digest:
            raise BlobMissing(f"the body stored under {digest} is another one")
        self._keep(digest, data)
        return data

    async def link(self, name: str, ref: BlobRef) -> None:
        """Let a name lead to a stored body; the last link of a name counts. Raises BlobMissing, Unavailable."""
        target = {"bucket": self._bucket, "name": _object(ref.digest)}
        meta = {
            "name": name,
            "bucket": self._bucket,
            "nuid": uuid4().hex,
            "size": 0,
            "chunks": 0,
            "options": {"link": target},
        }
        encoded = base64.urlsafe_b64encode(name.encode()).decode()

        async def write(bucket: ObjectStore) -> None:
            if (await bucket.get_info(_object(ref.digest))).size != ref.size:
                raise BlobMissing(f"the body stored under {ref.digest} has another size")
            await self._connection.client.jetstream().publish(
                f"$O.{self._bucket}.M.{encoded}", json.dumps(meta).encode(), headers={"Nats-Rollup": "sub"}
            )

        try:
            await self._do(write)
        except nats.js.errors.ObjectNotFoundError as error:
            raise BlobMissing(f"no body is stored with the digest {ref.digest}") from error

    async def resolve(self, name: str) -> BlobRef | None:
        """The body that a name leads to. Raises Unavailable."""

        async def follow(bucket: ObjectStore) -> BlobRef | None:
            options = (await bucket.get_info(name)).options
            if options is None or options.link is None or options.link.name is None:
                return None
            target = await bucket.get_info(options.link.name)
            return BlobRef(options.link.name.removeprefix("sha256-"), target.size or 0)

        try:
            return await self._do(follow)
        except (nats.js.errors.ObjectNotFoundError, nats.js.errors.ObjectDeletedError):
            return None

    async def _do(self, operation: Callable[[ObjectStore], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(DEADLINE):
                bucket = await self._connection.client.jetstream().object_store(self._bucket)
                return await operation(bucket)
        except (nats.js.errors.ObjectNotFoundError, nats.js.errors.ObjectDeletedError, nats.js.errors.DigestMismatchError):
            raise
        except (TimeoutError, nats.errors.Error) as error:
            raise Unavailable(f"bodies cannot be stored or read now: {str(error) or 'no answer'}") from error

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

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}
        self._names: dict[str, BlobRef] = {}

    async def put(self, data: bytes) -> BlobRef:
        """Store a body."""
        ref = BlobRef.of(data)
        self._bodies[ref.digest] = data
        return ref

    async def get(self, digest: str) -> bytes:
        """The body with that digest. Raises BlobMissing."""
        if digest not in self._bodies:
            raise BlobMissing(f"no body is stored with the digest {digest}")
        return self._bodies[digest]

    async def link(self, name: str, ref: BlobRef) -> None:
        """Let a name lead to a stored body. Raises BlobMissing."""
        await self.get(ref.digest)
        self._names[name] = ref

    async def resolve(self, name: str) -> BlobRef | None:
        """The body that a name leads to."""
        return self._names.get(name)


def _object(digest: str) -> str:
    return f"sha256-{digest}"
