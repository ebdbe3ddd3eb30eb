"""A run counts what it skipped, by reason, and CI runs pytest so that a skipped test is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs import inner_pytest

pytestmark = pytest.mark.real

PASSES = {"test_two.py": "def test_other(): pass"}
SKIPS = """
import pytest
def test_skip(): pytest.skip("there is no browser")
@pytest.mark.parametrize("number", [1, 2])
def test_more(number): pytest.skip("there is no sandbox")
@pytest.mark.xfail
def test_xfail(): assert 0
"""
MISSING = "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass"


def test_a_run_without_a_skip_passes(tmp_path: Path) -> None:
    done = inner_pytest.run(tmp_path, PASSES, "--no-skips")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout.splitlines()[-1]


def test_the_last_line_counts_the_reasons(tmp_path: Path) -> None:
    done = inner_pytest.run(tmp_path, PASSES | {"test_one.py": SKIPS})
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "skipped: 2 because there is no sandbox, 1 because there is no browser"


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_a_run_that_may_skip_nothing_has_failed_and_names_the_tests(tmp_path: Path, processes: tuple[str, ...]) -> None:
    done = inner_pytest.run(tmp_path, PASSES | {"test_one.py": SKIPS}, "--no-skips", *processes)
    assert done.returncode == 1
    for name in ("test_skip", "test_more[1]", "test_more[2]", "test_xfail"):
        assert f"not allowed here: test_one.py::{name} was skipped or expected to fail" in done.stdout


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_so_has_one_that_skips_a_whole_file(tmp_path: Path, processes: tuple[str, ...]) -> None:
    done = inner_pytest.run(tmp_path, PASSES | {"test_one.py": MISSING}, "--no-skips", *processes)
    assert done.returncode != 0
    assert "not allowed here: test_one.py was skipped" in done.stdout
