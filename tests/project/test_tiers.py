"""The three tiers of tests, and the guard that lets no unit test start anything."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import inner_pytest

pytestmark = pytest.mark.real

MIXED = """
import pytest
@pytest.fixture
def browser(): pass
@pytest.fixture
def visitor(browser): pass
def test_unit(): pass
@pytest.mark.real
def test_marked(): pass
def test_by_its_fixture(visitor): pass
@pytest.mark.long
def test_long(): pass
"""
REAL = "import pytest\npytestmark = [pytest.mark.real]\ndef test_real(): pass\nprint('imported real')"
LONG = "import pytest\npytestmark = pytest.mark.long\ndef test_all(): pass\nprint('imported long')"
SHARED = {
    "shared.py": "import pytest\nOTHER_STORE = pytest.mark.long",
    "test_shared.py": "from shared import OTHER_STORE\n@OTHER_STORE\ndef test_shared(): pass",
}
FILES = {"test_mixed.py": MIXED, "test_real.py": REAL, "test_long.py": LONG, **SHARED}
USUAL = {"test_unit", "test_marked", "test_by_its_fixture", "test_real"}


def passed(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The names of the tests that passed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return set(re.findall(r"^test_\w+\.py::(test_\w+) PASSED", done.stdout, re.MULTILINE))


@pytest.mark.parametrize(
    ("arguments", "tests", "imported"),
    [
        (("--unit",), {"test_unit"}, set()),
        ((), USUAL, {"real"}),
        (("--long",), {"test_long", "test_all", "test_shared"}, {"real", "long"}),
        (
            ("-m", "long or real"),
            {"test_marked", "test_by_its_fixture", "test_real", "test_long", "test_all", "test_shared"},
            {"real", "long"},
        ),
    ],
)
def test_a_run_has_the_tests_of_its_tier_and_imports_no_file_without_one(
    tmp_path: Path, arguments: tuple[str, ...], tests: set[str], imported: set[str]
) -> None:
    done = inner_pytest.run(tmp_path, FILES, "-v", "-s", *arguments)
    assert passed(done) == tests
    assert set(re.findall(r"imported (\w+)", done.stdout)) == imported


@pytest.mark.parametrize(
    ("named", "tests"), [("test_long.py", {"test_all"}), ("test_mixed.py", {*USUAL, "test_long"} - {"test_real"})]
)
def test_a_named_file_has_all_its_tests(tmp_path: Path, named: str, tests: set[str]) -> None:
    assert passed(inner_pytest.run(tmp_path, FILES, "-v", named=named)) == tests


STARTS = {
    "connect": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "bind": "import socket; socket.socket().bind(('127.0.0.1', 0))",
    "process": "import subprocess; subprocess.run(['true'])",
    "fork": "import os; os.fork() or os._exit(0)",
    "caught": "import subprocess, contextlib\n    with contextlib.suppress(Exception): subprocess.run(['true'])",
}


def test_a_unit_test_that_starts_something_fails_and_names_the_mark(tmp_path: Path) -> None:
    starting = [f"def test_{name}():\n    {code}" for name, code in STARTS.items()]
    real = [f"import pytest\n@pytest.mark.real\ndef test_real_{name}():\n    {code}" for name, code in [*STARTS.items()][1:]]
    fixture = f"import pytest\n@pytest.fixture\ndef starting():\n    {STARTS['bind']}\ndef test_fixture(starting): pass"
    harmless = "import asyncio\ndef test_loop(): asyncio.run(asyncio.sleep(0))"
    done = inner_pytest.run(tmp_path, {"test_it.py": "\n".join([*starting, *real, fixture, harmless])}, "-v")
    outcomes = dict(re.findall(r"^test_it\.py::test_(\w+) (PASSED|FAILED|ERROR)", done.stdout, re.MULTILINE))
    assert outcomes == (
        dict.fromkeys(STARTS, "FAILED")
        | {f"real_{name}": "PASSED" for name in STARTS if name != "connect"}
        | {"fixture": "ERROR", "loop": "PASSED"}
    )
    assert done.stdout.count("hint: mark it with @pytest.mark.real") >= len(STARTS) + 1


def test_a_seed_is_printed_and_repeats_a_run(tmp_path: Path) -> None:
    files = {"test_it.py": "def test_it(seed): assert seed == 4711"}
    fresh = inner_pytest.run(tmp_path, files)
    number = re.search(r"^seed: (\d+)$", fresh.stdout, re.MULTILINE)
    assert number is not None
    assert f"the seed of this run: --seed {number[1]}" in fresh.stdout
    for processes in ((), ("-n", "1")):
        assert inner_pytest.run(tmp_path, files, "--seed", "4711", *processes).returncode == 0
