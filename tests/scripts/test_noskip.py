"""CI runs pytest so that nothing is skipped in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(
    ("test", "status", "said"),
    [
        ("def test_it(): pass", 0, "2 passed"),
        ("def test_it(): assert 0", 1, "1 failed"),
        ("import pytest\ndef test_it(): pytest.skip('no')", 1, "test_it was skipped"),
        ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert 0", 1, "test_it was skipped or expected to fail"),
        ("import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass", 1, "test_one.py was skipped"),
    ],
)
def test_a_run_that_skips_has_failed_and_names_the_test(tmp_path: Path, test: str, status: int, said: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_one.py").write_text(test)
    (tmp_path / "test_two.py").write_text("def test_other(): pass")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.noskip", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
