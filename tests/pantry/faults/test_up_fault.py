"""`pantry up`: the ledger alone with its own nats-server, which is restarted and ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.supervised import alive, supervised
from tests.support.waiting import wait_until

pytestmark = pytest.mark.fault


async def test_the_ledger_alone_keeps_its_stock_over_a_kill_of_its_broker_and_a_restart(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PANTRY_")}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    command = [sys.executable, "-m", "pantry", "up", "--port", "0", "--data-dir", str(tmp_path / "data")]

    def pantry(*arguments: str) -> str:
        asking = [sys.executable, "-m", "pantry", *arguments]
        done = subprocess.run(asking, env=environment, cwd="/", capture_output=True, text=True, timeout=30, check=False)
        return done.stdout if not done.returncode else f"failed: {done.stderr}"

    with supervised(command, tmp_path / "first.txt", environment) as running:
        await wait_until(lambda: "Ctrl-C stops" in running.said, 60)
        assert len(running.descendants()) == 1, "one process and its nats-server"
        assert "{" not in running.said, "no log lines on a good start"
        assert "Flour" in pantry("product", "add", "4006381333931", "--name", "Flour", "--unit", "kg")
        killed = running.find("nats-server")
        killed.kill()
        await wait_until(lambda: killed.pid not in [child.pid for child in running.descendants().values()], 10)
        await wait_until(running.descendants, 10)
        await wait_until(lambda: not pantry("movement", "add", "--ean", "4006381333931", "--in", "2").startswith("failed"), 30)
        children = list(running.descendants().values())
        assert await running.end(signal.SIGINT) == 0
        assert alive(children) == []
    assert "pantry token create NAME" in pantry(*command[3:], "--host", "0.0.0.0")
    with supervised([*command, "--host", "127.0.0.2"], tmp_path / "second.txt", environment) as running:
        await wait_until(lambda: "Ctrl-C stops" in running.said, 60)
        assert "page   http://127.0.0.2:" in running.said
        assert "Flour" in pantry("product", "list")
        assert pantry("pair", "--address", "https://pantry.home") == "https://pantry.home/\n"
        assert await running.end(signal.SIGTERM) == 0
