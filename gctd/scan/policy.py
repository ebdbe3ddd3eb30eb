"""Rules and credentials of the operator for repositories, the same for the control plane and for workers."""

from __future__ import annotations

import netrc
from collections.abc import Mapping
from pathlib import Path

import attrs

from gctd.domain.errors import BadInput
from gctd.domain.remote.addresses import PUBLIC_ONLY, AddressPolicy
from gctd.domain.remote.urls import RepoUrl, parse_repo_url
from gctd.scan.git.program import GitSettings
from gctd.scan.go.toolchain import Downloads
from gctd.settings import Settings

_FIELD = "credentials_file"


@attrs.frozen(kw_only=True)
class RepoPolicy:
    """Whether local paths and ssh are allowed, and which hosts outside the public internet."""

    allow_local: bool = False
    allow_ssh: bool = False
    addresses: AddressPolicy = PUBLIC_ONLY

    def parse_url(self, text: str, field: str = "repo_url") -> RepoUrl:
        """The repository that a text names. Raises BadInput with that field named."""
        return parse_repo_url(text, allow_local=self.allow_local, allow_ssh=self.allow_ssh, addresses=self.addresses, field=field)


def repo_policy(settings: Settings) -> RepoPolicy:
    """The rule that the settings make."""
    return RepoPolicy(
        allow_local=settings.allow_local,
        allow_ssh=settings.allow_ssh,
        addresses=AddressPolicy.of(settings.private_hosts),
    )


def git_settings(settings: Settings) -> GitSettings:
    """Return git's access to repositories by these settings. Raises BadInput."""
    ssh = []
    if settings.ssh_key is not None:
        ssh += ["-i", str(settings.ssh_key.absolute()), "-o", "IdentitiesOnly=yes"]
    if settings.ssh_known_hosts is not None:
        ssh += ["-o", f'UserKnownHostsFile="{settings.ssh_known_hosts.absolute()}"', "-o", "StrictHostKeyChecking=yes"]
    return GitSettings(
        addresses=repo_policy(settings).addresses,
        proxy=settings.http_proxy,
        ca_file=settings.ca_file.absolute() if settings.ca_file else None,
        credentials=read_credentials(settings.credentials_file),
        ssh_options=tuple(ssh),
    )


def module_downloads(settings: Settings) -> Downloads:
    """Return the settings of Go's downloads of modules. Raises BadInput."""
    return Downloads(
        credentials=read_credentials(settings.credentials_file),
        netrc=settings.credentials_file.absolute() if settings.credentials_file else None,
        proxy=settings.http_proxy,
    )


def read_credentials(path: Path | None) -> Mapping[str, str]:
    """Return host to `user:password` of a file in the form of netrc(5); an empty mapping without a file.

    Raises BadInput, without the file's contents in its text, if the file cannot be used: also if others than its owner may read
    it, and for a `default` entry, which would send its password to every host.
    """
    if path is None:
        return {}
    try:
        others = path.stat().st_mode & 0o077
        machines = netrc.netrc(path).hosts
    except netrc.NetrcParseError as error:
        raise BadInput(_FIELD, f"{path}: line {error.lineno} cannot be read") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(_FIELD, f"{path} cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    if others:
        raise BadInput(_FIELD, f"others than its owner may read or write {path}: chmod 600 it")
    if "default" in machines:
        raise BadInput(_FIELD, f"{path} has a default entry, whose password would go to every host: name each host (machine)")
    return {host.lower(): f"{login}:{password}" for host, (login, _, password) in machines.items() if password}
