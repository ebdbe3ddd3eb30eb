"""Real modules through a whole tracker: states and reasons, the same numbers as `go tool cover`, one gate for one commit.

PYTHONPATH=.:scripts python scripts/bench/tracker/trees.py [--runs 5] [--differences 10] [--base HEAD~1] [FLAGS] REPO…

Each REPO is a local git repository. Its dependencies come from the module proxy in GOPROXY. The root module at HEAD is analysed
`--runs` times, and the gate is asked after each run. The profile of the last run is then scored by `native-compat`, and by
`go-crap` if it is on PATH. The exit code is 1 if a check fails. The figures depend on the tests of the repository.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from eventlog.jetstream.transport.connection import Connection
from gctd.broker.blobs import BlobStore
from tests.support.tracker import gocrap
from tests.support.tracker.system import REAL_WORKER, TrackerSystem, tracker_system
from tests.support.waiting import wait_until

KNOWN = frozenset({"measured", "other_tests", "no_tests"})
THRESHOLD = 30.0
LONGEST = 1500.0


@attrs.frozen
class Tree:
    """A repository in a tracker; `place` is an empty directory for its checkout."""

    system: TrackerSystem
    blobs: BlobStore
    path: Path
    place: Path

    @property
    def url(self) -> str:
        """The address of the repository."""
        return self.path.as_uri()

    def git(self, *arguments: str) -> str:
        """Run git in the repository; its output."""
        return _run(["git", *arguments], self.path)

    async def ended(self, path: str, **how: Any) -> Any:
        """The result of a task that is queued by a POST to `path`."""
        (task,) = await self.system.post(path, {"repo_url": self.url, "project": ".", **how})
        done = await self.system.until_task(task["id"], "completed", "failed", timeout=LONGEST)
        if done["status"] != "completed":
            raise RuntimeError(f"{self.path.name}: {done['reason']}")
        return await self.system.get(f"/api/tasks/{task['id']}/result")

    async def gate(self, project: str, base: str) -> Any:
        """The verdict on the last analysis, after the analysis of the base."""
        asked = {"base": base}
        await self.system.post(f"/api/repos/{project}/gate", asked)

        async def given() -> Any:
            found = await self.system.post(f"/api/repos/{project}/gate", asked)
            return found if found["result"] != "unknown" or "has failed" in found["reason"] else None

        return await wait_until(given, timeout=LONGEST, every=2.0)


async def main(given: argparse.Namespace, directory: Path) -> int:
    """Measure all repositories; the exit code."""
    cache = {"GCTD_CACHE_DIRECTORY": str(given.cache.absolute())} if given.cache else {}
    problems: list[str] = []
    async with (
        tracker_system(directory, GCTD_LOG_LEVEL="warning", GCTD_TASK_TIMEOUT="25m", **cache) as system,
        Connection.open(system.nats.url, name="trees") as connection,
    ):
        await system.start_worker(1, program=REAL_WORKER)
        for path in given.repositories:
            (place := directory / f"{path.name}-checkout").mkdir()
            tree = Tree(system, BlobStore(connection, "gctd-blobs"), path.absolute(), place)
            problems += [f"{path.name}: {problem}" async for problem in _checked(tree, given)]
    print("\n".join(problems) or "all checks hold")
    return int(bool(problems))


async def _checked(tree: Tree, given: argparse.Namespace) -> Any:
    """Print the figures of a repository; yields each check that does not hold."""
    await tree.system.register(tree.url)
    settings = {"test_args": given.test_args or None, "coverpkg": given.coverpkg or None}
    await tree.system.post("/api/repo-config", {"url": tree.url, **settings})
    base = tree.git("rev-parse", given.base)
    first = result = None
    gates = set()
    for number in range(given.runs):
        result = await tree.ended("/api/repos/analyze", **({"again": True} if number else {}))
        if first is None:
            first = result
            for problem in _measured(tree.path.name, result):
                yield problem
        verdict = await tree.gate(result["id"], base)
        gates.add((verdict["verdict"], verdict["result"]))
        changed = _changed(first, result)
        print(f"  run {number + 1}: gate {verdict['result']}, {len(changed)} functions differ from the first run", flush=True)
        print("".join(f"    {line}\n" for line in changed[: given.differences]), end="", flush=True)
    if len(gates) != 1:
        yield f"the gate changed: {sorted(gates)}"
    for problem in await _parity(tree, result):  # last, because the gate judges the last analysis of the project
        yield problem


def _changed(first: Any, result: Any) -> list[str]:
    """The functions whose state or coverage is another one, with both and the reasons."""
    before = {_place(one): one for one in first["entries"]}
    after = {_place(one): one for one in result["entries"]}
    return [
        f"{' '.join(map(str, place))}: {_shown(before.get(place))}, then {_shown(after.get(place))}"
        for place in sorted(before.keys() | after.keys())
        if _shown(before.get(place)) != _shown(after.get(place))
    ]


def _measured(name: str, result: Any) -> Iterator[str]:
    entries = result["entries"]
    unknown = [one for one in entries if one["state"] not in KNOWN]
    risky = sum(one["crap"] > THRESHOLD for one in entries if one["state"] in KNOWN)
    over = sum(one["crap"] > THRESHOLD for one in unknown)
    print(
        f"{name} {result['repo_info']['commit_sha'][:12]}, {result['go_version']}: {len(entries)} functions, {result['states']}"
    )
    print(f"  risky: {risky}; {over} more are over {THRESHOLD:.0f} but not measured", flush=True)
    if result["measured"]["exceeded"] != risky:
        yield f"{result['measured']['exceeded']} functions are called risky, {risky} of the measured ones are"
    if nameless := [one["function"] for one in unknown if not one["reason"]]:
        yield f"not measured without a reason: {nameless[:5]}"


async def _parity(tree: Tree, result: Any) -> list[str]:
    problems = []
    compat = await tree.ended("/api/repos/rescore", engine="native-compat")
    profile = await _profile(tree, result)
    listed = await asyncio.to_thread(_go_tool_cover, tree, profile)
    if gocrap.PROGRAM is not None:
        theirs = gocrap.numbers(await asyncio.to_thread(gocrap.scan, tree.place, profile))
        ours = gocrap.numbers(compat["raw_output"])
        print(f"  go-crap: {len(theirs)} functions, native-compat {'equal' if ours == theirs else 'different'}")
        problems += [] if ours == theirs else ["native-compat is not equal to go-crap"]
    own = {(one["file"], one["line"]): one["stmt_coverage"] for one in result["entries"]}
    different = [place for place, percent in listed.items() if own.get(place) is None or f"{own[place]:.1f}%" != percent]
    print(f"  go tool cover -func: {len(listed) - len(different)} of {len(listed)} functions equal", flush=True)
    return problems + ([f"other than go tool cover: {different[:5]}"] if different else [])


async def _profile(tree: Tree, result: Any) -> bytes:
    found = await tree.blobs.resolve(result["profile_path"])
    return b"" if found is None else await tree.blobs.get(found.digest)


def _go_tool_cover(tree: Tree, profile: bytes) -> dict[tuple[str, int], str]:
    """The output of `go tool cover -func`: per cent by file and line."""
    _run(["git", "clone", "--quiet", str(tree.path), str(tree.place)], tree.place)
    (tree.place / "cover.out").write_bytes(profile)
    module = _run(["go", "list", "-m"], tree.place).split()[0]
    rows = [line.split() for line in _run(["go", "tool", "cover", "-func=cover.out"], tree.place).splitlines()]
    places = [(*place.removeprefix(f"{module}/").split(":")[:2], percent) for place, *_, percent in rows if place != "total:"]
    return {(file, int(line)): percent for file, line, percent in places}


def _run(command: list[str], directory: Path) -> str:
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout.rstrip("\n")


def _place(one: Any) -> tuple[str, int, str]:
    return one["file"], one["line"], one["function"]


def _shown(one: Any) -> str:
    if one is None:
        return "missing"
    return f"{one['state']} {one['coverage']}" + (f" ({one['reason']})" if one["reason"] else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Real modules through a whole tracker.")
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPO")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--differences", type=int, default=10, help="Differing functions that are printed of each run.")
    parser.add_argument("--base", default="HEAD~1", help="The gate compares with this commit.")
    parser.add_argument("--test-args", default="", help="Flags of go test.")
    parser.add_argument("--coverpkg", action="store_true", help="The tests of each package count for all packages.")
    parser.add_argument("--cache", type=Path, help="A cache directory of workers that is kept.")
    with tempfile.TemporaryDirectory(prefix="gctd-trees-") as scratch:
        sys.exit(asyncio.run(main(parser.parse_args(), Path(scratch))))
