"""The list of a commit's files, read from git's output, and abandoned if it exceeds the limits."""

from __future__ import annotations

import attrs

from gctd.scan.errors import LimitExceeded
from gctd.scan.isolation.process import MIB

_LONGEST_PATH = 4000


@attrs.frozen
class TreeEntry:
    """A file of a commit: `mode` as git writes it (100644, 100755, 120000 link, 160000 submodule), size in bytes."""

    mode: str
    oid: str
    size: int
    path: bytes


class TreeReader:
    """Reads the output of `git ls-tree -r -l -z` and counts, so that a tree beyond the limits is refused early."""

    def __init__(self, *, files: int, total: int, largest: int, depth: int) -> None:
        self._limits = (files, total, largest, depth)
        self._rest = b""
        self._files = 0
        self._total = 0
        self.links: list[TreeEntry] = []
        self.submodules: list[TreeEntry] = []
        self.modules_file: TreeEntry | None = None

    def feed(self, chunk: bytes) -> None:
        """Take the next piece. Raises LimitExceeded."""
        *lines, self._rest = (self._rest + chunk).split(b"\0")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        files, total, largest, depth = self._limits
        about, _, path = line.partition(b"\t")
        mode, _, oid, size = about.decode().split()
        entry = TreeEntry(mode, oid, 0 if size == "-" else int(size), path)
        self._files += 1
        self._total += entry.size
        if self._files > files:
            raise LimitExceeded(f"the repository has more than {files} files")
        if self._total > total:
            raise LimitExceeded(f"the repository's files are larger than {total // MIB} MiB together")
        if entry.size > largest:
            raise LimitExceeded(f"a file of the repository is larger than {largest // MIB} MiB: {_text(path)}")
        if path.count(b"/") >= depth or len(path) > _LONGEST_PATH:
            raise LimitExceeded(f"a path in the repository is longer, or deeper, than allowed: {_text(path)[:200]}")
        if mode == "120000":
            self.links.append(entry)
        elif mode == "160000":
            self.submodules.append(entry)
        elif path == b".gitmodules":
            self.modules_file = entry


def _text(path: bytes) -> str:
    return path.decode(errors="replace")
