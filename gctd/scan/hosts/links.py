"""The address of a page on a git host that shows a file of a repository at a commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit

import attrs

_GITHUB = "{repo}/blob/{commit}/{path}#L{line}"
_GITLAB = "{repo}/-/blob/{commit}/{path}#L{line}"
_GITEA = "{repo}/src/commit/{commit}/{path}#L{line}"
_KINDS = {"github": _GITHUB, "gitlab": _GITLAB}
_HOSTS = {
    "github.com": _GITHUB,
    "gitlab.com": _GITLAB,
    "codeberg.org": _GITEA,
    "gitea.com": _GITEA,
    "bitbucket.org": "{repo}/src/{commit}/{path}#lines-{line}",
}
_ENTRY = re.compile(r"([^=]+)=(github|gitlab)(@.*)?", re.IGNORECASE)


@attrs.frozen
class Links:
    """Templates of the links to files, by host. A host includes its port, unless it is the usual one."""

    _templates: Mapping[str, str]

    @classmethod
    def of(cls, git_hosts: Iterable[str] = ()) -> Links:
        """Return the links of well-known hosts, and of the setting `git_hosts` (`HOST=github`, `HOST=gitlab`)."""
        own = [match for entry in git_hosts if (match := _ENTRY.fullmatch(entry))]
        return cls(_HOSTS | {match[1].lower(): _KINDS[match[2].lower()] for match in own})

    def source(self, repo_url: str, commit: str, project: str) -> str | None:
        """Return the address of a project's file, with `{path}` and `{line}` in it; None if the host's pages are unknown.

        `{path}` is replaced by the percent-encoded path in the project.
        """
        parts = urlsplit(repo_url)
        template = self._templates.get(parts.netloc.rpartition("@")[2]) if parts.scheme in {"https", "ssh"} else None
        if template is None:
            return None
        below = "" if project == "." else quote(project, safe="/") + "/"
        repo = f"https://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return template.format(repo=_literal(repo), commit=commit, path=f"{_literal(below)}{{path}}", line="{line}")


def link(source: str | None, path: str, line: int) -> str | None:
    """Return the address of a line of a file, from the template of `Links.source`."""
    return None if source is None else source.replace("{path}", quote(path, safe="/")).replace("{line}", str(line))


def _literal(text: str) -> str:
    """Text in which nothing stands for something else."""
    return text.replace("{", "%7B").replace("}", "%7D")
