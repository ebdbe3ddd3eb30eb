"""git as a program of the machine: its settings, its environment, its version."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from gctd.domain.remote.addresses import PUBLIC_ONLY, AddressPolicy
from gctd.scan.disk import MIB
from gctd.scan.errors import GitError
from gctd.scan.isolation.output import OnOutput
from gctd.scan.isolation.process import Finished, Limits, run

OLDEST = (2, 37)
"""The oldest git that has all the options used here: `safe.bareRepository` for example."""
ABSENT = os.devnull

_NOWHERE = Path("/")
_LOCAL_SECONDS = 600.0
_WRITES_NOTHING = Limits(free_space=None)
_NOTHING: Mapping[str, str] = {}

_CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.askPass": "",
    "credential.helper": "",
    "fetch.unpackLimit": "1",  # one pack, whose size the limit on file sizes bounds
    "fetch.fsck.badTimezone": "ignore",  # in the history of many old repositories, and harmless
    "fetch.fsck.missingSpaceBeforeDate": "ignore",
    "fetch.fsck.zeroPaddedFilemode": "ignore",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "protocol.version": "2",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "transfer.fsckObjects": "true",
}


@attrs.frozen(kw_only=True)
class GitSettings:
    """Settings of the operator for git.

    `addresses`: hosts outside the public internet that may be fetched from.
    `proxy`: the HTTP proxy. With a proxy, the proxy resolves the hosts, so their addresses cannot be checked here.
    `ca_file`: certificates to trust.
    `credentials`: host, or host and port, to `user:password`, for https.
    `ssh_options`: arguments for ssh (`-i`, `-o UserKnownHostsFile=…`).
    `transfer_bytes`: limit of the bytes of one fetch.
    `program`, `search_path`: git, and the PATH for the search of git and its parts.
    """

    addresses: AddressPolicy = PUBLIC_ONLY
    proxy: str | None = attrs.field(default=None, repr=False)
    ca_file: Path | None = None
    credentials: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    ssh_options: tuple[str, ...] = ()
    transfer_bytes: int = 2048 * MIB
    program: str = "git"
    search_path: str = os.environ.get("PATH", os.defpath)

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not appear in any output."""
        return (*self.credentials.values(), *((self.proxy,) if self.proxy else ()))


class GitProgram:
    """git of the machine, run without configuration of the machine, of a user, or of a repository."""

    def __init__(self, settings: GitSettings) -> None:
        self._settings = settings
        self._program: str | None = None

    async def run(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        seconds: float = _LOCAL_SECONDS,
        git_dir: Path | None = None,
        config: Mapping[str, str] = _NOTHING,
        on_stdout: OnOutput | None = None,
        on_output: OnOutput | None = None,
        limits: Limits | None = None,
        cwd: Path | None = None,
    ) -> Finished:
        """Run git, on the repository `git_dir` if one is given. Raises GitError if the machine has no git that is new enough."""
        settings = [argument for key, value in {**_CONFIG, **config}.items() for argument in ("-c", f"{key}={value}")]
        argv = [await self._found(), *settings, *arguments]
        environment = environment or self.environment()
        if arguments[0] != "init":
            environment = {**environment, "GIT_DIR": str(git_dir) if git_dir is not None else ABSENT}
        return await run(
            argv,
            cwd=cwd or git_dir or _NOWHERE,
            env=environment,
            timeout=seconds,
            on_stdout=on_stdout,
            on_output=on_output,
            limits=limits or (Limits() if git_dir is not None else _WRITES_NOTHING),
            grace=1.0,
        )

    def environment(self, protocol: str = "") -> dict[str, str]:
        """Return the environment of a command that may use one protocol, or none."""
        return {
            "PATH": self._settings.search_path,
            "HOME": ABSENT,
            "XDG_CONFIG_HOME": ABSENT,
            "LC_ALL": "C",
            "GCM_INTERACTIVE": "never",
            "GIT_ALLOW_PROTOCOL": protocol,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": ABSENT,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }

    async def _found(self) -> str:
        if self._program is None:
            program = shutil.which(self._settings.program, path=self._settings.search_path)
            if program is None:
                raise GitError("git is not installed on the tracker's machine")
            done = await run([program, "--version"], cwd=_NOWHERE, env=self.environment(), timeout=30, limits=_WRITES_NOTHING)
            version = re.search(r"version (\d+)\.(\d+)", done.output_tail)
            if version is None or (int(version[1]), int(version[2])) < OLDEST:
                oldest = ".".join(map(str, OLDEST))
                raise GitError(f"git {oldest} or newer is needed on the tracker's machine; found: {done.output_tail.strip()}")
            self._program = program
        return self._program
