"""The demonstration of `gctd up --demo`: a small Go repository, registered and analysed as a user would do it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from eventlog.embedded import attached_command
from gctd.cli.up.console import Console
from gctd.cli.up.system import System

SOURCES = Path(__file__).resolve().parent / "demo_repository"
CHANGE = SOURCES.with_name("demo_change")
"""The files that differ on the branch: one risky function gets worse, and another one has tests now."""
BRANCH = "oceania"

_SAME_EVERYWHERE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Demo"), ("EMAIL", "demo@example.com"), ("DATE", "2024-02-29T12:00:00Z"))
    },
}
"""With these settings the commits have the same digests on every machine."""


class DemoFailed(Exception):
    """The demonstration did not get to its end; the text says at which command."""


def make_repository(directory: Path) -> None:
    """Make the repository, with a commit on `main` and one on a branch, unless it is there already.

    Raises DemoFailed where git does not work.
    """
    if (directory / ".git").exists():
        return
    unfinished = directory.with_name(f"{directory.name}.new")
    for remains in (directory, unfinished):
        shutil.rmtree(remains, ignore_errors=True)
    shutil.copytree(SOURCES, unfinished)
    _git(unfinished, "init", "--quiet", "--initial-branch=main")
    _commit(unfinished, "A small shop")
    _git(unfinished, "checkout", "--quiet", "-b", BRANCH)
    shutil.copytree(CHANGE, unfinished, dirs_exist_ok=True)
    _commit(unfinished, "Parcels to Oceania, and a test of the check of orders")
    _git(unfinished, "checkout", "--quiet", "main")
    unfinished.rename(directory)


def _commit(directory: Path, message: str) -> None:
    _git(directory, "add", "--all")
    _git(directory, "commit", "--quiet", f"--message={message}")


def _git(directory: Path, *arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", *arguments],  # noqa: S607 - the git of the user
            cwd=directory,
            env={**os.environ, **_SAME_EVERYWHERE},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise DemoFailed(f"git cannot be run: {error}") from error
    if done.returncode:
        raise DemoFailed(f"git {arguments[0]}: {done.stdout.strip()}")


async def demonstrate(system: System, console: Console) -> None:
    """Make the repository, register it and have both commits analysed, by the command line. Raises DemoFailed.

    The branch is analysed first, so the figures of `main` are shown last.
    """
    repository = system.places.data / "demo" / "shop"
    await asyncio.to_thread(make_repository, repository)
    console.say(f"a small Go repository is in {repository}")
    url = repository.as_uri()
    for command in (
        ["repo", "add", url],
        ["repo", "analyze", url, "--project", "orders", "--ref", BRANCH, "--top", "0"],
        ["repo", "analyze", url],
    ):
        console.say(f"$ {shlex.join(['gctd', *command])}")
        status = await _gctd(command, system)
        if status:
            raise DemoFailed(f"gctd {command[0]} {command[1]} ended with status {status}")


async def _gctd(arguments: list[str], system: System) -> int:
    command = attached_command([sys.executable, "-P", "-m", "gctd", *arguments], end=signal.SIGKILL)
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **system.environment})
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
