"""A run sums the processor time of each file, also of several processes and of servers that still run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

PLUGINS = ("-p", "xdist.plugin", "-p", "tests.support.plugins.processor_time")
SPEND = "import time\ndef spend():\n    while time.process_time() < 0.5: pass\n"
SERVER = """
import subprocess, sys, pytest
@pytest.fixture(scope="session")
def server():
    program = "import time\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True)\\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        yield process
        process.kill()
def test_server(server): server.stdout.readline()
def test_more(): pass
"""


@pytest.mark.real
@pytest.mark.parametrize(("arguments", "passes"), [((), True), (("--budgets",), False), (("--budgets", "-n", "1"), False)])
def test_a_file_that_passes_its_budget_is_named_and_fails_the_run(
    tmp_path: Path, arguments: tuple[str, ...], passes: bool
) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nprocessor_budget = 0.3\nprocessor_budgets =\n  test_spends.py 5\n  test_cheap.py 0.2\n"
    )
    (tmp_path / "test_spends.py").write_text(SPEND + "def test_it(): spend()")
    (tmp_path / "test_cheap.py").write_text("def test_it(): pass")
    (tmp_path / "test_server.py").write_text(SERVER)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own = ("-c", str(tmp_path / "pytest.ini"), "--basetemp", str(tmp_path / "run"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *own, str(tmp_path), *arguments],
        cwd=ROOT,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.returncode == 0) is passes, done.stdout + done.stderr
    said = re.findall(r"(\S+) spent [\d.]+ s of processor time; its budget is ([\d.]+) s", done.stdout)
    assert said == ([] if passes else [("test_server.py", "0.3")])
    assert re.search(r"[\d.]+ s 4 tests in 3 files", done.stdout)
    first = re.search(r" ([\d.]+) s (test_\S+)\n", done.stdout)
    assert first is not None
    assert float(first[1]) >= 0.4
