"""The resources that a worker reports, including its children and the ones that have ended."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from gctd.worker.usage import UsageMeter

pytestmark = pytest.mark.real

BURN = "import time\nwhile time.process_time() < 0.5: pass"
HOLD = "import sys\nkept = bytearray(64 << 20)\nprint(flush=True)\nsys.stdin.read()"


def test_a_child_s_time_counts_once_also_after_its_end() -> None:
    meter = UsageMeter()
    meter.look()
    began = time.time()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    used = meter.look()[0] * (time.time() - began)
    assert 0.45 <= used < 2.0
    began = time.time()
    again = meter.look()[0] * (time.time() - began)
    assert again < 0.45


def test_a_clock_that_is_set_back_does_not_raise_the_use(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = UsageMeter()
    meter.look()
    began, clock = time.monotonic(), time.time
    monkeypatch.setattr(time, "time", lambda: clock() - 3600)
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert 0.45 <= meter.look()[0] * (time.monotonic() - began) < 2.0


def test_a_child_s_memory_counts_while_it_lives() -> None:
    meter = UsageMeter()
    before = meter.look()[1]
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        during = meter.look()[1]
        child.communicate()
    assert during - before > 60 << 20
    assert meter.look()[1] < during - (60 << 20)
