"""The savings of the cache: a repository scanned by git, go and the engine as a worker does it, repeatedly on one cache.

PYTHONPATH=.:scripts python scripts/bench/tracker/rescan.py [--runs 3] [--repository URL] [--project .]

Each run begins with an empty cache:

- empty cache: the first scan of all
- second scan: of the same commit, as a user would ask for it
- tests run again: the same with -count=1, so that Go does not take the tests' results from its cache either
- new repository: its clone, builds and modules are removed, Go's own library is there from the scans of others

Printed are the seconds of each stage, and the processor time of all programs that were run (medians, and the lowest and highest
total). Without --repository it is the one that `gctd up --demo` makes. Modules are fetched from where GOPROXY says.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import resource
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import attrs
import psutil

from gctd.broker.blobs import MemoryBlobs
from gctd.domain.remote.urls import parse_repo_url, repo_id
from gctd.domain.repo.config import ProjectConfig
from gctd.domain.task.state import Task, TaskStatus
from gctd.scan.cache.directory import Cache
from gctd.settings import Settings
from gctd.worker.scans.opening import open_work
from gctd.worker.scans.scanning import Scanning

STAGES = ("clone", "modules", "test", "analyse", "store")


@attrs.define
class Measured:
    """A scan: seconds by stage, processor seconds, functions."""

    functions: int
    processor: float
    stages: dict[str, float] = attrs.field(factory=dict)

    @property
    def total(self) -> float:
        """Seconds from beginning to end."""
        return sum(self.stages.values())


async def scan(scanning: Scanning, url: str, project: str, test_args: str | None = None) -> Measured:
    """Scan once."""
    reached: list[tuple[str, float]] = []

    async def on_stage(stage: str, progress: object = None) -> None:
        if progress is None:
            reached.append((stage, time.perf_counter()))

    before = children()
    analysis = await scanning.scan(task(url, project, test_args), on_stage, lambda _: None)
    ends = [*(at for _, at in reached[1:]), time.perf_counter()]
    stages = {stage: end - at for (stage, at), end in zip(reached, ends, strict=True)}
    return Measured(analysis.summary.total_funcs, children() - before, stages)


def children() -> float:
    """Processor seconds of the programs that have ended, of their supervisors, and of the fork server."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [child.cpu_times() for child in psutil.Process().children()]
    collected = (times.user + times.system + times.children_user + times.children_system for times in running)
    return ended.ru_utime + ended.ru_stime + sum(collected)


def task(url: str, project: str, test_args: str | None) -> Task:
    """A task as the queue would give it."""
    now = datetime.now(UTC)
    return Task(
        id="task-1",
        repo_id=repo_id(parse_repo_url(url, allow_local=True).canonical),
        repo_url=url,
        clone_url=url,
        project=project,
        ref="",
        status=TaskStatus.RUNNING,
        engine="native",
        max_attempts=1,
        config=ProjectConfig(test_args=test_args),
        created_at=now,
        updated_at=now,
        waiting_since=now,
    )


async def run(url: str, project: str, cache: Path) -> dict[str, Measured]:
    """All kinds of scans, one after the other, on a cache that is empty at first."""
    settings = Settings(cache_directory=cache, allow_local=True, git_metadata=False)
    scanning = await open_work(settings, MemoryBlobs())
    measured = {
        "empty cache": await scan(scanning, url, project),
        "second scan": await scan(scanning, url, project),
        "tests run again": await scan(scanning, url, project, "-count=1"),
    }
    places = Cache(cache)
    for kind in (places.clones, places.builds):
        for item in await kind.items():
            if not item.name.startswith("std-"):
                await item.forget()
    return measured | {"new repository": await scan(scanning, url, project)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--repository", help="address of a repository, file:// too")
    parser.add_argument("--project", default=".")
    arguments = parser.parse_args()
    found = defaultdict[str, list[Measured]](list)
    with tempfile.TemporaryDirectory() as folder:
        url, project = arguments.repository, arguments.project
        if url is None:
            from gctd.cli.up.demo import make_repository  # noqa: PLC0415 - only if no repository is given

            make_repository(Path(folder) / "shop")
            url, project = (Path(folder) / "shop").as_uri(), "orders"
        for number in range(arguments.runs):
            cache = Path(folder) / f"cache-{number}"
            cache.mkdir()
            for name, measured in asyncio.run(run(url, project, cache)).items():
                found[name].append(measured)
        print(f"{platform.platform()}, Python {platform.python_version()}; {arguments.runs} runs")
        print(f"{url}, project {project}: {found['empty cache'][0].functions} functions")
    columns = "".join(f"{stage:>9}" for stage in STAGES)
    print(f"{'seconds':18}{columns}{'total':>9}{'lowest':>9}{'highest':>9}{'processor':>11}")
    for name, runs in found.items():
        stages = "".join(f"{median(one.stages.get(stage, 0.0) for one in runs):9.2f}" for stage in STAGES)
        totals = [one.total for one in runs]
        processor = median(one.processor for one in runs)
        print(f"{name:18}{stages}{median(totals):9.2f}{min(totals):9.2f}{max(totals):9.2f}{processor:11.2f}")


if __name__ == "__main__":
    main()
