"""The commit of a delivery, and its signature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from gctd.control.forges.configured import Forge, read_forges
from gctd.control.forges.payloads import PushedCommit, pushed_commit, signed_by
from gctd.domain.errors import BadInput
from tests.support.tracker.forge_double import SECRET, github_pull, github_push, gitlab_merge, signed

A, B, ZERO = "a" * 40, "b" * 40, "0" * 40
EVENTS = [("github", "push"), ("github", "pull_request"), ("gitlab", "Push Hook"), ("gitlab", "Merge Request Hook")]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["repository", "full_name", "ref", "before", "after", "pull_request", "head", "base", "sha", "action"]
            )
            | st.sampled_from(["project", "path_with_namespace", "object_attributes", "last_commit", "id", "iid", "number"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


def changed(body: bytes, **changes: Any) -> bytes:
    return json.dumps({**json.loads(body), **changes}).encode()


def test_a_push_and_a_pull_request_name_a_commit_and_a_base() -> None:
    push = github_push("o/n", A, B)
    assert pushed_commit("github", "push", push) == PushedCommit(path="o/n", ref="main", commit_sha=B, base=A)
    new = pushed_commit("github", "push", changed(push, before=ZERO, ref="refs/heads/x/y"))
    assert new == PushedCommit(path="o/n", ref="x/y", commit_sha=B, base="main")
    pull = pushed_commit("github", "pull_request", github_pull("o/n", 7, B, "main"))
    assert pull == PushedCommit(path="o/n", ref="feature", commit_sha=B, base="main", number=7)
    merge = pushed_commit("gitlab", "Merge Request Hook", gitlab_merge("g/s/n", 3, B, "main"))
    assert merge == PushedCommit(path="g/s/n", ref="feature", commit_sha=B, base="main", number=3)


def test_a_pull_request_with_another_target_branch_names_its_commit_and_that_base() -> None:
    pull = changed(github_pull("o/n", 7, B, "next", action="edited"), changes={"base": {"ref": {"from": "main"}}})
    found = pushed_commit("github", "pull_request", pull)
    assert found == PushedCommit(path="o/n", ref="feature", commit_sha=B, base="next", number=7)
    merge = gitlab_merge("g/s/n", 3, B, "next", action="update")
    merge = changed(merge, changes={"target_branch": {"previous": "main", "current": "next"}})
    found = pushed_commit("gitlab", "Merge Request Hook", merge)
    assert found == PushedCommit(path="g/s/n", ref="feature", commit_sha=B, base="next", number=3)


@pytest.mark.parametrize(
    ("kind", "event", "body"),
    [
        ("github", "ping", b"{}"),
        ("gitlab", "push", b"{}"),
        ("github", "push", changed(github_push("o/n", A, B), ref="refs/tags/v1")),
        ("github", "push", changed(github_push("o/n", A, B), after=ZERO)),
        ("github", "pull_request", github_pull("o/n", 7, B, "main", action="closed")),
        ("github", "pull_request", github_pull("o/n", 7, B, "main", action="edited")),
        ("github", "pull_request", changed(github_pull("o/n", 7, B, "main", action="edited"), changes={"title": {"from": "a"}})),
        ("gitlab", "Merge Request Hook", changed(gitlab_merge("o/n", 7, B, "main", action="update"), changes={"title": {}})),
        ("gitlab", "Merge Request Hook", changed(gitlab_merge("o/n", 7, B, "main"), object_attributes={"action": "update"})),
    ],
)
def test_nothing_follows_from_other_events(kind: str, event: str, body: bytes) -> None:
    assert pushed_commit(kind, event, body) is None


@for_all(event=st.sampled_from(EVENTS), document=JSON | st.binary(max_size=20))
def test_any_body_names_a_commit_or_nothing_or_is_refused(event: tuple[str, str], document: Any) -> None:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    try:
        found = pushed_commit(*event, body)
    except BadInput:
        return
    assert found is None or len(found.commit_sha) == 40


def forge(kind: Any, *secrets: str) -> Forge:
    return Forge(host=f"{kind}.test", kind=kind, api="http://127.0.0.1:1", token="t", secrets=secrets)


@for_all(body=st.binary(max_size=50), other=st.binary(max_size=50))
def test_only_the_body_that_was_signed_has_the_signature(body: bytes, other: bytes) -> None:
    ours = forge("github", "an older secret of ours", SECRET)
    signature = signed(body, event="push", delivery="1")["X-Hub-Signature-256"]
    assert signed_by([ours], body, signature=signature, token=None) == [ours]
    assert signed_by([ours], other, signature=signature, token=None) == ([ours] if body == other else [])
    assert signed_by([forge("github", "another secret, not ours")], body, signature=signature, token=None) == []


def test_an_absent_signature_or_token_is_not_an_empty_one() -> None:
    assert signed_by([forge("github", SECRET), forge("gitlab", SECRET)], b"", signature=None, token=None) == []
    ours = forge("gitlab", SECRET)
    assert signed_by([ours], b"", signature=None, token=SECRET) == [ours]


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_a_signature_or_token_that_is_not_text_is_not_ours(kind: str) -> None:
    """A header with bytes that are not UTF-8 has surrogates in their place (PEP 383)."""
    assert signed_by([forge(kind, SECRET)], b"", signature="sha256=\udcff", token="\udcff") == []


GOOD = {"host": "GitHub.test", "kind": "github", "api": "https://api.test/", "token": "t0ken", "secrets": ["s" * 16]}


def test_a_file_of_forges_is_read(tmp_path: Path) -> None:
    file = tmp_path / "forges.yaml"
    file.write_text(json.dumps([GOOD]))
    file.chmod(0o600)
    (found,) = read_forges(file).values()
    assert (found.host, found.api, found.secrets) == ("github.test", "https://api.test", ("s" * 16,))
    assert "t0ken" not in repr(found)
    assert "s" * 16 not in repr(found)
    assert read_forges(None) == {}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "not YAML"),
        ("{}", "must have a list"),
        (json.dumps([{**GOOD, "more": 1}]), "exactly the members"),
        (json.dumps([{**GOOD, "kind": "svn"}]), "kind must be one of"),
        (json.dumps([{**GOOD, "api": "ftp://api.test"}]), "api must be an address"),
        (json.dumps([{**GOOD, "api": "https://me@api.test"}]), "api must be an address"),
        (json.dumps([{**GOOD, "token": ""}]), "must be texts"),
        (json.dumps([{**GOOD, "secrets": []}]), "secrets must be a list"),
        (json.dumps([{**GOOD, "secrets": ["short"]}]), "16 characters"),
        (json.dumps([GOOD, GOOD]), "two forges with the same host"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_a_word_of_it(tmp_path: Path, document: str, reason: str) -> None:
    file = tmp_path / "forges.yaml"
    file.write_text(document)
    file.chmod(0o600)
    with pytest.raises(BadInput, match=reason) as caught:
        read_forges(file)
    assert "t0ken" not in str(caught.value)
    file.chmod(0o644)
    with pytest.raises(BadInput):
        read_forges(file)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "forges.yaml"
    file.write_text(json.dumps([GOOD]))
    file.chmod(0o640)
    with pytest.raises(BadInput, match="chmod 600"):
        read_forges(file)
