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

from eventlog.embedded.die_with_parent import attached
from gctd.cli.up.console import Console
from gctd.cli.up.system import System

SOURCES = Path(__file__).resolve().parent / "demo_repository"

_SAME_EVERYWHERE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Demo"), ("EMAIL", "demo@example.com"))
    },
    "GIT_AUTHOR_DATE": "2024-02-29T12:00:00Z",
    "GIT_COMMITTER_DATE": "2024-02-29T12:00:00Z",
}
"""With these settings the commit has the same digest on every machine."""


class DemoFailed(Exception):
    """The demonstration did not get to its end; the text says at which command."""


def make_repository(directory: Path) -> None:
    """Make the repository, with one commit, unless it is there already. Raises DemoFailed where git does not work."""
    if (directory / ".git" / "refs" / "heads" / "main").exists():
        return
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(SOURCES, directory)
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        ["commit", "--quiet", "--message=A small shop"],
    ):
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
    """Make the repository, register it and have it analysed, by the command line. Raises DemoFailed."""
    repository = system.places.data / "demo" / "shop"
    await asyncio.to_thread(make_repository, repository)
    console.say(f"a small Go repository is in {repository}")
    for command in (["repo", "add", repository.as_uri()], ["repo", "analyze", repository.as_uri()]):
        console.say(f"$ {shlex.join(['gctd', *command])}")
        status = await _gctd(command, system)
        if status:
            raise DemoFailed(f"gctd {command[0]} {command[1]} ended with status {status}")


async def _gctd(arguments: list[str], system: System) -> int:
    command = attached([sys.executable, "-P", "-m", "gctd", *arguments], end=signal.SIGKILL)
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **system.environment})
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
