"""The APIs of git hosts: the API of each host, its questions, and the meaning of its answers.

GitHub: https://docs.github.com/rest/repos/repos#get-a-repository. GitLab: https://docs.gitlab.com/api/projects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated
from urllib.parse import quote, unquote, urlsplit

import attrs
import msgspec

from gctd.domain.errors import BadInput
from gctd.domain.remote.addresses import AddressPolicy
from gctd.domain.remote.urls import RepoUrl
from gctd.scan.hosts.facts import Facts
from gctd.scan.hosts.licenses import spdx_id

KNOWN = ("github.com=github@https://api.github.com", "gitlab.com=gitlab")

_ENTRY = re.compile(r"(?P<host>[a-z0-9.-]+(?::[0-9]{1,5})?)=(?P<kind>github|gitlab)(?:@(?P<url>.+))?", re.IGNORECASE)
_TOKEN = re.compile(r"[\x21-\x7e]{1,1000}")
_LANGUAGE = re.compile(r"[\w+#./' -]{1,60}")

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


@attrs.frozen
class Request:
    """A question to an API: the path below its address, and the reader of an answer's body.

    `read` raises ValueError if the body is not a valid answer of the API.
    """

    path: str
    read: Callable[[bytes], Facts]


Ask = Callable[[str], Sequence[Request]]


@attrs.frozen(kw_only=True)
class Api:
    """A host's API: its address, its questions about the repository at some path, and its headers."""

    url: str
    ask: Ask
    accept: str
    token: str | None = attrs.field(default=None, repr=False)


def api_of(url: RepoUrl, apis: Mapping[str, Api]) -> Api | None:
    """The API that knows a repository."""
    return apis.get(f"{url.host}:{url.port}") or apis.get(url.host)


def parse_apis(entries: Iterable[str], tokens: Iterable[str], addresses: AddressPolicy) -> Mapping[str, Api]:
    """Return the API of each host: well-known hosts, and the hosts of the settings `git_hosts` and `git_host_tokens`.

    An entry is `HOST=KIND` or `HOST=KIND@URL`, a token `HOST=TOKEN`. Plain http is for hosts that `addresses` lists. Raises
    BadInput, which never has a token in it.
    """
    apis = dict(_parse_api(entry, addresses) for entry in (*KNOWN, *entries))
    for entry in tokens:
        host, _, token = entry.partition("=")
        if host.lower() not in apis or not _TOKEN.fullmatch(token):
            raise BadInput("git_host_tokens", "must be HOST=TOKEN, the host being github.com, gitlab.com or one of git_hosts")
        apis[host.lower()] = attrs.evolve(apis[host.lower()], token=token)
    return apis


def _parse_api(entry: str, addresses: AddressPolicy) -> tuple[str, Api]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise BadInput("git_hosts", f"not HOST=github, HOST=gitlab or HOST=KIND@URL: {entry!r}")
    host, kind = match["host"].lower(), match["kind"].lower()
    url = (match["url"] or f"https://{host}/api/{'v3' if kind == 'github' else 'v4'}").rstrip("/")
    parts = urlsplit(url)
    try:
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0) and url.isascii() and " " not in url
    except ValueError:
        usable = False
    plain = parts.scheme == "http" and parts.hostname is not None and _is_listed(parts.hostname, addresses)
    if not usable or parts.username or parts.query or parts.fragment or not (parts.scheme == "https" or plain):
        raise BadInput("git_hosts", f"not the https address of an API: {url!r}")
    if kind == "github":
        return host, Api(url=url, ask=_ask_github, accept="application/vnd.github+json")
    return host, Api(url=url, ask=_ask_gitlab, accept="application/json")


def _is_listed(host: str, addresses: AddressPolicy) -> bool:
    """Whether the operator listed a host outside the public internet."""
    return AddressPolicy().name_problem(host) is not None and addresses.name_problem(host) is None


# GitHub


@attrs.frozen
class _GitHubLicense:
    spdx_id: str | None = None


@attrs.frozen
class _GitHubRepository:
    stargazers_count: _Count
    forks_count: _Count
    language: str | None = None
    license: _GitHubLicense | None = None


def _ask_github(path: str) -> Sequence[Request]:
    parts = path.strip("/").removesuffix(".git").split("/")
    return [Request(f"/repos/{parts[0]}/{parts[1]}", _read_github)] if len(parts) == 2 else []


def _read_github(body: bytes) -> Facts:
    found = msgspec.json.decode(body, type=_GitHubRepository)
    return Facts(
        stars=found.stargazers_count,
        forks=found.forks_count,
        language=_language(found.language),
        license=spdx_id(found.license.spdx_id or "") if found.license else None,
    )


# GitLab


@attrs.frozen
class _GitLabLicense:
    key: str | None = None


@attrs.frozen
class _GitLabProject:
    star_count: _Count
    forks_count: _Count = 0
    license: _GitLabLicense | None = None


def _ask_gitlab(path: str) -> Sequence[Request]:
    project = f"/projects/{quote(unquote(path.strip('/').removesuffix('.git')), safe='')}"
    return [Request(f"{project}?license=true", _read_gitlab), Request(f"{project}/languages", _read_gitlab_languages)]


def _read_gitlab(body: bytes) -> Facts:
    found = msgspec.json.decode(body, type=_GitLabProject)
    license_ = spdx_id(found.license.key or "") if found.license else None
    return Facts(stars=found.star_count, forks=found.forks_count, license=license_)


def _read_gitlab_languages(body: bytes) -> Facts:
    shares = msgspec.json.decode(body, type=dict[str, float])
    return Facts(language=_language(max(shares, key=lambda name: shares[name])) if shares else None)


def _language(name: str | None) -> str | None:
    return name if name and _LANGUAGE.fullmatch(name) else None
