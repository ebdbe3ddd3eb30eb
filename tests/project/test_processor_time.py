"""A run sums the processor time of each file, also of several processes and of servers that still run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.programs import inner_pytest

pytestmark = pytest.mark.real

SPENDS = "from time import process_time\ndef test_it():\n    end = process_time() + 0.5\n    while process_time() < end: pass\n"
SERVER = """
import subprocess, sys, pytest
@pytest.fixture(scope="session")
def server():
    program = "import time\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True)\\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        yield process
        process.kill()
@pytest.mark.real
def test_server(server): server.stdout.readline()
@pytest.mark.real
def test_more(): pass
"""
FILES = {"test_spends.py": SPENDS, "test_cheap.py": "def test_it(): pass", "test_server.py": SERVER}
BUDGETS = "processor_budget = 0.3\nprocessor_budgets =\n  test_spends.py 5\n  test_cheap.py 0.2\n"


@pytest.mark.parametrize(("arguments", "passes"), [((), True), (("--budgets",), False), (("--budgets", "-n", "1"), False)])
def test_a_file_that_passes_its_budget_is_named_and_fails_the_run(
    tmp_path: Path, arguments: tuple[str, ...], passes: bool
) -> None:
    done = inner_pytest.run(tmp_path, FILES, *arguments, settings=BUDGETS)
    assert (done.returncode == 0) is passes, done.stdout + done.stderr
    said = re.findall(r"(\S+) spent [\d.]+ s of processor time; its budget is ([\d.]+) s", done.stdout)
    assert said == ([] if passes else [("test_server.py", "0.3")])
    assert re.search(r"[\d.]+ s 4 tests in 3 files", done.stdout)
    first = re.search(r" ([\d.]+) s (test_\S+)\n", done.stdout)
    assert first is not None
    assert float(first[1]) >= 0.4
