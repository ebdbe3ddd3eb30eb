"""Which repositories the operator allows: one rule for the control plane and for workers."""

from __future__ import annotations

import attrs

from gctd.domain.addresses import PUBLIC_ONLY, AddressPolicy
from gctd.domain.urls import RepoUrl, parse_repo_url
from gctd.settings import Settings


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
