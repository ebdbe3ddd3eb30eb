"""Refs and directories: git's own rules, and nothing that git or the file system could take for something else."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctd.domain.errors import BadInput
from gctd.domain.remote.refs import is_commit_id, parse_ref, parse_subdir

ACCEPTED = [
    "main",
    "v1.2.3",
    "feature/x",
    "refs/heads/HEAD",
    "refs/heads/refs/x",
    f"refs/heads/{'a' * 40}",
    "refs/tags/v1",
    "HEAD",
    "a@b",
    "ünï/çode",
    "1",
    "a.lock.b",
    "x-",
    "{}",
    "a" * 255,
]

REFUSED = [
    "",
    "-",
    "-h",
    "--upload-pack=touch pwn",
    "--exec",
    "/main",
    "main/",
    "a//b",
    "a/.b",
    ".a",
    "a..b",
    "..",
    "a.",
    "a.lock",
    "a.lock/b",
    "a b",
    " a",
    "a ",
    "a\tb",
    "a\nb",
    "a\x00",
    "a\x7f",
    "a~1",
    "a^",
    "a^{}",
    "a:b",
    "+a:b",
    "a?",
    "a*",
    "a[b",
    "a\\b",
    "@",
    "main@{1}",
    "@{-1}",
    "a" * 256,
    "\udc80",
]


@pytest.mark.parametrize("ref", ACCEPTED)
def test_names_that_git_accepts(ref: str) -> None:
    assert parse_ref(ref) == ref


def test_a_branch_has_one_name() -> None:
    assert [parse_ref(ref) for ref in ("main", "refs/heads/main", "refs/heads/x/y")] == ["main", "main", "x/y"]


@pytest.mark.parametrize("ref", REFUSED)
def test_names_that_are_refused(ref: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_ref(ref)
    assert caught.value.field == "ref"


def test_a_commit_id_is_accepted_in_full_length_only() -> None:
    assert parse_ref("A" * 40) == "a" * 40
    assert is_commit_id("0" * 64)
    assert not is_commit_id("0" * 39)
    assert not is_commit_id("g" * 40)


REF_TEXT = st.text(alphabet=st.sampled_from("ab/.@{}~^:?*[\\ -lock\x7f\t"), min_size=1, max_size=8)


@pytest.mark.real
@settings(max_examples=60)
@given(REF_TEXT)
def test_the_rules_are_those_of_git(ref: str) -> None:
    """`git check-ref-format` agrees, but for a '-' at the beginning, which it leaves to its callers."""
    git = subprocess.run(["git", "check-ref-format", "--allow-onelevel", ref], check=False).returncode == 0
    try:
        parse_ref(ref)
    except BadInput:
        assert not git or ref.startswith("-")
    else:
        assert git


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "."),
        (".", "."),
        ("./", "."),
        ("a", "a"),
        ("./a/b/", "a/b"),
        ("a b/ü", "a b/ü"),
        ("...", "..."),
        ("-x", "-x"),
        ("a/.b", "a/.b"),
    ],
)
def test_directories_of_a_repository(text: str, name: str) -> None:
    assert parse_subdir(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "../x",
        "a/..",
        "a/../../b",
        "/",
        "/etc",
        "//",
        "a//b",
        "a/./b",
        "././a",
        "a\\b",
        "a\x00",
        "a\nb",
        "x" * 1025,
        "\udc80",
    ],
)
def test_directories_that_lead_out_are_refused(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_subdir(text, field="subdir")
    assert caught.value.field == "subdir"
