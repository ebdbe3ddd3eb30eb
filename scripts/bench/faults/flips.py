"""Random single-bit flips and truncations of small stores: how each was noticed. It ends with an error if one was not.

python scripts/bench/faults/flips.py [--trials 1000] [--seed 15] [--kinds blocks,sqlite,postgres]

Each trial changes one file of a stopped nats-server, of SQLite tables, or of Postgres tables: a bit is flipped, or in one of five
trials the file is cut. A trial passes if the change is refused or named, or if all records or rows are as they were. The same
seed makes the same changes of the same bytes; ids and times in them differ from run to run.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.flips.streams import flips
from tests.support.flips.tables import postgres_flips, sqlite_flips

KINDS = {"blocks": flips, "sqlite": sqlite_flips, "postgres": postgres_flips}


async def measure(kind: str, trials: int, seed: int) -> None:
    """Make the trials of one kind and print their outcomes."""
    with tempfile.TemporaryDirectory(prefix="flips-") as directory:
        began = time.monotonic()
        outcomes = await KINDS[kind](Path(directory), trials, seed)
        print(f"{kind}: {outcomes.total()} trials, seed {seed}, {time.monotonic() - began:.0f} s")
        for outcome, count in outcomes.most_common():
            print(f"  {count:5}  {outcome}")


async def main() -> None:
    """Read the options and make the trials."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for kind in options.kinds.split(","):
        await measure(kind, options.trials, options.seed)


if __name__ == "__main__":
    asyncio.run(main())
