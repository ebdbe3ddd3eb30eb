"""Facts about a repository: from the host's API, or from the files if the API gives no answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gctd.domain.analysis import Metadata
from gctd.domain.remote.urls import RepoUrl
from gctd.scan.git.program import GitSettings
from gctd.scan.hosts.answers import Answers
from gctd.scan.hosts.apis import parse_apis
from gctd.scan.hosts.asking import Hosts
from gctd.scan.hosts.facts import Facts
from gctd.scan.hosts.languages import language_of
from gctd.scan.hosts.licenses import license_of
from gctd.settings import Settings


def open_hosts(settings: Settings, git: GitSettings) -> Hosts:
    """The git hosts that the settings name, asked through the proxy that git uses. Raises BadInput."""
    answers = Answers(settings.cache_directory / "hosts")
    answers.tidy()
    return Hosts(
        apis=parse_apis(settings.git_hosts, settings.git_host_tokens, git.addresses) if settings.git_metadata else {},
        answers=answers,
        addresses=git.addresses,
        proxy=git.proxy,
        ca_file=git.ca_file,
    )


async def metadata_of(hosts: Hosts, url: RepoUrl, root: Path) -> Metadata:
    """Return the known facts about a repository. `root` is a checkout of it in which no program has run yet."""
    files = await asyncio.to_thread(lambda: Facts(language=language_of(root), license=license_of(root)))
    return (await hosts.facts(url)).or_else(files).metadata()
