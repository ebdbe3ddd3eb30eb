"""The share of statements that a coverage profile covers."""

from __future__ import annotations

from gctd.domain.analysis import PackageProblem
from gctd.exports.coverage import statements_covered


def test_coverage_is_that_of_all_statements_once_each() -> None:
    profile = b"mode: set\na/a.go:1.1,2.2 3 1\na/a.go:3.1,4.2 1 0\na/a.go:3.1,4.2 1 1\na/b.go:1.1,2.2 4 0\n"
    assert statements_covered(profile, ()).percent == 50.0
    assert statements_covered(b"mode: set\n", ()).percent is None
    assert statements_covered(None, ()).percent is None


def test_coverage_is_complete_if_the_profile_has_each_package_with_tests() -> None:
    profile = b"mode: set\na/a.go:1.1,2.2 3 1\n"
    for path, reason, complete in (
        ("b", "no tests", True),
        ("a", "failed: TestA failed", True),
        ("b", "build failed: no", False),
        ("b", "failed: its tests ended before their coverage was written", False),
    ):
        assert statements_covered(profile, [PackageProblem(path=path, reason=reason)]).complete is complete, (path, reason)
