"""Print the hits of the patterns of unnatural prose, or lower the ratchet to the counts of today.

python -m tests.support.prose                        # counts per package
python -m tests.support.prose docs/reference/cli.md gctd       # hits in files or folders
python -m tests.support.prose --since origin/main    # hits on lines that have changed since a revision
python -m tests.support.prose --pattern says gctd    # hits of one pattern
python -m tests.support.prose --write                # hold the counts of today, if no pattern has more hits in total
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.support import ROOT
from tests.support.prose import ratchet
from tests.support.prose.patterns import LINES, PATTERNS


def main() -> int:
    """Run the command. The exit code is 1 if `--write` is refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; without them, counts per package are printed")
    parser.add_argument("--pattern", choices=(*PATTERNS, *LINES), help="only hits of this pattern")
    parser.add_argument("--since", metavar="REVISION", help="only hits on lines that have changed since a git revision")
    parser.add_argument("--write", action="store_true", help="write the counts of today to tests/project/prose.json")
    options = parser.parse_args()
    places = [path.resolve() for path in options.paths]
    files = [file for file in ratchet.files() if not places or any(file.is_relative_to(place) for place in places)]
    hits = ratchet.hits(files)
    if options.write:
        return _write(ratchet.counts(hits))
    if options.pattern:
        hits = [hit for hit in hits if hit.pattern == options.pattern]
    if options.since:
        changed = ratchet.changed_since(options.since)
        hits = [hit for hit in hits if (hit.text.file, hit.line) in changed]
    if places or options.since or options.pattern:
        for hit in hits:
            print(f"{hit.text.file.relative_to(ROOT)}:{hit.line}: {hit.pattern}: {hit.excerpt}")
    else:
        for package, patterns in ratchet.counts(hits).items():
            print(package, sum(patterns.values()), " ".join(f"{name}={count}" for name, count in patterns.items()))
    print(f"{len(hits)} hits", file=sys.stderr)
    return 0


def _write(now: ratchet.Counts) -> int:
    before = ratchet.held() if ratchet.FILE.exists() else None
    if before is not None and (risen := ratchet.risen(ratchet.totals(before), ratchet.totals(now))):
        print("\n".join(["error: these counts rose; --since REVISION shows the hits on changed lines", *risen]), file=sys.stderr)
        return 1
    ratchet.write(now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
