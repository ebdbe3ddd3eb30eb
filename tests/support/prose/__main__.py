"""Print the hits of the patterns of unnatural prose, of which there may be none.

python -m tests.support.prose                        # all hits, and the words of each package
python -m tests.support.prose docs/reference/cli.md gctd       # hits in files or folders
python -m tests.support.prose --since origin/main    # hits on lines that have changed since a revision
python -m tests.support.prose --pattern says gctd    # hits of one pattern
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.support import ROOT
from tests.support.prose import repository
from tests.support.prose.patterns import LINES, PATTERNS


def main() -> int:
    """Run the command. The exit code is 1 if there are hits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders (default: the repository)")
    parser.add_argument("--pattern", choices=(*PATTERNS, *LINES), help="only hits of this pattern")
    parser.add_argument("--since", metavar="REVISION", help="only hits on lines that have changed since a git revision")
    options = parser.parse_args()
    places = [path.resolve() for path in options.paths]
    files = [file for file in repository.files() if not places or any(file.is_relative_to(place) for place in places)]
    hits = repository.hits(files)
    if options.pattern:
        hits = [hit for hit in hits if hit.pattern == options.pattern]
    if options.since:
        changed = repository.changed_since(options.since)
        hits = [hit for hit in hits if (hit.text.file, hit.line) in changed]
    for hit in hits:
        print(f"{hit.text.file.relative_to(ROOT)}:{hit.line}: {hit.pattern}: {hit.excerpt}")
    if not (places or options.since or options.pattern):
        for package, words in repository.words(files).items():
            print(f"{package}: {words:,} words", file=sys.stderr)
    print(f"{len(hits)} hits", file=sys.stderr)
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
