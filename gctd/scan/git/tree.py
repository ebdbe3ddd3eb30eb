"""The list of a commit's files, read from git's output, and abandoned if it exceeds the limits."""

from __future__ import annotations

import attrs

from gctd.scan.disk import MIB
from gctd.scan.errors import LimitExceeded

_LONGEST_PATH = 4000


@attrs.frozen(kw_only=True)
class CheckoutLimits:
    """The largest repository that is taken: files, their bytes together and each, directories on the way to one, submodules."""

    files: int = 200_000
    total_bytes: int = 4096 * MIB
    file_bytes: int = 512 * MIB
    depth: int = 100
    submodules: int = 50


class TreeReader:
    """Reads the output of `git ls-tree -r -l -z` and counts, so that a tree beyond the limits is refused early.

    `links` are the paths of symbolic links, `submodules` the commits of submodules by their paths.
    """

    def __init__(self, limits: CheckoutLimits) -> None:
        self._limits = limits
        self._rest = b""
        self._files = 0
        self._total = 0
        self.links: list[bytes] = []
        self.submodules: dict[str, str] = {}
        self.has_modules_file = False

    def feed(self, chunk: bytes) -> None:
        """Take the next piece. Raises LimitExceeded."""
        *lines, self._rest = (self._rest + chunk).split(b"\0")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        limits = self._limits
        about, _, path = line.partition(b"\t")
        mode, _, oid, written = about.decode().split()
        size, name = 0 if written == "-" else int(written), path.decode(errors="replace")
        self._files += 1
        self._total += size
        if self._files > limits.files:
            raise LimitExceeded(f"the repository has more than {limits.files} files")
        if self._total > limits.total_bytes:
            raise LimitExceeded(f"the repository's files are larger than {limits.total_bytes // MIB} MiB together")
        if size > limits.file_bytes:
            raise LimitExceeded(f"a file of the repository is larger than {limits.file_bytes // MIB} MiB: {name}")
        if path.count(b"/") >= limits.depth or len(path) > _LONGEST_PATH:
            raise LimitExceeded(f"a path in the repository is longer, or deeper, than allowed: {name[:200]}")
        if mode == "120000":  # a link
            self.links.append(path)
        elif mode == "160000":
            self.submodules[name] = oid
        elif path == b".gitmodules":
            self.has_modules_file = True
