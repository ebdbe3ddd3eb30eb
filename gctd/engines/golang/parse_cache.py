"""Results of parsing, kept from one analysis of a project to the next: a file in a private directory for each project.

An entry is found by the digest of the source, so it is the same for every commit of the source. No two projects share a
directory: so source that breaks out of the parser cannot put an entry before another project's. The file holds only the
entries that the last analysis needed. It is replaced as a whole, so a reader sees one state or the other, and of two writers
the later wins. An entry with a wrong check sum is not used.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import attrs
import msgspec
import tree_sitter
import tree_sitter_go

from gctd.engines.golang.files import open_regular

FILE = "sources"
"""The name of the file in the project's directory."""
MIB = 1 << 20
LARGEST = 64 * MIB
"""Bytes that the file of one project may have; a larger one is not kept."""
ALL = 512 * MIB
"""Limit of the bytes in the directories of all projects. The least recently used are removed."""
_CHECK = 16
PARSER = ("complexity", "constraints", "identity", "ignores", "lines", "parsing", "receivers", "syntax")


class _CachedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    check: bytes
    body: bytes


class _Content(msgspec.Struct, frozen=True, array_like=True):
    parser: bytes
    entries: dict[bytes, _CachedFile]


@attrs.frozen
class ParseCache:
    """The results that a file has, by the digest of the source. Without a file it has none and keeps none."""

    file: Path | None = None
    _entries: Mapping[bytes, _CachedFile] = attrs.field(factory=dict, repr=False)

    @classmethod
    def read(cls, file: Path | None) -> ParseCache:
        """Read a file. The cache is empty if the file is missing, damaged, or from another version of the parser."""
        if file is None:
            return cls()
        try:
            with open_regular(file) as opened:
                content = msgspec.msgpack.decode(opened.read(LARGEST), type=_Content)
        except FileNotFoundError:
            return cls(file)
        except (OSError, msgspec.DecodeError) as error:
            _warn("cache of parsed files not used: %s: %s", file, error)
            return cls(file)
        return cls(file, content.entries if content.parser == parser_version() else {})

    def __bool__(self) -> bool:
        """Whether it has any result."""
        return bool(self._entries)

    def get(self, key: bytes) -> bytes | None:
        """Return the result for a source, None if it is missing or damaged."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.check != _check(key, entry.body):
            _warn("damaged entry in the cache of parsed files not used: %s", self.file)
            return None
        return entry.body

    def write(self, results: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep these results (source's digest to result) and no others. Results with an empty digest are not kept."""
        if self.file is None:
            return
        entries = {key: _CachedFile(_check(key, body), body) for key, body in results if key}
        if entries == self._entries:
            with suppress(OSError):
                os.utime(self.file)
            return
        content = msgspec.msgpack.encode(_Content(parser_version(), entries))
        if len(content) > LARGEST:
            return
        try:
            _replace(self.file, content)
        except OSError as error:  # the analysis does not depend on it
            _warn("cache of parsed files not written: %s: %s", self.file, error)


def _warn(text: str, *values: object) -> None:
    # Not structlog: its import is as slow as parsing a large module. The worker logs these lines.
    import logging  # noqa: PLC0415 - there is seldom anything to say

    logging.getLogger(__name__).warning(text, *values)


def _replace(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, written = tempfile.mkstemp(prefix=file.name, dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
        os.replace(written, file)  # noqa: PTH105 - it takes the name that mkstemp gave
    except BaseException:
        os.unlink(written)  # noqa: PTH108 - as above
        raise


def make_room(directory: Path, most: int) -> None:
    """Remove directories of projects, the least recently used first, until all have at most `most` bytes."""
    projects = [(_used(project), project) for project in directory.iterdir()]
    total = sum(size for (_, size), _ in projects)
    for (_, size), project in sorted(projects):
        if total <= most:
            break
        shutil.rmtree(project, ignore_errors=True)  # another process may make room at the same time
        total -= size


def _used(project: Path) -> tuple[float, int]:
    """Return the time of the last use of a project's directory, and its size in bytes."""
    try:
        stats = [file.lstat() for file in project.iterdir()]
    except FileNotFoundError:
        stats = []
    return max((stat.st_mtime for stat in stats), default=0.0), sum(stat.st_size for stat in stats)


def _check(key: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, key=key, digest_size=_CHECK).digest()


@functools.cache
def parser_version() -> bytes:
    """The digest of everything that a result depends on but the source: this code, and the libraries below it."""
    digest = hashlib.sha256()
    for module in PARSER:
        digest.update(Path(__file__).with_name(f"{module}.py").read_bytes())
    for library in (tree_sitter, tree_sitter_go):
        assert library.__file__ is not None, "a package with a binary is a directory"
        for binary in sorted(Path(library.__file__).parent.glob("_binding*")):
            digest.update(binary.read_bytes())
    return digest.digest()
