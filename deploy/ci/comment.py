#!/usr/bin/env python3
"""Write a file as a comment on the pull request of this build, or as the new text of the comment that an earlier build wrote.

    comment.py NAME FILE

NAME identifies the comment: a pull request has one comment of each name. The forge, the pull request and the token are in the
environment of a build of GitHub Actions (with `GITHUB_TOKEN` and `PULL_REQUEST`, its number) or GitLab (with
`GCTD_COMMENT_TOKEN`). Standard library only, because it runs with any Python.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

PAGE, PAGES = 100, 20
"""Comments of a page, and pages that are searched for the comment."""
SECONDS = 20


def main(name: str, file: Path) -> None:
    """Write the comment. Raises HTTPError, URLError if the forge does not take it, KeyError if a variable is missing."""
    marker = f"<!-- gctd {name} -->"
    body = f"{marker}\n\n{file.read_text(encoding='utf-8')}"
    github = "GITHUB_ACTIONS" in os.environ
    if github:
        issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
        thread, comments = f"{issues}/{os.environ['PULL_REQUEST']}/comments", f"{issues}/comments"
    else:
        project = f"{os.environ['CI_API_V4_URL']}/projects/{os.environ['CI_MERGE_REQUEST_PROJECT_ID']}"
        thread = comments = f"{project}/merge_requests/{os.environ['CI_MERGE_REQUEST_IID']}/notes"
    own = _own(thread, marker)
    if own is None:
        _ask("POST", thread, {"body": body})
    else:
        _ask("PATCH" if github else "PUT", f"{comments}/{own}", {"body": body})


def _own(thread: str, marker: str) -> int | None:
    """The id of the comment of an earlier build."""
    for page in range(1, PAGES + 1):
        comments = _ask("GET", f"{thread}?per_page={PAGE}&page={page}")
        for comment in comments:
            if comment["body"].startswith(marker):
                return int(comment["id"])
        if len(comments) < PAGE:
            break
    return None


def _ask(method: str, url: str, body: object = None) -> Any:
    if "GITHUB_ACTIONS" in os.environ:
        headers = {"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"}
    else:
        headers = {"PRIVATE-TOKEN": os.environ["GCTD_COMMENT_TOKEN"]}
    headers |= {"Content-Type": "application/json", "User-Agent": "gctd"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=SECONDS) as answer:  # noqa: S310 - the forge of this build
        return json.load(answer)


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except (HTTPError, URLError) as error:
        sys.exit(f"error: the comment was not written: {error}\nhint: the token of the build has to be allowed to write comments")
