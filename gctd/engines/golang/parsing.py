"""Parsing the files of a module: in several processes if that is worth it, and only without a result in the cache."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import msgspec

from gctd.engines.engine import EngineInput, EngineLimits, EngineLost
from gctd.engines.golang import lines
from gctd.engines.golang.complexity import SourceFile, analyse_source
from gctd.engines.golang.parse_cache import ParseCache
from gctd.engines.golang.syntax import Unparsable
from gctd.engines.report import WarningKind
from gctd.engines.selection import Unreadable, read_source

FEW_FILES = 256
"""Files below which starting processes takes longer than they save."""
_AT_ONCE = 32


class ParseResult(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Result for one file: its declarations, or the kind of a warning with its reason."""

    file: SourceFile | None = None
    kind: WarningKind = "syntax"
    reason: str = ""


_Encoded = tuple[bytes, bytes]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ParseResult).decode


@attrs.frozen
class Parser:
    """Parses files below `root`, which are named relative to it; with `follow_links` also through symbolic links."""

    root: Path
    follow_links: bool
    limits: EngineLimits
    cache: ParseCache

    @classmethod
    def of(cls, given: EngineInput, *, follow_links: bool) -> Parser:
        """Return the parser for one module. The cache of the module is read here."""
        return cls(given.module_dir, follow_links, given.limits, ParseCache.read(given.cache))

    def parse(self, path: str, file: Path | None = None) -> ParseResult:
        """Parse one file. `file` is its real path, if it differs. The result is not added to the cache."""
        try:
            source = self._source(path, file)
        except Unreadable as error:
            return _unreadable(error)
        _, body = self._known(path, source)
        return self._parsed(path, source) if body is None else _decode(body)

    @contextmanager
    def parsing(self, paths: Sequence[str], processes: int) -> Iterator[Callable[[], list[ParseResult]]]:
        """Begin to parse the files, in at most `processes` processes. The provided call returns the results in their order.

        The call also adds new results to the cache. Several processes continue while the caller does other work. Raises
        EngineLost.
        """
        kept = self._kept(paths)
        missing = [path for path in paths if path not in kept]
        if processes > 1 and len(missing) > FEW_FILES:
            with _in_processes(self, missing, processes) as made:
                yield lambda: self._taken(paths, kept | dict(zip(missing, made, strict=True)))
        else:
            yield lambda: self._taken(paths, kept | {path: self.encoded(path) for path in missing})

    def _kept(self, paths: Iterable[str]) -> dict[str, _Encoded]:
        """The files that the cache has: knowing them takes less time than handing them to other processes."""
        found: dict[str, _Encoded] = {}
        for path in paths if self.cache else ():
            try:
                key, body = self._known(path, self._source(path))
            except Unreadable:
                continue
            if body is not None:
                found[path] = key, body
        return found

    def _taken(self, paths: Sequence[str], found: Mapping[str, _Encoded]) -> list[ParseResult]:
        results = [found[path] for path in paths]
        self.cache.write(results)
        return [_decode(body) for _, body in results]

    def encoded(self, path: str) -> _Encoded:
        """Return a file's key in the cache and its encoded result. The key is empty for a file without content."""
        try:
            source = self._source(path)
        except Unreadable as error:
            return b"", _encode(_unreadable(error))
        named = path if lines.may_have_directives(source) else ""
        return self._key(named, source), _encode(self._parsed(path, source))

    def _source(self, path: str, file: Path | None = None) -> bytes:
        named = file or f"{self.root}/{path}"
        if self.follow_links and os.path.islink(named):  # noqa: PTH114 - making a Path takes longer than looking
            named = Path(named).resolve()
        return read_source(named, self.limits.file_bytes)

    def _known(self, path: str, source: bytes) -> tuple[bytes, bytes | None]:
        """Return a source's key and its entry in the cache. The path is in the key only if directives are relative to it."""
        key = self._key("", source)
        body = self.cache.get(key)
        if body is None and lines.may_have_directives(source):
            key = self._key(path, source)
            body = self.cache.get(key)
        return key, body

    def _parsed(self, path: str, source: bytes) -> ParseResult:
        try:
            return ParseResult(analyse_source(path, source, nesting=self.limits.nesting))
        except Unparsable as error:
            return ParseResult(None, "syntax", str(error))

    def _key(self, named: str, source: bytes) -> bytes:
        """Everything that the result depends on but the parser itself."""
        digest = hashlib.sha256(f"{self.limits.nesting} {len(source)} {named}\0".encode(errors="surrogateescape"))
        digest.update(source)
        return digest.digest()


def _unreadable(error: Unreadable) -> ParseResult:
    return ParseResult(None, error.kind, str(error))


_parser: Parser
"""The parser of a child process."""


@contextmanager
def _in_processes(parser: Parser, paths: Sequence[str], processes: int) -> Iterator[Iterator[_Encoded]]:
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor  # noqa: PLC0415 - slow, and seldom wanted
    from multiprocessing import get_context  # noqa: PLC0415 - as above

    # A fork inherits the parser with its cache. A caller that asks for processes has no threads.
    context = get_context("fork" if sys.platform == "linux" else None)
    try:
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(parser,)) as pool:
            yield pool.map(_encoded, paths, chunksize=_AT_ONCE)
    except BrokenProcessPool as error:
        raise EngineLost("a process that parses was ended, perhaps for want of memory") from error


def _begin(parser: Parser) -> None:
    global _parser  # noqa: PLW0603 - a pool hands nothing else to its processes
    _parser = parser


def _encoded(path: str) -> _Encoded:
    return _parser.encoded(path)
