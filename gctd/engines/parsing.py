"""Parsing the files of a module, in several processes where that is worth it, and not again where the cache has the result."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import attrs
import msgspec

from gctd.engines import lines
from gctd.engines.complexity import SourceFile, analyse_source
from gctd.engines.engine import EngineInput, EngineLost, Limits
from gctd.engines.parsecache import ParseCache
from gctd.engines.report import WarningKind
from gctd.engines.selection import Unreadable, read_source
from gctd.engines.syntax import Unparsable

FEW_FILES = 256
"""Files below which starting processes takes longer than they save."""
_AT_ONCE = 32


class Parsed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of one file: its declarations, or what kind of warning there is, and why."""

    file: SourceFile | None = None
    kind: WarningKind = "syntax"
    reason: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Parsed).decode


@attrs.frozen
class Parser:
    """Parses files below `root`, which are named relative to it; with `follow_links` also through symbolic links."""

    root: Path
    follow_links: bool
    limits: Limits
    cache: ParseCache

    @classmethod
    def of(cls, given: EngineInput, *, follow_links: bool) -> Parser:
        """For one module; what its cache has is read here."""
        return cls(given.module_dir, follow_links, given.limits, ParseCache.read(given.cache))

    def parse(self, path: str, file: Path | None = None) -> Parsed:
        """One file; `file` is where it really is, if not at that path. The cache learns nothing from it."""
        return _decode(self.encoded(path, file)[1])

    @contextmanager
    def parsing(self, paths: Sequence[str], processes: int) -> Iterator[Callable[[], list[Parsed]]]:
        """Begins with the files in up to so many processes; the call gives them in their order, and what is new to the cache.

        Several processes go on while the caller does other work. Raises EngineLost.
        """
        if processes > 1 and len(paths) > FEW_FILES:
            with _in_processes(self, paths, processes) as found:
                yield lambda: self._taken(found)
        else:
            yield lambda: self._taken(map(self.encoded, paths))

    def _taken(self, found: Iterable[tuple[bytes, bytes]]) -> list[Parsed]:
        results = list(found)
        self.cache.write(results)
        return [_decode(body) for _, body in results]

    def encoded(self, path: str, file: Path | None = None) -> tuple[bytes, bytes]:
        """A file's key in the cache, empty for one that has no content, and what became of it, encoded."""
        if file is None:
            file = self.root / path
        if self.follow_links and file.is_symlink():
            file = file.resolve()
        try:
            source = read_source(file, self.limits.file_bytes)
        except Unreadable as error:
            return b"", _encode(Parsed(None, error.kind, str(error)))
        key = self._key(path, source)
        return key, self.cache.get(key) or _encode(self._parsed(path, source))

    def _parsed(self, path: str, source: bytes) -> Parsed:
        try:
            return Parsed(analyse_source(path, source, nesting=self.limits.nesting))
        except Unparsable as error:
            return Parsed(None, "syntax", str(error))

    def _key(self, path: str, source: bytes) -> bytes:
        """Everything that the result depends on but the parser itself; the path only where directives are relative to it."""
        named = path if lines.may_have_directives(source) else ""
        digest = hashlib.sha256(f"{self.limits.nesting} {len(source)} {named}\0".encode(errors="surrogateescape"))
        digest.update(source)
        return digest.digest()


_parser: Parser
"""The parser of a child process."""


@contextmanager
def _in_processes(parser: Parser, paths: Sequence[str], processes: int) -> Iterator[Iterator[tuple[bytes, bytes]]]:
    # A fork inherits the parser with its cache; whoever asks for processes has no threads.
    context = get_context("fork" if sys.platform == "linux" else None)
    try:
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(parser,)) as pool:
            yield pool.map(_encoded, paths, chunksize=_AT_ONCE)
    except BrokenProcessPool as error:
        raise EngineLost("a process that parses was ended, perhaps for want of memory") from error


def _begin(parser: Parser) -> None:
    global _parser  # noqa: PLW0603 - a pool hands nothing else to its processes
    _parser = parser


def _encoded(path: str) -> tuple[bytes, bytes]:
    return _parser.encoded(path)
