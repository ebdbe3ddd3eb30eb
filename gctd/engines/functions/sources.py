"""The kept source of an analysis: which blob has the content of which file, and the commit that it is from.

A body is the deflated content of one file. The digest of the content is checked after it is inflated.
"""

from __future__ import annotations

import zlib
from hashlib import sha256

import attrs
import msgspec

from gctd.domain.analysis import CommitFacts

LARGEST = 1 << 20
"""Bytes that a kept file may have."""


class SourceDamaged(ValueError):
    """A stored body is not the content that its analysis names."""


@attrs.frozen(kw_only=True)
class KeptFile:
    """A file of source: the sha-256 of its content, its size in bytes, and the digest of the blob with its deflated content."""

    digest: str
    size: int
    blob: str


@attrs.frozen(kw_only=True)
class KeptSources:
    """The kept files by their paths in the project, the reasons why others are not kept, and the facts about the commit."""

    files: dict[str, KeptFile]
    left_out: dict[str, str] = attrs.field(factory=dict)
    commit: CommitFacts | None = None


def encode_sources(sources: KeptSources) -> bytes:
    """Return the kept source as a JSON document."""
    return msgspec.json.encode(sources)


def decode_sources(document: bytes) -> KeptSources:
    """Return kept source from its JSON document. Raises msgspec.DecodeError."""
    return msgspec.json.decode(document, type=KeptSources)


def deflated(content: bytes) -> bytes:
    """Return the body of a file, the same for the same content."""
    return zlib.compress(content, 6)


def inflated(body: bytes, kept: KeptFile) -> bytes:
    """Return the content of a file from its body. Raises SourceDamaged."""
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(body, LARGEST + 1)
    except zlib.error as error:
        raise SourceDamaged(f"the stored source cannot be inflated: {error}") from error
    if len(content) != kept.size or sha256(content).hexdigest() != kept.digest:
        raise SourceDamaged("the stored source has another digest than its analysis names")
    return content
