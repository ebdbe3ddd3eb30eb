"""Checkouts in tests: files of a folder, other workers as processes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from gctd.scan.git.checkout import Checkouts


def listing(directory: Path) -> list[str]:
    """Every file below a directory, links too."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())


def folders(cache: Path) -> list[str]:
    """List the folder of jobs."""
    return [path.name for path in (cache / "jobs").iterdir()]


@attrs.frozen
class Counted:
    """Checkouts whose calls of git are counted."""

    checkouts: Checkouts
    log: Path

    def calls(self) -> Counter[str]:
        return Counter(self.log.read_text().split())


OTHER_WORKER = """
import asyncio, sys
from pathlib import Path
from gctd.scan.git.checkout import Checkouts
from gctd.scan.git.commands import Git
from gctd.scan.git.program import GitSettings
from tests.gctd.scan.conftest import LOOPBACK, local, web

async def main(cache, program, *repos):
    checkouts = Checkouts(Path(cache), Git(GitSettings(addresses=LOOPBACK, program=program)))
    urls = [web(repo) if repo.startswith("http") else local(repo) for repo in repos]
    for url in urls:
        async with checkouts.checkout(url) as checkout:
            print(checkout.commit_sha, len(list(checkout.path.iterdir())), flush=True)
    if repos[1:] == repos[:1]:
        async with checkouts.checkout(url) as checkout:
            print("held", flush=True)
            await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


def start_worker(cache: Path, program: Path, *repos: Path | str) -> subprocess.Popen[str]:
    arguments = [str(argument) for argument in (cache, program, *repos)]
    return subprocess.Popen([sys.executable, "-c", OTHER_WORKER, *arguments], stdout=subprocess.PIPE, text=True)


def kept(cache: Path, ids: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Of which repositories there are clones, and of which builds."""
    return [(cache / "clones" / f"{id_}.git").exists() for id_ in ids], [(cache / "builds" / id_).exists() for id_ in ids]
