"""The native engine on the Go standard library's tree, in one process, beside what tree-sitter needs for parsing alone.

python scripts/bench/engine.py [--runs 5] [--tree DIR] [--blocks 1000000]

(a) the whole analysis of the tree's std module, without and with go-crap's faults (which takes in cmd), in functions per second
of processor time; (b) tree-sitter parsing the same files and doing nothing; (c) reading a cover profile of many distinct blocks.
Runs are interleaved; medians, minimum and maximum are printed.
"""

from __future__ import annotations

import argparse
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median

from tree_sitter import Parser

from gctd.engines.engine import EngineInput
from gctd.engines.gocrap_walk import select_like_gocrap
from gctd.engines.native import NativeEngine
from gctd.engines.profile import read_profile
from gctd.engines.selection import Warnings
from gctd.engines.syntax import GO

BLOCKS_PER_FILE = 500


def measured(work: Callable[[], int]) -> float:
    """How many of what `work` counts it does in a second of processor time."""
    start = time.process_time()
    count = work()
    return count / (time.process_time() - start)


def write_profile(path: Path, blocks: int) -> None:
    """A profile of so many distinct blocks."""
    with path.open("w") as file:
        file.write("mode: atomic\n")
        for number in range(blocks):
            name, line = f"example.com/module/package/file{number // BLOCKS_PER_FILE}.go", number % BLOCKS_PER_FILE * 3 + 1
            file.write(f"{name}:{line}.{number % 70 + 1},{line + 2}.7 2 {number % 3}\n")


def read(profile: Path, blocks: int) -> int:
    """Reads a profile whole, every block of it; how many there were."""
    found = read_profile(profile, max_bytes=1 << 30, max_blocks=blocks)
    return sum(len(found.blocks_of(path)) for path in found.paths())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tree", type=Path, help="a module to analyse (default: the src directory of the Go installation)")
    parser.add_argument("--blocks", type=int, default=1_000_000)
    arguments = parser.parse_args()
    tree = arguments.tree or standard_library()
    given = EngineInput(module_dir=tree, repository=tree, module_path="std")
    sources = [(tree / path).read_bytes() for path in select_like_gocrap(given, Warnings(0))]
    megabytes = sum(map(len, sources)) / 1e6

    print(f"{platform.platform()}, Python {platform.python_version()}, one process")
    print(f"tree-sitter {version('tree-sitter')}, tree-sitter-go {version('tree-sitter-go')}")
    print(f"{tree}: {len(sources)} files as go-crap selects them, {megabytes:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "cover.out"
        write_profile(profile, arguments.blocks)
        works: dict[str, Callable[[], int]] = {
            "native, functions/s": lambda: NativeEngine().analyse(given).summary.total_funcs,
            "native-compat, functions/s": lambda: NativeEngine(compat=True).analyse(given).summary.total_funcs,
            "tree-sitter parse alone, bytes/s": lambda: sum(Parser(GO).parse(source).root_node.end_byte for source in sources),
            "profile, blocks/s": lambda: read(profile, arguments.blocks),
        }
        rates = defaultdict[str, list[float]](list)
        for _ in range(arguments.runs):
            for name, work in works.items():
                rates[name].append(measured(work))
    for name, found in rates.items():
        print(f"{name:36} median {median(found):>14,.0f}   min {min(found):>14,.0f}   max {max(found):>14,.0f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, the sources for (b) included")


def standard_library() -> Path:
    """The src directory of the Go on PATH."""
    go = shutil.which("go")
    if go is None:
        sys.exit("error: no go on PATH; name a module with --tree")
    done = subprocess.run([go, "env", "GOROOT"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) / "src"


if __name__ == "__main__":
    main()
