"""git with the least rights for the repository and the remote host.

Arguments are lists behind `--`, `program` is the only source of configuration, only the transport of the URL is allowed,
hosts are bound to addresses that were judged first, redirects are not followed, no prompt asks for a password.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from gctd.domain.remote.refs import is_commit_id
from gctd.domain.remote.urls import RepoUrl
from gctd.scan.errors import GitError
from gctd.scan.git.config import basic_authorization, config_variables
from gctd.scan.git.messages import explain, redact
from gctd.scan.git.network import public_addresses
from gctd.scan.git.program import GitProgram, GitSettings
from gctd.scan.git.refs import RemoteRef, leads_to, names_of, parse_refs
from gctd.scan.isolation.output import Lines, OnLog, OnOutput, no_log
from gctd.scan.isolation.process import Limits

_PORTS = {"https": 443, "http": 80, "ssh": 22}
_PROTOCOLS = {"https": "https", "http": "http", "ssh": "ssh", "local": "file"}
_ASKED_AT_ONCE = 300
"""Names in one question, limited by the length of a command line."""


class Git:
    """The operations that a worker needs."""

    def __init__(self, settings: GitSettings | None = None) -> None:
        self.settings = settings or GitSettings()
        self._program = GitProgram(self.settings)

    # The remote side

    async def resolve(self, url: RepoUrl, ref: str | None = None, *, seconds: float = 60.0) -> RemoteRef:
        """Return the current commit of a ref, without transferring an object. None or HEAD is the default branch.

        A branch takes precedence over a tag of the same short name. A full commit id is returned unchanged. Annotated tags are
        peeled. Raises GitError.
        """
        found = (await self.resolve_all(url, [ref], seconds=seconds))[ref]
        if isinstance(found, GitError):
            raise found
        return found

    async def resolve_all(
        self, url: RepoUrl, refs: Iterable[str | None], *, seconds: float = 60.0
    ) -> Mapping[str | None, RemoteRef | GitError]:
        """Return the commits of several refs, as `resolve` does, with one question; an error for each missing ref.

        `seconds` limit each question. If all refs are commit ids, no question is sent. Raises GitError if the remote does not
        answer.
        """
        wanted = {ref: [] if ref is not None and is_commit_id(ref) else names_of(ref) for ref in refs}
        names = list(dict.fromkeys(name for candidates in wanted.values() for name in candidates))
        found: dict[str, str] = {}
        head = None
        for some in (names[start : start + _ASKED_AT_ONCE] for start in range(0, len(names), _ASKED_AT_ONCE)):
            output = bytearray()
            patterns = [pattern for name in some for pattern in (name, f"{name}^{{}}")]
            await self._remote(url, ["ls-remote", "--symref", "--", url.clone_url, *patterns], seconds, on_stdout=output.extend)
            listed, symref = parse_refs(bytes(output))
            found |= listed
            head = symref or head
        return {ref: leads_to(ref, candidates, found, head) for ref, candidates in wanted.items()}

    async def fetch(self, url: RepoUrl, ref: RemoteRef, mirror: Path, *, seconds: float = 600.0, on_log: OnLog = no_log) -> str:
        """Bring one commit without its history into a mirror. Return the commit's id, which may be newer than in `ref`.

        `on_log` receives the output of git. Raises GitError, LimitExceeded.
        """
        target = f"refs/gctd/{ref.commit_sha}"
        arguments = [
            *("fetch", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force", "--quiet"),
            *("--", url.clone_url, f"+{ref.full or ref.commit_sha}:{target}"),
        ]
        limits = Limits(file_size=self.settings.transfer_bytes)
        lines = Lines(lambda line: on_log(redact(line, self.settings.credentials.values())))
        try:
            await self._remote(url, arguments, seconds, git_dir=mirror, limits=limits, on_output=lines.feed)
        finally:
            lines.end()
        commit = await self.commit_of(mirror, target)
        if commit is None:
            raise GitError(f"{ref.name} is not a commit", permanent=True)
        if commit != ref.commit_sha:
            await self._local(mirror, "update-ref", f"refs/gctd/{commit}", commit)
        return commit

    async def fetch_history(self, url: RepoUrl, commit: str, mirror: Path, *, seconds: float) -> None:
        """Bring a commit with all its ancestors into a mirror, without files if the remote supports that.

        Raises GitError, LimitExceeded.
        """
        arguments = [
            *("fetch", "--filter=tree:0", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force", "--quiet"),
            *("--", url.clone_url, f"+{commit}:refs/gctd/{commit}"),
        ]
        await self._remote(url, arguments, seconds, git_dir=mirror, limits=Limits(file_size=self.settings.transfer_bytes))

    async def merge_base(self, mirror: Path, one: str, other: str) -> str | None:
        """Return the last common commit of two commits of a mirror; None if they have none."""
        return await self._answer(mirror, "merge-base", one, other)

    async def _remote(
        self,
        url: RepoUrl,
        arguments: Sequence[str],
        seconds: float,
        *,
        git_dir: Path | None = None,
        on_stdout: OnOutput | None = None,
        on_output: OnOutput | None = None,
        limits: Limits | None = None,
    ) -> None:
        environment = self._program.environment(_PROTOCOLS[url.kind])
        attempt = partial(
            self._program.run,
            environment=environment,
            seconds=seconds,
            git_dir=git_dir,
            config=await self._connection(url, environment),
            on_stdout=on_stdout,
            on_output=on_output,
            limits=limits,
        )
        done = await attempt(arguments)
        moved = url.kind in ("https", "http") and re.search(r"returned error: 30[1278]", done.output_tail)
        if not done.ok and moved and not url.clone_url.endswith(".git"):  # GitLab redirects requests without .git there
            done = await attempt([f"{one}.git" if one == url.clone_url else one for one in arguments])
        if not done.ok:
            raise explain(done, mirror=git_dir, secrets=self.settings.secrets(), limit=self.settings.transfer_bytes)

    async def _connection(self, url: RepoUrl, environment: dict[str, str]) -> dict[str, str]:
        """The settings for a connection to the URL's host and to no other."""
        if url.kind == "local":
            return {}
        port = url.port or _PORTS[url.kind]
        if url.kind == "ssh":
            address = (await public_addresses(url.host, port, self.settings.addresses))[0]
            environment["GIT_SSH_COMMAND"] = shlex.join(
                [
                    *("ssh", "-F", os.devnull, "-o", "BatchMode=yes", "-o", "ProxyCommand=none", "-o", f"HostName={address}"),
                    *("-o", f"HostKeyAlias={url.host}", *self.settings.ssh_options),
                ]
            )
            return {}
        config, secret = {"http.proxy": ""}, {}
        if self.settings.proxy is None:
            addresses = await public_addresses(url.host, port, self.settings.addresses)
            listed = ",".join(f"[{address}]" if address.version == 6 else str(address) for address in addresses)
            config["http.curloptResolve"] = f"{url.host}:{port}:{listed}"
        else:
            del config["http.proxy"]
            secret["http.proxy"] = self.settings.proxy
        if self.settings.ca_file is not None:
            config["http.sslCAInfo"] = str(self.settings.ca_file)
        known = self.settings.credentials
        credential = known.get(f"{url.host}:{port}") or known.get(url.host)
        if credential is not None and url.kind == "https":
            secret["http.extraHeader"] = basic_authorization(credential)
        environment.update(config_variables(secret))
        return config

    # The mirror's side

    async def make_mirror(self, mirror: Path, *, sha256: bool = False) -> None:
        """Make an empty bare repository."""
        algorithm = "--object-format=sha256" if sha256 else "--object-format=sha1"
        await self._local(None, "init", "--quiet", "--bare", "--template=", algorithm, "--", str(mirror))

    async def repack(self, mirror: Path) -> None:
        """Make one pack of all packs of a mirror, and one file of all its refs. Raises GitError."""
        await self._local(mirror, "repack", "-a", "-d", "--quiet")
        await self._local(mirror, "pack-refs", "--all")

    async def commit_of(self, mirror: Path, ref: str) -> str | None:
        """Return the commit of a full ref or a commit id of the mirror; None if it is missing. Raises GitError."""
        return await self._answer(mirror, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}")

    async def has(self, mirror: Path, commit: str) -> bool:
        """Whether a commit was fetched into the mirror, completely."""
        return await self.commit_of(mirror, f"refs/gctd/{commit}") == commit

    async def read_commit(self, mirror: Path, commit: str) -> bytes:
        """The object of a commit: its headers, an empty line, its message. Raises GitError."""
        return await self._local(mirror, "cat-file", "commit", commit)

    async def list_tree(self, mirror: Path, commit: str, take: OnOutput) -> None:
        """Hand on the output of `git ls-tree -r -l -z`; see `gctd.scan.git.tree`. An error raised by `take` ends the command."""
        await self._local(mirror, "ls-tree", "-r", "-l", "-z", "--full-tree", commit, on_stdout=take)

    async def write_tree(self, mirror: Path, commit: str, target: Path, index: Path) -> None:
        """Write the files of a commit into an empty directory, links as plain files. No hook and no filter runs.

        `index` is the path of git's index during the call.
        """
        environment = {**self._program.environment(), "GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(target)}
        arguments = ["read-tree", "--reset", "-u", commit]
        done = await self._program.run(
            arguments, environment=environment, git_dir=mirror, config={"core.bare": "false"}, cwd=target
        )
        if not done.ok:
            raise explain(done, mirror=mirror)

    async def read_config(self, path: Path) -> list[tuple[str, str]]:
        """Keys and values of a file in git's configuration format; nothing that it includes is read."""
        output = await self._local(None, "config", "--no-includes", "--file", str(path), "--null", "--list")
        entries = (entry.partition("\n") for entry in output.decode(errors="replace").split("\0") if entry)
        return [(key, value) for key, _, value in entries]

    async def _answer(self, mirror: Path, *arguments: str) -> str | None:
        """Return the output of a command; None if it ends with code 1, which means that it has no answer."""
        output = bytearray()
        done = await self._program.run(arguments, git_dir=mirror, on_stdout=output.extend)
        if not done.ok and done.exit_code != 1:
            raise explain(done, mirror=mirror)
        return output.decode().strip() or None

    async def _local(self, mirror: Path | None, *arguments: str, on_stdout: OnOutput | None = None) -> bytes:
        """Return the standard output of a command, unless `on_stdout` takes it."""
        output = bytearray()
        take = on_stdout or output.extend
        done = await self._program.run(arguments, git_dir=mirror, on_stdout=take, limits=Limits(output=1 << 40))
        if not done.ok:
            raise explain(done, mirror=mirror)
        return bytes(output)
