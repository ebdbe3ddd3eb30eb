"""The image of `deploy/containers/Containerfile`, built and run with podman. Without podman or its base there is no test here."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import ROOT
from tests.support.waiting import wait_until

FILE = Path("deploy/containers/Containerfile")


def podman(*arguments: str, limit: float = 60) -> str:
    """Return the output of a command of podman. It ends the test if it fails, or takes more than `limit` seconds."""
    done = subprocess.run(["podman", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + (done.stderr if arguments[0] == "logs" else "")


def base_is_there() -> bool:
    """Whether this machine has podman and the image that ours begins from, so no test asks a registry for images."""
    if shutil.which("podman") is None:
        return False
    found = re.search(r"^FROM (\S+)", (ROOT / FILE).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return subprocess.run(["podman", "image", "exists", found[1]], capture_output=True, check=False).returncode == 0


if base_is_there():

    @pytest.fixture(scope="module")
    def image() -> Iterator[str]:
        name = podman("build", "--file", str(FILE), "--quiet", ".", limit=600).split()[-1]
        yield name
        podman("image", "rm", "--force", name)

    def test_the_image_has_all_programs(image: str) -> None:
        for program in ("gctd", "pantry", "graphql-fn", "projections"):
            assert podman("run", "--rm", image, program, "--version").startswith(f"{program} ")
        assert "nats-server" in podman("run", "--rm", image, "nats-server", "--version")

    async def test_the_image_runs_the_demonstration(image: str) -> None:
        """Its user can write the data, its pages are built, and Go analyses the small repository."""
        container = podman(
            *("run", "--detach", "--network", "host", image),
            *("gctd", "up", "--demo", "--port-base", "0"),
        ).split()[-1]
        try:
            [address, *_] = await wait_until(lambda: re.findall(r"http://127\.0\.0\.1:\d+", podman("logs", container)), every=0.5)
            async with aiohttp.ClientSession(address) as client:
                async with client.get("/") as page:
                    assert "<script" in await page.text()

                async def analysed() -> list[Any]:
                    async with client.get("/api/repos") as answer:
                        return list(await answer.json())

                assert await wait_until(analysed, timeout=120, every=0.5)
            podman("stop", "--time", "40", container)
            assert podman("wait", container).split() == ["143"], "ended in order by SIGTERM"
        finally:
            podman("rm", "--force", container)
