"""CI runs pytest so that a skipped test is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

MISSING = "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass"


@pytest.mark.parametrize(
    ("test", "passes", "said"),
    [
        ("def test_it(): pass", True, "2 passed"),
        ("def test_it(): assert 0", False, "1 failed"),
        ("import pytest\ndef test_it(): pytest.skip('no')", False, "test_it was skipped"),
        ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert 0", False, "test_it was skipped or expected to fail"),
        (MISSING, False, "test_one.py was skipped"),
    ],
)
def test_a_run_that_skips_has_failed_and_names_the_test(tmp_path: Path, test: str, passes: bool, said: str) -> None:
    done = _run(tmp_path, test)
    assert (done.returncode == 0) is passes, done.stdout + done.stderr
    assert said in done.stdout


@pytest.mark.parametrize(
    ("test", "said"), [("import pytest\ndef test_it(): pytest.skip('no')", "test_it"), (MISSING, "test_one.py")]
)
def test_so_it_is_in_several_processes(tmp_path: Path, test: str, said: str) -> None:
    done = _run(tmp_path, test, "-n", "1")
    assert done.returncode != 0
    assert f"{said} was skipped" in done.stdout


def _run(tmp_path: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_one.py").write_text(test)
    (tmp_path / "test_two.py").write_text("def test_other(): pass")
    plugins = ["-p", "xdist.plugin", "-p", "tests.support.noskip"]
    command = [sys.executable, "-m", "pytest", *plugins, "-c", str(tmp_path / "pytest.ini"), str(tmp_path), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Each plugin of an installed package is loaded in each process, and takes seconds of a busy machine.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # Without this directory, the run removes the directories of earlier runs at its end, which takes minutes after a large one.
    command += ["--basetemp", str(tmp_path / "run")]
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240
    )
