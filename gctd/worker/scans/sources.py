"""The source of a project's functions, read before any test runs, and stored with the analysis.

Which files have functions is known after the scoring. Until then the deflated files of the project are kept in memory, because
nothing that a test could have written is stored.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Collection
from hashlib import sha256

import attrs

from gctd.broker.blobs import Blobs
from gctd.domain.analysis import Blob, CommitFacts
from gctd.engines.engine import EngineFailed, EngineInput
from gctd.engines.functions.sources import LARGEST, KeptFile, KeptSources, deflated, encode_sources
from gctd.engines.selection import Unreadable, Warnings, printable, read_source, select_files

MOST = 64 << 20
"""Bytes of all files of a project that are kept."""
_AT_ONCE = 16


@attrs.frozen
class ReadFile:
    """A file of a project: the digest and size of its content, and its deflated content."""

    digest: str
    size: int
    body: bytes


@attrs.frozen
class ReadSources:
    """The files of a project by their paths in it, and the reasons why others were not read."""

    files: dict[str, ReadFile]
    left_out: dict[str, str]


def read_sources(given: EngineInput) -> ReadSources:
    """Read the Go files of a module, without tests and vendored packages. Symbolic links are not followed.

    Raises EngineFailed if the module has too many files.
    """
    files: dict[str, ReadFile] = {}
    left_out: dict[str, str] = {}
    total = 0
    for path in select_files(given, Warnings(0)):
        if path.endswith("_test.go"):
            left_out[printable(path)] = "the source of tests is not kept"
            continue
        try:
            content = read_source(posixpath.join(given.module_dir, path), LARGEST)
        except Unreadable as error:
            left_out[printable(path)] = str(error)
            continue
        total += len(content)
        if total > MOST:
            left_out[printable(path)] = f"the source of the project has more than {MOST} bytes"
            continue
        files[printable(path)] = ReadFile(sha256(content).hexdigest(), len(content), deflated(content))
    return ReadSources(files, left_out)


async def read_unless_never(given: EngineInput, store_source: str) -> ReadSources | None:
    """Return the source of a module, None with the setting `never`. A module with too many files has none."""
    if store_source == "never":
        return None
    try:
        return await asyncio.to_thread(read_sources, given)
    except EngineFailed:  # the engine fails with the same reason
        return ReadSources({}, {})


async def stored_sources(
    read: ReadSources | None, functions: Collection[str], facts: CommitFacts | None, blobs: Blobs
) -> Blob | None:
    """Store the files with functions, and the list of them. Return the blob of the list, None if no source was read.

    `functions` are the paths of files with functions. Raises Unavailable.
    """
    if read is None:
        return None
    limit = asyncio.Semaphore(_AT_ONCE)

    async def stored(file: ReadFile) -> KeptFile:
        async with limit:
            return KeptFile(digest=file.digest, size=file.size, blob=(await blobs.put(file.body)).digest)

    wanted = sorted(read.files.keys() & set(functions))
    kept = await asyncio.gather(*(stored(read.files[path]) for path in wanted))
    left_out = {path: reason for path, reason in read.left_out.items() if path in set(functions)}
    sources = KeptSources(files=dict(zip(wanted, kept, strict=True)), left_out=left_out, commit=facts)
    ref = await blobs.put(encode_sources(sources))
    return Blob(digest=ref.digest, size=ref.size)
