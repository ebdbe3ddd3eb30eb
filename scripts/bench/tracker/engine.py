"""The native engine on the Go standard library's tree as workers run it, and go-crap if that is on PATH.

python scripts/bench/tracker/engine.py [--runs 5] [--tree DIR] [--processes 2] [--blocks 1000000]

(a) `python -m gctd.engines` on the tree's std module with a cover profile that names every function, without and with go-crap's
faults (which takes in cmd): cold, again with one file changed, and `go-crap scan` on the same; in seconds by the clock and of
processor time, start of the program included. (b) In one process: the analysis without a cache, tree-sitter parsing the same
files and doing nothing, reading a cover profile of many distinct blocks; by processor time. Runs are interleaved; medians,
minimum and maximum are printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

import attrs
from tree_sitter import Parser

from gctd.engines.__main__ import EngineRequest
from gctd.engines.engine import EngineInput
from gctd.engines.gocrap.walk import select_like_gocrap
from gctd.engines.golang.profile import read_profile
from gctd.engines.golang.syntax import GO
from gctd.engines.native import NativeEngine
from gctd.engines.report import decode
from gctd.engines.selection import Warnings

BLOCKS_PER_FILE = 500
CHANGED = Path("strings/strings.go")
"""The file of the tree that is changed between two runs."""


def measured(work: Callable[[], int]) -> float:
    """How many items of `work` it does in a second of processor time."""
    start = time.process_time()
    count = work()
    return count / (time.process_time() - start)


def timed(command: Sequence[str], directory: Path) -> tuple[float, float]:
    """Seconds by the clock and of processor time that a command takes with everything that it starts."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, cwd=directory, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_profile(path: Path, blocks: int) -> None:
    """A profile of that many distinct blocks."""
    with path.open("w") as file:
        file.write("mode: atomic\n")
        for number in range(blocks):
            name, line = f"example.com/module/package/file{number // BLOCKS_PER_FILE}.go", number % BLOCKS_PER_FILE * 3 + 1
            file.write(f"{name}:{line}.{number % 70 + 1},{line + 2}.7 2 {number % 3}\n")


def write_profile_of(tree: Path, path: Path) -> int:
    """A profile with a block for each function of the tree, every other one covered; how many."""
    entries = NativeEngine().analyse(EngineInput(module_dir=tree, repository=tree, module_path="std")).entries
    lines = (f"{e.file}:{e.line}.1,{e.end_line}.2 1 {number % 2}\n" for number, e in enumerate(entries))
    path.write_text("mode: set\n" + "".join(lines))
    return len(entries)


def read(profile: Path, blocks: int) -> int:
    """Reads a profile whole, every block of it; how many there were."""
    found = read_profile(profile, max_bytes=1 << 30, max_blocks=blocks)
    return sum(len(found.blocks_of(path)) for path in found.paths())


@attrs.frozen
class Engine:
    """An engine as a program on a tree, with its cache and its files in `folder`."""

    name: str
    given: EngineInput
    folder: Path

    def run(self) -> tuple[float, float]:
        order = self.folder / "order.json"
        order.write_bytes(EngineRequest(engine=self.name, given=self.given).written())
        return timed([sys.executable, "-m", "gctd.engines", str(order), str(self.folder / "report.json")], self.folder)

    def cold(self) -> tuple[float, float]:
        assert self.given.cache is not None
        self.given.cache.unlink(missing_ok=True)
        return self.run()

    def one_changed(self) -> tuple[float, float]:
        """After `cold`."""
        with (self.given.module_dir / CHANGED).open("a") as file:
            file.write(f"\nfunc changed{time.monotonic_ns()}() {{}}\n")
        return self.run()

    def functions(self) -> int:
        return decode((self.folder / "report.json").read_bytes()).summary.total_funcs


def programs(tree: Path, folder: Path, processes: int, runs: int) -> None:
    """Part (a)."""
    profile = tree / ".go-crap-cover.out"  # where go-crap needs it
    print(f"cover profile of {write_profile_of(tree, profile)} blocks; {processes} processes")
    given = EngineInput(module_dir=tree, repository=tree, module_path="std", profile=profile, processes=processes)
    works: dict[str, Callable[[], tuple[float, float]]] = {}
    engines = [
        Engine(name, attrs.evolve(given, cache=folder / name / "std.parsed"), folder) for name in ("native", "native-compat")
    ]
    for engine in engines:
        works[f"{engine.name}, cold"] = engine.cold
        works[f"{engine.name}, one file changed"] = engine.one_changed
    gocrap = shutil.which("go-crap")
    if gocrap is not None:
        scan = [gocrap, "scan", "--coverage-profile", str(profile), "--format", "json", "-o", str(folder / "go-crap.json")]
        works["go-crap"] = lambda: timed(scan, tree)
    seconds = defaultdict[str, list[float]](list)
    for _ in range(runs):
        for name, work in works.items():
            wall, processor = work()
            seconds[f"{name}, s by the clock"].append(wall)
            seconds[f"{name}, s of processor time"].append(processor)
    show(seconds, ".2f")
    for engine in engines:
        engine.run()
        print(f"{engine.name}: {engine.functions()} functions")
    if gocrap is None:
        print("go-crap: not on PATH, not measured")


def parts(tree: Path, folder: Path, blocks: int, runs: int) -> None:
    """Part (b)."""
    given = EngineInput(module_dir=tree, repository=tree, module_path="std")
    sources = [(tree / path).read_bytes() for path in select_like_gocrap(given, Warnings(0))]
    print(f"one process; {len(sources)} files as go-crap selects them, {sum(map(len, sources)) / 1e6:.1f} MB")
    profile = folder / "cover.out"
    write_profile(profile, blocks)
    works: dict[str, Callable[[], int]] = {
        "native, functions/s": lambda: NativeEngine().analyse(given).summary.total_funcs,
        "native-compat, functions/s": lambda: NativeEngine(compat=True).analyse(given).summary.total_funcs,
        "tree-sitter parse alone, bytes/s": lambda: sum(Parser(GO).parse(source).root_node.end_byte for source in sources),
        "profile, blocks/s": lambda: read(profile, blocks),
    }
    rates = defaultdict[str, list[float]](list)
    for _ in range(runs):
        for name, work in works.items():
            rates[name].append(measured(work))
    show(rates, ",.0f")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, the sources included")


def show(found: Mapping[str, Sequence[float]], form: str) -> None:
    """Median, minimum and maximum, a line each."""
    for name, values in found.items():
        print(f"{name:48} median {median(values):>12{form}}   min {min(values):>12{form}}   max {max(values):>12{form}}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tree", type=Path, help="the src directory of a Go installation (default: of the one on PATH)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=1_000_000)
    arguments = parser.parse_args()
    source = arguments.tree or standard_library()
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    print(f"tree-sitter {version('tree-sitter')}, tree-sitter-go {version('tree-sitter-go')}, {source}")
    with tempfile.TemporaryDirectory() as name:
        folder, tree = Path(name), Path(name) / "src"
        shutil.copytree(source, tree)
        programs(tree, folder, arguments.processes, arguments.runs)
        parts(tree, folder, arguments.blocks, arguments.runs)


def standard_library() -> Path:
    """The src directory of the Go on PATH."""
    go = shutil.which("go")
    if go is None:
        sys.exit("error: PATH has no go; name a directory with --tree")
    done = subprocess.run([go, "env", "GOROOT"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) / "src"


if __name__ == "__main__":
    main()
