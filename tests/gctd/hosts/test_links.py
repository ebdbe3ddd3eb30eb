"""Links to a line at a commit."""

from __future__ import annotations

import pytest

from gctd.scan.hosts.links import Links, link


@pytest.mark.parametrize(
    ("repo", "project", "address"),
    [
        ("https://github.com/a/b", ".", "https://github.com/a/b/blob/C/x/y%20z.go#L7"),
        ("https://gitlab.com/a/b/c", "svc", "https://gitlab.com/a/b/c/-/blob/C/svc/x/y%20z.go#L7"),
        ("ssh://git@codeberg.org/a/b", ".", "https://codeberg.org/a/b/src/commit/C/x/y%20z.go#L7"),
        ("https://bitbucket.org/a/b", ".", "https://bitbucket.org/a/b/src/C/x/y%20z.go#lines-7"),
        ("https://code.example:8443/a/b", "{line}", "https://code.example:8443/a/b/blob/C/%7Bline%7D/x/y%20z.go#L7"),
        ("https://elsewhere.example/a/b", ".", None),
        ("file:///srv/b", ".", None),
    ],
)
def test_a_link_leads_to_the_line_at_the_commit(repo: str, project: str, address: str | None) -> None:
    links = Links.of(["code.example:8443=github@https://code.example:8443/api/v3"])
    assert link(links.source(repo, "C", project), "x/y z.go", 7) == address
