"""The share of statements that a coverage profile covers."""

from __future__ import annotations

from gctd.exports.coverage import statements_covered


def test_coverage_is_that_of_all_statements_once_each() -> None:
    profile = b"mode: set\na/a.go:1.1,2.2 3 1\na/a.go:3.1,4.2 1 0\na/a.go:3.1,4.2 1 1\na/b.go:1.1,2.2 4 0\n"
    assert statements_covered(profile) == 50.0
    assert statements_covered(b"mode: set\n") is None
